"""The older name of `torch.ao.nn.quantizable.modules.activation`."""

from torchshim.ao.nn.quantizable.modules.activation import *  # noqa: F403
from torchshim.ao.nn.quantizable.modules.activation import __all__ as __all__
