"""The older name of `torch.ao.nn.quantized.modules.activation`."""

from torchshim.ao.nn.quantized.modules.activation import *  # noqa: F403
from torchshim.ao.nn.quantized.modules.activation import __all__ as __all__
