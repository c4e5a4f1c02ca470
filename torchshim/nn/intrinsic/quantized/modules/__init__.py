"""The older name of `torch.ao.nn.intrinsic.quantized.modules`."""

from torchshim.ao.nn.intrinsic.quantized.modules import *  # noqa: F403
from torchshim.ao.nn.intrinsic.quantized.modules import __all__ as __all__
