"""The older name of `torch.ao.nn.qat.dynamic`."""

from torchshim.ao.nn.qat.dynamic import *  # noqa: F403
from torchshim.ao.nn.qat.dynamic import __all__ as __all__
from torchshim.nn.qat.dynamic import modules as modules
