"""The older name of `torch.ao.nn.quantized.reference.modules.sparse`."""

from torchshim.ao.nn.quantized.reference.modules.sparse import *  # noqa: F403
from torchshim.ao.nn.quantized.reference.modules.sparse import __all__ as __all__
