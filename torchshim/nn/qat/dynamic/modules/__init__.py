"""The older name of `torch.ao.nn.qat.dynamic.modules`."""

from torchshim.ao.nn.qat.dynamic.modules import *  # noqa: F403
from torchshim.ao.nn.qat.dynamic.modules import __all__ as __all__
