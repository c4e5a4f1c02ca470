"""The older name of `torch.ao.nn.quantized.functional`."""

from torchshim.ao.nn.quantized.functional import *  # noqa: F403
from torchshim.ao.nn.quantized.functional import __all__ as __all__
