"""The older name of `torch.ao.nn.quantized.reference.modules.conv`."""

from torchshim.ao.nn.quantized.reference.modules.conv import *  # noqa: F403
from torchshim.ao.nn.quantized.reference.modules.conv import __all__ as __all__
from torchshim.ao.nn.quantized.reference.modules.conv import _ConvNd as _ConvNd
from torchshim.ao.nn.quantized.reference.modules.conv import (
    _ConvTransposeNd as _ConvTransposeNd,
)
