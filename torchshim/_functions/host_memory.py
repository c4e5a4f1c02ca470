"""The memory of tensors on the host, as others see it: NumPy, and other processes."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.record import local
from torchshim._core.shared import Shared, spread
from torchshim._core.storage import Storage, dense
from torchshim._derived import public
from torchshim._functions._arguments import check_options, device_of, dtype_of
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
            if alias._view_of is None and not alias._tmeta.leaf:
                rec.keep_history(alias)  # in another thread's recording
            if not rec.owns(alias._slot):
                rec.tell_owner(alias, alias._slot, storage)
            alias._slot = -1
    rec.raise_failed_checks()
    return storage.shared.window(tensor)


def _in_order(base: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """A writable copy of an array, laid out in memory as the strides say."""
    if base.size and not dense((base.shape, strides, 0)):
        return spread(base, strides)[1]
    order = sorted(range(base.ndim), key=lambda d: -strides[d])
    held = np.array(base.transpose(order), order="C")
    return held.transpose([order.index(d) for d in range(base.ndim)])


class Mapped(mmap.mmap):
    """A file in memory, with its name if it is written to."""

    filename: str | None = None


class Region(Mapped):
    """Memory of several processes: a file without a name that each of them maps."""

    descriptor: int

    def __new__(cls, descriptor: int, length: int) -> Region:
        made = super().__new__(cls, descriptor, length)
        made.descriptor = descriptor
        return made

    def __del__(self, close: Any = os.close) -> None:  # `os` goes before some regions
        close(self.descriptor)


def _new_region(length: int) -> Region:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("torchshim", os.MFD_CLOEXEC)
    else:  # pragma: no cover - not Linux
        descriptor, name = tempfile.mkstemp()
        os.unlink(name)
    os.ftruncate(descriptor, length)
    return Region(descriptor, length)


def mapped_file(filename: str, shared: bool, length: int) -> np.ndarray:
    """The first bytes of a file, in its memory if `shared`, which may make it longer.

    RuntimeError for a file that cannot be opened or is too short.
    """
    if length < 0:
        raise RuntimeError(
            f"unable to mmap {length} bytes from file <{filename}>: Cannot allocate "
            "memory (12)"
        )
    try:
        flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
        descriptor = os.open(filename, flags, 0o600)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{filename}> in {mode} mode: {error.strerror} "
            f"({error.errno})"
        ) from None
    try:
        size = os.fstat(descriptor).st_size
        if size < length:
            if not shared:
                raise RuntimeError(
                    f"file <{filename}> size <{size}> is smaller than the required "
                    f"mapping size <{length}>"
                )
            os.ftruncate(descriptor, length)
        if not length:
            return np.empty(0, np.uint8)
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        held = Mapped(descriptor, length, access=access)
        if shared:
            held.filename = str(filename)
        return np.ndarray((length,), np.uint8, held)  # its base, which tells of it
    finally:
        os.close(descriptor)


@public
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of a file's first numbers, which it writes there if it is `shared`.

    `size` counts numbers. RuntimeError for a file that cannot be opened or, unless
    `shared`, is too short.

    https://docs.pytorch.org/docs/2.13/generated/torch.from_file.html

    >>> import torchshim as torch
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     x = torch.from_file(file.name, shared=True, size=2, dtype=torch.uint8)
    ...     x.fill_(65)
    ...     file.read()
    tensor([65, 65], dtype=torch.uint8)
    b'AA'
    """
    kind = dtype_of("from_file", dtype) or dtypes.get_default_dtype()
    check_options("from_file", layout, pin_memory, False)
    if device_of("from_file", device).type != "cpu":
        raise NotImplementedError("from_file(): tensors of files are on the CPU")
    held = mapped_file(filename, bool(shared), size * kind.itemsize)
    return sharing(held.view(dtypes.array_dtype(kind)), dtype=kind)


def mapping_of(storage: Storage) -> Mapped | None:
    """The file that is a storage's memory, if one is."""
    found: Any = None if storage.shared is None else storage.shared.memory
    while isinstance(found, np.ndarray):
        found = found.base
    return found if isinstance(found, Mapped) else None


def region_of(storage: Storage) -> Region | None:
    """The memory that a storage has in common with other processes, if it has."""
    found = mapping_of(storage)
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
    dtype: dtypes.dtype,
    array_dtype: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Tensor:
    """A tensor on what another process shares, whose file's descriptor is given."""
    region = Region(descriptor, os.fstat(descriptor).st_size)
    held = np.ndarray(shape, array_dtype, region, strides=strides)
    return sharing(held, dtype=dtype)
