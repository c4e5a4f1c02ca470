"""`torch._prims.context`: there are no operators in Python to switch to."""

from torchshim._errors import refused

globals().update(
    refused(__name__, "TorchRefsMode", "operators are not written in Python")
)
