"""The older name of `torch.ao.nn.qat.dynamic.modules.linear`."""

from torchshim.ao.nn.qat.dynamic.modules.linear import *  # noqa: F403
from torchshim.ao.nn.qat.dynamic.modules.linear import __all__ as __all__
