"""The older name of `torch.ao.nn.intrinsic.qat.modules.conv_fused`."""

from torchshim.ao.nn.intrinsic.qat.modules.conv_fused import *  # noqa: F403
from torchshim.ao.nn.intrinsic.qat.modules.conv_fused import __all__ as __all__
