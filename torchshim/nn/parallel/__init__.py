"""Modules over several devices or processes, as far as one goes."""

from torchshim.nn.parallel.data_parallel import DataParallel, data_parallel
from torchshim.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
