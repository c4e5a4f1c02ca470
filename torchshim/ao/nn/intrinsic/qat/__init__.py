"""Fused layers that train with weights rounded as they will be."""

from torchshim.ao.nn.intrinsic.qat import modules as modules
from torchshim.ao.nn.intrinsic.qat.modules import *  # noqa: F403
from torchshim.ao.nn.intrinsic.qat.modules import __all__ as __all__
