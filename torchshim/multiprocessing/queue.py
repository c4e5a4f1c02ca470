"""Queues between processes, which send tensors as `torch.multiprocessing` does."""

from multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
