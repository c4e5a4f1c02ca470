"""The older name of `torch.ao.nn.quantized.modules.batchnorm`."""

from torchshim.ao.nn.quantized.modules.batchnorm import *  # noqa: F403
from torchshim.ao.nn.quantized.modules.batchnorm import __all__ as __all__
