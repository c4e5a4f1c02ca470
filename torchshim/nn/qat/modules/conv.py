"""The older name of `torch.ao.nn.qat.modules.conv`."""

from torchshim.ao.nn.qat.modules.conv import *  # noqa: F403
from torchshim.ao.nn.qat.modules.conv import __all__ as __all__
