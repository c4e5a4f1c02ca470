"""Collective communication that gradients flow through.

https://docs.pytorch.org/docs/2.13/distributed.html#autograd-enabled-communication-primitives
"""

from torchshim.distributed.nn import functional
from torchshim.distributed.nn.functional import *  # noqa: F403

__all__ = []
__all__ += functional.__all__
