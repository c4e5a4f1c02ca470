"""The older name of `torch.ao.nn.quantized.modules.normalization`."""

from torchshim.ao.nn.quantized.modules.normalization import *  # noqa: F403
from torchshim.ao.nn.quantized.modules.normalization import __all__ as __all__
