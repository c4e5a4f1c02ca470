"""Fused layers of floating point."""

from torchshim.ao.nn.intrinsic.modules.fused import *  # noqa: F403
from torchshim.ao.nn.intrinsic.modules.fused import __all__ as __all__
from torchshim.ao.nn.intrinsic.modules.fused import _FusedModule as _FusedModule
