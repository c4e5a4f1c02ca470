"""The older name of `torch.ao.nn.quantizable.modules.rnn`."""

from torchshim.ao.nn.quantizable.modules.rnn import *  # noqa: F403
from torchshim.ao.nn.quantizable.modules.rnn import __all__ as __all__
