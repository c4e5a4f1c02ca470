"""The older name of `torch.ao.nn.quantized.reference`."""

from torchshim.ao.nn.quantized.reference import *  # noqa: F403
from torchshim.ao.nn.quantized.reference import __all__ as __all__
from torchshim.nn.quantized._reference import modules as modules
