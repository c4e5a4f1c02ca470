"""The older name of `torch.ao.nn.quantizable.modules`."""

from torchshim.ao.nn.quantizable.modules import *  # noqa: F403
from torchshim.ao.nn.quantizable.modules import __all__ as __all__
