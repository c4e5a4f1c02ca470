"""The older name of `torch.ao.nn.quantized.reference.modules.linear`."""

from torchshim.ao.nn.quantized.reference.modules.linear import *  # noqa: F403
from torchshim.ao.nn.quantized.reference.modules.linear import __all__ as __all__
