"""The old place of `torch.distributed.tensor.experimental`."""

from torchshim.distributed.tensor.experimental import *  # noqa: F403
