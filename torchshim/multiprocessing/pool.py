"""Pools of processes, which send tensors as `torch.multiprocessing` does."""

from multiprocessing.pool import Pool

__all__ = ["Pool"]
