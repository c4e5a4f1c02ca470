"""The older name of `torch.ao.nn.quantized.modules.dropout`."""

from torchshim.ao.nn.quantized.modules.dropout import *  # noqa: F403
from torchshim.ao.nn.quantized.modules.dropout import __all__ as __all__
