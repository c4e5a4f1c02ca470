"""The older name of `torch.ao.nn.quantized.modules.functional_modules`."""

from torchshim.ao.nn.quantized.modules.functional_modules import *  # noqa: F403
from torchshim.ao.nn.quantized.modules.functional_modules import __all__ as __all__
