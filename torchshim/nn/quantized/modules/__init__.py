"""The older name of `torch.ao.nn.quantized.modules`."""

from torchshim.ao.nn.quantized.modules import *  # noqa: F403
from torchshim.ao.nn.quantized.modules import __all__ as __all__
