"""Modules over several devices, as far as one device goes: `torch.nn.parallel`."""

from torchshim.nn.parallel.data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
