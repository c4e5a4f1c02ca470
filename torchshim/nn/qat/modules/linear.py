"""The older name of `torch.ao.nn.qat.modules.linear`."""

from torchshim.ao.nn.qat.modules.linear import *  # noqa: F403
from torchshim.ao.nn.qat.modules.linear import __all__ as __all__
