"""The older name of `torch.ao.nn.quantized`."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao.nn.quantized import *  # noqa: F403
from torchshim.ao.nn.quantized import MaxPool2d as MaxPool2d
from torchshim.ao.nn.quantized import __all__ as __all__
from torchshim.nn.quantized import modules as modules

__getattr__ = _submodules(__name__, "dynamic", "functional", "_reference")
