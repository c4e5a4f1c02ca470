"""Layers that quantization takes for one."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao.nn.intrinsic import modules as modules
from torchshim.ao.nn.intrinsic.modules import *  # noqa: F403
from torchshim.ao.nn.intrinsic.modules import __all__ as __all__
from torchshim.ao.nn.intrinsic.modules.fused import _FusedModule as _FusedModule

__getattr__ = _submodules(__name__, "qat", "quantized")
