"""The older name of `torch.ao.nn.intrinsic.quantized`."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao.nn.intrinsic.quantized import *  # noqa: F403
from torchshim.ao.nn.intrinsic.quantized import __all__ as __all__
from torchshim.nn.intrinsic.quantized import modules as modules

__getattr__ = _submodules(__name__, "dynamic")
