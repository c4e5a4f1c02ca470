"""Tensors on their way to other processes: they are copied."""

from torchshim._errors import unsupported

__all__ = ["StorageWeakRef"]

StorageWeakRef = unsupported(
    "multiprocessing.reductions.StorageWeakRef", "no memory is shared"
)
