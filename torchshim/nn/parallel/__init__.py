"""Modules over several devices or processes, as far as one goes."""

from torchshim._lazy import submodules as _submodules
from torchshim.nn.parallel.data_parallel import DataParallel, data_parallel
from torchshim.nn.parallel.distributed import DistributedDataParallel
from torchshim.nn.parallel.parallel_apply import parallel_apply
from torchshim.nn.parallel.replicate import replicate
from torchshim.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]

__getattr__ = _submodules(__name__, "comm")
