"""Memory that a storage shares with NumPy: each side sees the writes of the other.

NumPy may write at any time, so the NumPy array is the truth. A recording uses a private
copy, which is compared with the array each time the storage enters a recording. A write
through a tensor is run at once, and copied into the elements that it is for. When
nobody but the storage holds the array any more, the sharing ends.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

import jax
import numpy as np

from torchshim._core.device import device
from torchshim._core.dtypes import array_dtype
from torchshim._core.placement import put
from torchshim._core.storage import (
    Storage,
    TensorBase,
    bits_of,
    dense,
    overlaps,
    placement,
)

_memcmp: Any = None
try:
    _memcmp = ctypes.CDLL(None).memcmp
    _memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
except (AttributeError, OSError, TypeError):  # a platform without it
    pass

# Arrays up to so many bytes stay NumPy arrays: passing those to a program is quicker
# than making a JAX array of each. For an array that is used once, the bound is larger
# (measured: 100 KB take 90 us instead of 230, 3 MB 760 instead of 260).
SMALL = 4096
SMALL_ONCE = 1 << 18


def frozen(array: np.ndarray, once: bool = False) -> Any:
    """An array that nobody will write to, in the form that programs take best.

    `once`: it will most likely be used by one program only.

    >>> type(frozen(np.zeros(3))).__name__
    'ndarray'
    """
    if array.nbytes <= (SMALL_ONCE if once else SMALL):
        return array
    with jax.enable_x64(True):
        return put(array, device("cpu"))


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one shape and dtype hold the same bits.

    >>> same_bytes(np.float32([np.nan]), np.float32([np.nan]))
    True
    """
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if _memcmp is not None:
        return _memcmp(a.ctypes.data, b.ctypes.data, a.nbytes) == 0
    return a.tobytes() == b.tobytes()


def differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays of one shape and dtype hold other bits.

    >>> differs(np.float32([0, np.nan, 1]), np.float32([-0.0, np.nan, 1])).tolist()
    [True, False, False]
    >>> differs(np.float32(0), np.float32(1)).shape
    ()
    """
    sides = [np.ascontiguousarray(x)[..., None].view(np.uint8) for x in (a, b)]
    return (sides[0] != sides[1]).any(axis=-1).reshape(a.shape)


def mapped(memory: Any) -> bool:
    """Whether an array is on the memory of a file, which other processes may map."""
    while isinstance(memory, (np.ndarray, Window)):
        memory = memory.owner if isinstance(memory, Window) else memory.base
    return isinstance(memory, mmap.mmap)


class Window:
    """Part of an array's memory, as bytes with strides of their own."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(
        self,
        owner: np.ndarray,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        dtype: np.dtype[Any],
    ) -> None:
        self.owner = owner
        size = dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{size}",  # it has no words for bfloat16 and float8
            "data": (owner.ctypes.data + offset * size, False),
            "shape": tuple(shape),
            "strides": tuple(s * size for s in strides),
        }


def seen(tensor: TensorBase, memory: np.ndarray) -> np.ndarray:
    """The values that a tensor shows: its elements, conjugated or negated if it is."""
    for bit in bits_of(tensor):
        turn = np.conjugate if bit == "conj" else np.negative
        memory = np.asarray(turn(memory))
    return memory


def shown(tensor: TensorBase, storage: Storage, base: np.ndarray) -> np.ndarray:
    """What a tensor on a storage shows of the base's value (not to be written to)."""
    meta, root = tensor._tmeta, storage.meta
    # A view may have another dtype than its base; its geometry counts in its own.
    kind = array_dtype(meta.dtype)
    if 0 in meta.shape:
        return np.empty(meta.shape, kind)
    if not (base.flags.c_contiguous and root.contiguous):
        base = _in_memory(base, root.strides)
    size = kind.itemsize
    memory: np.ndarray = np.ndarray(
        meta.shape,
        kind,
        base.reshape(-1).view(np.uint8),
        placement(tensor)[2] * size - root.offset * base.itemsize,
        tuple([s * size for s in meta.strides]),
    )
    memory.flags.writeable = False
    return seen(tensor, memory)


def _in_memory(base: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """A base's elements as they are in memory."""
    if not dense((base.shape, strides, 0)):
        return spread(base, strides)[0]
    # Its dimensions by falling stride.
    order = sorted(range(base.ndim), key=lambda d: -strides[d])
    return np.ascontiguousarray(base.transpose(order))


def spread(base: np.ndarray, strides: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """New memory that holds an array with gaps, or where several elements are one.

    As what a transform gave for a view has them. The memory, and the array in it.
    """
    reach = zip(base.shape, strides, strict=True)
    memory = np.zeros(1 + sum((n - 1) * step for n, step in reach), base.dtype)
    steps = tuple(step * base.itemsize for step in strides)
    held = np.lib.stride_tricks.as_strided(memory, base.shape, steps)
    held[...] = base
    return memory, held


class Shared:
    """The NumPy side of a storage; `memory` has the shape of the storage's base."""

    __slots__ = ("copy", "memory")

    def __init__(self, memory: np.ndarray, copy: np.ndarray | None = None) -> None:
        self.memory = memory
        # What the memory held when it was last compared.
        self.copy = copy

    def window(self, tensor: TensorBase) -> np.ndarray:
        """The elements of a tensor on this storage, writable, without a copy."""
        memory, meta, storage = self.memory, tensor._tmeta, tensor._storage
        assert storage is not None
        root, offset = storage.meta, placement(tensor)[2]
        kind = array_dtype(meta.dtype)
        if meta.shape == root.shape and meta.strides == root.strides:
            if offset == root.offset and kind == memory.dtype:
                return memory.view()
        if 0 in meta.shape:
            return np.empty(meta.shape, kind)
        # A view may have another dtype than its base and counts in its own.
        begin = root.offset * memory.itemsize // kind.itemsize
        held = Window(memory, meta.shape, meta.strides, offset - begin, kind)
        return np.asarray(held).view(kind)

    def piece(self, tensor: Any) -> Any:
        """A private copy of the elements of a tensor on this storage."""
        return frozen(np.array(seen(tensor, self.window(tensor)), order="C"), once=True)

    def exclusive(self) -> bool:
        """Whether nobody else holds the memory, so that nobody can write to it."""
        memory: Any = self.memory
        # This attribute, the local name and the call's argument.
        known = 3
        while True:
            if sys.getrefcount(memory) > known:
                return False
            base = memory.base
            if base is None:
                return True
            if not isinstance(base, np.ndarray):
                return False
            # The array above, the local name and the call's argument.
            memory = base
            del base

    def refresh(self, storage: Any) -> None:
        """Brings the storage's value up to date before a recording uses it."""
        memory = self.memory
        if self.copy is not None and storage.array is not None:
            fresh = same_bytes(memory, self.copy)
        else:
            fresh = False
        if not fresh:
            # A value that entered before stays in the recording; this one is new.
            storage.array = frozen(np.array(memory, order="C"))
            self.copy = np.asarray(storage.array)
            storage.slot = -1
            storage.tracked = False
        del memory
        if self.exclusive():
            storage.shared = None

    def store(self, tensor: TensorBase, value: Any, read: np.ndarray | None) -> None:
        """Puts the new value of a tensor on this storage into its elements' memory.

        Other elements are left alone: another process may have written to them. `read`:
        where the value was computed from that of the whole memory (by `index_put_`,
        which changes a few elements), what that was.
        """
        target, value = self.window(tensor), np.asarray(seen(tensor, np.asarray(value)))
        if not target.flags.writeable:
            # PyTorch warns when the tensor is made, and writes.
            steps = tuple(s // target.itemsize for s in target.strides)
            held = Window(target, target.shape, steps, 0, target.dtype)
            target = np.asarray(held).view(target.dtype)
        if overlaps(tensor._tmeta.shape, tensor._tmeta.strides):
            # Where several elements are one in memory, the changed one counts.
            np.copyto(target, value, where=differs(target, value))
        elif read is not None and read.shape == value.shape and mapped(target):
            np.copyto(target, value, where=differs(read, value))
        else:
            np.copyto(target, value)
        self.copy = None
