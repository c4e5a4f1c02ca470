"""The older name of `torch.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu`."""

from torchshim.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import *  # noqa: F403
from torchshim.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import (
    __all__ as __all__,
)
