"""The older name of `torch.ao.nn.intrinsic.qat.modules`."""

from torchshim.ao.nn.intrinsic.qat.modules import *  # noqa: F403
from torchshim.ao.nn.intrinsic.qat.modules import __all__ as __all__
