"""`torch._prims.executor`: there are no primitive operators to trace."""

from torchshim._errors import refused

globals().update(
    refused(__name__, "make_traced", "operators are not written in Python")
)
