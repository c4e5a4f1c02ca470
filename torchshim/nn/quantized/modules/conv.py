"""The older name of `torch.ao.nn.quantized.modules.conv`."""

from torchshim.ao.nn.quantized.modules.conv import *  # noqa: F403
from torchshim.ao.nn.quantized.modules.conv import __all__ as __all__
from torchshim.ao.nn.quantized.modules.conv import (
    _reverse_repeat_padding as _reverse_repeat_padding,
)
