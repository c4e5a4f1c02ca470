"""The older name of `torch.ao.nn.intrinsic.qat`."""

from torchshim.ao.nn.intrinsic.qat import *  # noqa: F403
from torchshim.ao.nn.intrinsic.qat import __all__ as __all__
from torchshim.nn.intrinsic.qat import modules as modules
