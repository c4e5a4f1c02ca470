"""The older name of `torch.ao.nn.quantized.dynamic`."""

from torchshim.ao.nn.quantized.dynamic import *  # noqa: F403
from torchshim.ao.nn.quantized.dynamic import __all__ as __all__
from torchshim.nn.quantized.dynamic import modules as modules
