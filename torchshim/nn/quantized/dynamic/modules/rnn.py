"""The older name of `torch.ao.nn.quantized.dynamic.modules.rnn`."""

from torchshim.ao.nn.quantized.dynamic.modules.rnn import *  # noqa: F403
from torchshim.ao.nn.quantized.dynamic.modules.rnn import __all__ as __all__
