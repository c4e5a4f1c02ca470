"""The older name of `torch.ao.nn.quantized.reference.modules`."""

from torchshim.ao.nn.quantized.reference.modules import *  # noqa: F403
from torchshim.ao.nn.quantized.reference.modules import __all__ as __all__
