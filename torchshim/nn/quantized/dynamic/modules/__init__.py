"""The older name of `torch.ao.nn.quantized.dynamic.modules`."""

from torchshim.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from torchshim.ao.nn.quantized.dynamic.modules import __all__ as __all__
