"""The memory of tensors on the host, as others see it: NumPy, and other processes."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from torchshim._core.dtypes import dtype
from torchshim._core.record import local
from torchshim._core.shared import Shared
from torchshim._core.storage import Storage
from torchshim._functions.construct import sharing
from torchshim._tensor import Tensor


def shared_memory(tensor: Tensor) -> np.ndarray:
    """The tensor's elements as a numpy array on the same memory."""
    rec = local.rec
    storage = rec.storage_of(tensor)
    if storage.shared is None:
        base = rec.host(rec.base_array_of(storage))
        aliases = storage.tensors()
        if storage.slot >= 0 or any(a._slot >= 0 for a in aliases):
            # Slots would outlive what NumPy writes; histories go with the recording.
            rec.flush()
        if tensor._storage is not storage:  # alone on it, the tensor took it back
            storage = rec.storage_of(tensor)
        memory = _in_order(base, storage.meta.strides)
        storage.shared = Shared(memory, base)
        for alias in storage.tensors():
            if alias._view_of is None and not alias._meta.leaf:
                rec.keep_history(alias)  # in another thread's recording
            alias._slot = -1
    rec.raise_failed_checks()
    return storage.shared.window(tensor)


def _in_order(base: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """A writable copy of an array, laid out in memory as the strides say."""
    order = sorted(range(base.ndim), key=lambda d: -strides[d])
    held = np.array(base.transpose(order), order="C")
    return held.transpose([order.index(d) for d in range(base.ndim)])


class Region(mmap.mmap):
    """Memory of several processes: a file without a name that each of them maps."""

    descriptor: int

    def __new__(cls, descriptor: int, length: int) -> Region:
        made = super().__new__(cls, descriptor, length)
        made.descriptor = descriptor
        return made

    def __del__(self) -> None:
        os.close(self.descriptor)


def _new_region(length: int) -> Region:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("torchshim", os.MFD_CLOEXEC)
    else:  # pragma: no cover - not Linux
        descriptor, name = tempfile.mkstemp()
        os.unlink(name)
    os.ftruncate(descriptor, length)
    return Region(descriptor, length)


def region_of(storage: Storage) -> Region | None:
    """The memory that a storage has in common with other processes, if it has."""
    found: Any = None if storage.shared is None else storage.shared.memory
    while isinstance(found, np.ndarray):
        found = found.base
    return found if isinstance(found, Region) else None


def share(tensor: Tensor) -> Region:
    """Moves the memory under a tensor to where other processes see it."""
    storage = local.rec.storage_of(tensor)
    found = region_of(storage)
    if found is not None:
        return found
    shared_memory(tensor)
    storage = local.rec.storage_of(tensor)
    memory, size = storage.shared.memory, storage.shared.memory.itemsize
    steps = zip(memory.shape, memory.strides, strict=True)
    # At least one byte: no file maps nothing.
    length = max(1, size + sum((n - 1) * step for n, step in steps))
    region = _new_region(length)
    held = np.ndarray(memory.shape, memory.dtype, region, strides=memory.strides)
    held[...] = memory
    storage.shared = Shared(held, storage.shared.copy)
    return region


def sharing_region(
    descriptor: int,
    dtype: dtype,
    array_dtype: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Tensor:
    """A tensor on what another process shares, whose file's descriptor is given."""
    region = Region(descriptor, os.fstat(descriptor).st_size)
    held = np.ndarray(shape, array_dtype, region, strides=strides)
    return sharing(held, dtype=dtype)
