"""Calls within PyTorch's libraries: they are not here."""

from torchshim._errors import refused

globals().update(refused(__name__, "get_cpp_backtrace", "there are no such libraries"))
