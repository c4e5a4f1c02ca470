"""The old place of `torch.distributed.tensor`."""

from torchshim.distributed.tensor import *  # noqa: F403
