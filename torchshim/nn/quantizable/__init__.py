"""The older name of `torch.ao.nn.quantizable`."""

from torchshim.ao.nn.quantizable import *  # noqa: F403
from torchshim.ao.nn.quantizable import __all__ as __all__
from torchshim.nn.quantizable import modules as modules
