"""The older name of `torch.ao.nn.intrinsic.quantized.dynamic`."""

from torchshim.ao.nn.intrinsic.quantized.dynamic import *  # noqa: F403
from torchshim.ao.nn.intrinsic.quantized.dynamic import __all__ as __all__
from torchshim.nn.intrinsic.quantized.dynamic import modules as modules
