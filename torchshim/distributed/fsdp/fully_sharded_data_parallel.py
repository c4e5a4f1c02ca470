"""`FullyShardedDataParallel` and its settings, where programs also look for them."""

from torchshim.distributed.fsdp import FullyShardedDataParallel, api
from torchshim.distributed.fsdp.api import *  # noqa: F403

__all__ = ["FullyShardedDataParallel"]
__all__ += api.__all__
