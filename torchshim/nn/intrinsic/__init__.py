"""The older name of `torch.ao.nn.intrinsic`."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao.nn.intrinsic import *  # noqa: F403
from torchshim.ao.nn.intrinsic import __all__ as __all__
from torchshim.nn.intrinsic import modules as modules

__getattr__ = _submodules(__name__, "qat", "quantized")
