"""The older name of `torch.ao.nn.qat.modules`."""

from torchshim.ao.nn.qat.modules import *  # noqa: F403
from torchshim.ao.nn.qat.modules import __all__ as __all__
