"""The older name of `torch.ao.nn.intrinsic.modules`."""

from torchshim.ao.nn.intrinsic.modules import *  # noqa: F403
from torchshim.ao.nn.intrinsic.modules import __all__ as __all__
