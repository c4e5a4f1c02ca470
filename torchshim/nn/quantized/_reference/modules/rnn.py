"""The older name of `torch.ao.nn.quantized.reference.modules.rnn`."""

from torchshim.ao.nn.quantized.reference.modules.rnn import *  # noqa: F403
from torchshim.ao.nn.quantized.reference.modules.rnn import __all__ as __all__
