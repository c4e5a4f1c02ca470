"""Fused layers that compute with integers."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao.nn.intrinsic.quantized import modules as modules
from torchshim.ao.nn.intrinsic.quantized.modules import *  # noqa: F403
from torchshim.ao.nn.intrinsic.quantized.modules import __all__ as __all__

__getattr__ = _submodules(__name__, "dynamic")
