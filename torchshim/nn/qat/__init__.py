"""The older name of `torch.ao.nn.qat`."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao.nn.qat import *  # noqa: F403
from torchshim.ao.nn.qat import __all__ as __all__
from torchshim.nn.qat import modules as modules

__getattr__ = _submodules(__name__, "dynamic")
