"""Layers that train with weights rounded as they will be."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao.nn.qat import modules as modules
from torchshim.ao.nn.qat.modules import *  # noqa: F403
from torchshim.ao.nn.qat.modules import __all__ as __all__

__getattr__ = _submodules(__name__, "dynamic")
