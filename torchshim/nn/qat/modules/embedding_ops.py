"""The older name of `torch.ao.nn.qat.modules.embedding_ops`."""

from torchshim.ao.nn.qat.modules.embedding_ops import *  # noqa: F403
from torchshim.ao.nn.qat.modules.embedding_ops import __all__ as __all__
