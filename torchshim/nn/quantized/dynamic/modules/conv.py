"""The older name of `torch.ao.nn.quantized.dynamic.modules.conv`."""

from torchshim.ao.nn.quantized.dynamic.modules.conv import *  # noqa: F403
from torchshim.ao.nn.quantized.dynamic.modules.conv import __all__ as __all__
