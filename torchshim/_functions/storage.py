"""Storages: the memory under tensors, as `torch.UntypedStorage` shows it.

https://docs.pytorch.org/docs/2.13/storage.html
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.device import current_accelerator, device_count
from torchshim._core.extent import check_extent
from torchshim._core.meta import meta_of
from torchshim._core.no_data import NoData
from torchshim._core.op import REGISTRY
from torchshim._core.record import local, untracked
from torchshim._core.storage import Storage
from torchshim._derived import public
from torchshim._functions._arguments import device_of, kind_of, wrong
from torchshim._functions._values import unchosen
from torchshim._functions.construct import sharing
from torchshim._functions.creation import place
from torchshim._functions.host_memory import mapped_file, mapping_of, share
from torchshim._tensor import Tensor, address_of, check_storage, from_array

_FORMS = (
    "torch.UntypedStorage() received an invalid combination of arguments - got ({0}), "
    "but expected one of:\n"
    " * (*, int allocator = None, torch.device device = None)\n"
    " * (int size, *, int allocator = None, torch.device device = None)\n"
    " * (object sequence, *, int allocator = None, torch.device device = None)\n"
)
_OWN_MEMORY = "{0}() is not supported: each process has memory of its own"
_new = object.__new__
_PIECE = REGISTRY["strided_view"]


def memory_of(storage: Storage) -> np.ndarray:
    """The elements of a storage in the order of its memory (not to be written to)."""
    home = None if storage.home is None else storage.home()
    if storage.shared is not None:
        base = storage.shared.memory
    elif storage.array is None and home is not None and home._storage is None:
        base = local.rec.host(local.rec.array_of(home))  # which took the value back
    else:
        base = local.rec.host(local.rec.base_array_of(storage))
    order = sorted(range(base.ndim), key=lambda d: -storage.meta.strides[d])
    return np.ascontiguousarray(base.transpose(order)).reshape(-1)


def lengthened(flat: np.ndarray, count: int, dtype: dtypes.dtype) -> np.ndarray:
    """So many elements, first those given, then such as nobody has chosen."""
    made = np.full(count, unchosen(dtype), dtypes.array_dtype(dtype))
    made[: flat.size] = flat
    return made


def lengthen(storage: Storage, count: int, dtype: dtypes.dtype) -> None:
    """Gives a storage more elements (of a dtype); its tensors stay where they are.

    NotImplementedError where one of them has a history.
    """
    if storage.shared is not None:
        raise RuntimeError("Trying to resize storage that is not resizable")
    meta, tensors = storage.meta, storage.tensors()
    if any(t._tmeta.requires_grad and not t._tmeta.leaf for t in tensors):
        raise NotImplementedError(
            "memory that a tensor with a history shows can't be resized"
        )
    kind, device = meta.dtype, meta.device
    if (count * dtype.itemsize) % kind.itemsize:
        raise NotImplementedError(
            f"memory of {kind} can't have {count * dtype.itemsize} bytes"
        )
    count = count * dtype.itemsize // kind.itemsize
    local.rec.flush()
    array: Any = NoData((count,), dtypes.array_dtype(kind))
    if device.type != "meta":
        array = place(lengthened(memory_of(storage), count, kind), device)
    # What was the whole is a piece of it now.
    step = _PIECE, (tuple(meta.shape), meta.strides, 0, ((1,), 0)), 0
    for tensor in tensors:
        tensor._path = (step, *tensor._path)
        tensor._slot = tensor._raw = -1
    storage.meta = meta_of((count,), kind, device)
    storage.array, storage.slot = array, -1
    storage.home, storage.tracked = None, False


def tensor_on(storage: Storage, cls: Any = Tensor) -> Any:
    """A tensor on the whole of a storage, as its base sees it."""
    made = _new(cls)
    made._slot = -1
    made._array = None
    made._tmeta = storage.meta
    storage.add(made)
    return made


class UntypedStorage:
    """The bytes under tensors.

    Of a size, a sequence of bytes, or got from a tensor; several tensors may be on one.

    https://docs.pytorch.org/docs/2.13/storage.html

    >>> import torchshim as torch
    >>> x = torch.zeros(2)
    >>> storage = x.untyped_storage().copy_(torch.ones(2).untyped_storage())
    >>> x, storage.nbytes(), storage[:4].tolist()
    (tensor([1., 1.]), 8, [0, 0, 128, 63])
    """

    __module__ = "torch.storage"
    # `_raw` is memory that no tensor shows yet (nobody writes to it), `_tensor` the
    # first to do so, `_core` the cell they share once something else needs it.
    __slots__ = ("__dict__", "__weakref__", "_core", "_raw", "_tensor", "_where")

    is_sparse = False
    is_sparse_csr = False

    _core: Storage | None
    _raw: np.ndarray | None
    _tensor: Any

    def __init__(self, *args: Any, device: Any = None) -> None:
        data: Any = args[0] if args else 0
        known = hasattr(data, "__index__") or hasattr(data, "__len__")
        if len(args) > 1 or not known:
            got = ", ".join(kind_of(a) for a in args)
            raise TypeError(_FORMS.format(got))
        if hasattr(data, "__index__"):
            check_extent((data.__index__(),), 1)
            held = np.full(data.__index__(), unchosen(dtypes.uint8), np.uint8)
        else:
            for item in data:
                if not isinstance(item, int):
                    raise RuntimeError(
                        "torch.UntypedStorage(): tried to construct a storage from a "
                        f"sequence ({type(data).__name__}), but one of the items was "
                        f"of type {type(item).__name__} instead of int"
                    )
            held = np.array([item & 255 for item in data], np.uint8)
        self._start(held, storage_device(device))

    @staticmethod
    def from_file(
        filename: str, shared: bool = False, nbytes: int = 0
    ) -> UntypedStorage:
        """A storage of a file's first bytes, which writes them if it is `shared`.

        RuntimeError for a file that cannot be opened or, unless `shared`, is too short.
        """
        held = sharing(mapped_file(filename, shared, nbytes), dtype=dtypes.uint8)
        return held.untyped_storage()

    def _start(self, raw: np.ndarray, where: Any) -> None:
        self._core, self._tensor, self._raw, self._where = None, None, raw, where

    def _hold(self, storage: Storage) -> None:
        # A tensor alone on a storage would take the memory back.
        self._core, self._where, self._raw = storage, storage.meta.device, None
        self._tensor = tensor_on(storage)

    @property
    def _storage(self) -> Storage:
        if self._core is None:
            first = self._tensor
            if first is None:
                assert self._raw is not None
                first = held_by(self._raw, self._where)
            core = local.rec.storage_of(first)
            self._hold(core)
            _objects[id(core)] = self
        return local.rec.storage_of(self._tensor)

    @property
    def device(self) -> Any:
        return self._where

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def nbytes(self) -> int:
        """Its size in bytes."""
        if self._raw is not None:
            return self._raw.nbytes
        meta = self._tensor._tmeta if self._core is None else self._core.meta
        return meta.numel * meta.dtype.itemsize

    size = __len__ = nbytes

    def element_size(self) -> int:
        """1: its elements are bytes."""
        return 1

    def data_ptr(self) -> int:
        """The address that tensors on it have in common; 0 where there is none."""
        if not self.nbytes() or self.device.type == "meta":
            return 0
        return address_of(self._storage)

    @property
    def _cdata(self) -> int:
        return id(self._storage)

    def _bytes(self) -> np.ndarray:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if self._raw is not None:
            return self._raw.view(np.uint8)
        return memory_of(self._storage).view(np.uint8)

    def _as_elements(self, dtype: dtypes.dtype | None) -> Tensor:
        return self._as_tensor(dtypes.int64 if dtype is None else dtype)

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._bytes().tolist()

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, (int, slice)):
            kind = type(index).__name__
            raise TypeError(f"can't index a torch.UntypedStorage with {kind}")
        if isinstance(index, slice) and index.step not in (None, 1):
            raise RuntimeError(
                f"Trying to slice with a step of {index.step}, but only a step of 1 is "
                "supported"
            )
        held, have = self._bytes(), self.nbytes()
        if isinstance(index, int) and not -have <= index < have:
            raise IndexError(f"index {index} out of range for storage of size {have}")
        found = held[index]
        return int(found) if isinstance(index, int) else untyped_of(found, self._where)

    def __setitem__(self, index: Any, value: int) -> None:
        if not isinstance(value, int):
            raise RuntimeError(
                "can only set storage content with a int types, but got "
                f"{type(value).__name__} instead"
            )
        changed = self._bytes().copy()
        if isinstance(index, int) and not -len(changed) <= index < len(changed):
            raise RuntimeError("out of bounds")
        changed[index] = value & 255
        self._write(changed)

    def _write(self, changed: np.ndarray) -> None:
        """Puts other bytes in the place of these, for all tensors that show them."""
        if self._raw is not None:
            self._raw = changed
            return
        own = self._storage.meta.dtype
        values = changed.view(dtypes.array_dtype(own))
        with untracked():
            self._uncounted(own).copy_(from_array(place(values, self.device)))

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> Any:
        """Takes the bytes of a storage of this size; RuntimeError for others."""
        if not isinstance(source, UntypedStorage):
            raise TypeError(wrong("copy_", "src", 1, "torch.Storage", source))
        if self.nbytes() != source.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was "
                f"{source.nbytes()} bytes"
            )
        if source.device.type == "meta" != self.device.type:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if self.device.type != "meta":
            self._write(source._bytes().copy())
        return self

    def fill_(self, value: int) -> Any:
        """Sets all bytes."""
        if not isinstance(value, int):
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        if self.device.type != "meta":
            self[:] = value
        return self

    def resize_(self, size: int) -> Any:
        """Takes another number of bytes; fewer only before tensors show them."""
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            what = dtypes.type_name(type(size))
            raise RuntimeError(f"resize_ expects an int, but got {what}")
        have = self.nbytes()
        if size == have:
            return self
        if size < 0:
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. "
                "alloc_cpu() seems to have been called with negative number: "
                f"{size + 2**64}"
            )
        if self._raw is None:
            core = self._storage
            if size < have:
                raise NotImplementedError(
                    "UntypedStorage.resize_(): memory that tensors show does not "
                    "become smaller"
                )
            lengthen(core, size, dtypes.uint8)
            self._hold(core)
            return self
        if self.device.type == "meta":
            self._raw = np.zeros(size, np.uint8)
        else:
            self._raw = lengthened(self._bytes()[:size], size, dtypes.uint8)
        return self

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Turns the order of the bytes of each number around."""
        if not isinstance(dtype, dtypes.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        changed = self._bytes().copy()
        width = 1 if dtype.is_complex else 0
        size = dtype.itemsize // (2 if width else 1)
        self._write(
            np.ascontiguousarray(changed.reshape(-1, size)[:, ::-1]).reshape(-1)
        )

    def new(self) -> UntypedStorage:
        """An empty storage on this device."""
        return UntypedStorage(device=self.device)

    def type(self, dtype: Any = None) -> str:
        """The name of the class."""
        if dtype is not None:
            raise NotImplementedError("UntypedStorage.type() takes no dtype here")
        return "torch.storage.UntypedStorage"

    @staticmethod
    def from_buffer(*args: Any, **kwargs: Any) -> UntypedStorage:
        """The bytes of a buffer, numbers of `dtype` in the order that is said."""
        return untyped_of(bytes_of(*args, **kwargs), storage_device())

    is_hpu = False

    @property
    def filename(self) -> str | None:
        """The file that the memory is and that is written to, if there is one."""
        found = None if self._core is None else mapping_of(self._storage)
        return None if found is None else found.filename

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether a GPU reads the memory directly: never."""
        return False

    def pin_memory(self, device: Any = None) -> Any:
        """Refused: a copy to an accelerator is begun from tensors only."""
        if self.device.type != "cpu":
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        if current_accelerator() is None:
            raise RuntimeError(
                "Cannot access accelerator device when none is available."
            )
        raise NotImplementedError(
            "UntypedStorage.pin_memory() is not supported: pin tensors"
        )

    def resizable(self) -> bool:
        """Whether it can take more bytes: not where the memory is another library's."""
        return self._core is None or self._core.shared is None

    def share_memory_(self) -> Any:
        """Moves the memory to where other processes see it."""
        if self.device.type == "meta":
            raise RuntimeError("_share_fd_: only available on CPU")
        if self.device.type == "cpu":
            share(tensor_on(self._storage))
        return self

    def _share_fd_cpu_(self, *args: Any) -> Any:
        return self._share("_share_fd_")

    def _share_filename_cpu_(self, *args: Any) -> Any:
        return self._share("_share_filename_")

    def _share_cuda_(self, *args: Any) -> Any:
        if not device_count("cuda"):
            raise RuntimeError("CUDA is not available")
        raise NotImplementedError(_OWN_MEMORY.format("_share_cuda_"))

    def _share(self, name: str) -> Any:
        if self.device.type != "cpu":
            raise RuntimeError(f"{name}: only available on CPU")
        raise NotImplementedError(_OWN_MEMORY.format(name))

    def _write_file(
        self, file: Any, is_real_file: bool, save_size: bool, element_size: int
    ) -> None:
        """Writes the bytes, after the number of elements where `save_size`."""
        if self.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if save_size:
            file.write((self.nbytes() // element_size).to_bytes(8, "little"))
        file.write(self._bytes().tobytes())

    def get_device(self) -> int | None:
        """The number of the device; None for the CPU."""
        return self.device.index

    def __sizeof__(self) -> int:
        return 32 + self.nbytes()

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._storage is other._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def clone(self) -> UntypedStorage:
        """A copy."""
        if self.device.type == "meta":
            return UntypedStorage(self.nbytes(), device=self.device)
        return untyped_of(self._bytes().copy(), self.device)

    __copy__ = clone

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """Itself where it is on the device, else a copy there."""
        wanted = device_of("UntypedStorage", device)
        if wanted == self.device:
            return self
        if self.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return untyped_of(self._bytes(), wanted)

    def cpu(self) -> UntypedStorage:
        """Itself where it is on the CPU, else a copy there."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Itself where it is on the GPU, else a copy there."""
        if device is None or isinstance(device, int):
            device = f"cuda:{device or 0}"
        return self.to(device=device)

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def __reduce__(self) -> Any:
        return _rebuild_untyped, (self._bytes().tobytes(),)

    def is_shared(self) -> bool:
        """Whether other processes see the memory; always on an accelerator."""
        if self.device.type in ("cpu", "meta"):
            return self._raw is None and mapping_of(self._storage) is not None
        return True

    def _uncounted(self, dtype: dtypes.dtype) -> Tensor:
        """A tensor on this storage of whose writes no other's version tells."""
        whole = self._as_tensor(dtype)
        whole._own_version = [0]
        return whole

    def _as_tensor(self, dtype: dtypes.dtype) -> Tensor:
        if self._raw is not None and self._tensor is None and not is_mapped(self._raw):
            # Nobody has seen these bytes as numbers yet.
            if self._raw.nbytes % dtype.itemsize == 0:
                self._raw = self._raw.view(dtypes.array_dtype(dtype))
        storage = self._storage
        kind = storage.meta.dtype
        if kind is not dtype:
            count = storage.meta.numel * kind.itemsize // dtype.itemsize
            with untracked():
                whole = self._as_tensor(kind)[: count * dtype.itemsize // kind.itemsize]
                return whole.view(dtype)
        whole = tensor_on(storage)
        if len(storage.meta.shape) == 1 and storage.meta.contiguous:
            return whole
        with untracked():
            return whole.as_strided((storage.meta.numel,), (1,), 0)

    def __repr__(self) -> str:
        known = self.device.type != "meta"
        body = lines_of(self.tolist()) if known else "...\n"
        kind = f"torch.storage.UntypedStorage(device={self.device})"
        return f"{body}[{kind} of size {self.nbytes()}]"

    __str__ = __repr__


def lines_of(values: list[Any]) -> str:
    """The values of a storage, as its text shows them."""
    return " " + "\n ".join(map(str, values)) + "\n"


def untyped_of(data: np.ndarray, device: Any) -> UntypedStorage:
    """A storage on memory that nobody will write to, on a device."""
    made = _new(UntypedStorage)
    made._start(data, device)
    return made


def held_by(flat: np.ndarray, device: Any, strides: Any = None) -> Tensor:
    """A tensor on memory that nobody else writes to; mapped files stay mapped."""
    if device.type == "cpu" and is_mapped(flat):
        dtype = dtypes.from_array_dtype(flat.dtype)
        return sharing(flat, dtype=dtype, lazy=True)
    return from_array(place(flat, device), device=device, strides=strides)


def is_mapped(array: np.ndarray) -> bool:
    """Whether the memory is a file's."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return isinstance(array, np.memmap)


def storage_device(device: Any = None) -> Any:
    """Where a storage is made: on the CPU, where nothing else is said."""
    return device_of("UntypedStorage", "cpu" if device is None else device)


def _rebuild_untyped(data: bytes) -> UntypedStorage:
    return untyped_of(np.frombuffer(data, np.uint8), storage_device())


def bytes_of(
    buffer: Any,
    byte_order: str | None = None,
    count: int = -1,
    offset: int = 0,
    *,
    dtype: dtypes.dtype,
) -> np.ndarray:
    """The bytes of numbers in a buffer, in this machine's order."""
    size = dtype.itemsize
    if byte_order is None and size > 1:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(
            f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
        )
    raw = np.frombuffer(buffer, np.uint8)
    if count < 0:
        if (len(raw) - offset) % size:
            raise ValueError(
                f"buffer size ({len(raw)}) must be a multiple of element size ({size})"
            )
        count = (len(raw) - offset) // size
    if offset + count * size > len(raw):
        raise ValueError(
            f"buffer has only {len(raw) - offset} elements after offset {offset}, but "
            f"specified a size of {count}"
        )
    kept = raw[offset : offset + count * size].copy()
    if byte_order == "big" and sys.byteorder == "little":
        width = size // 2 if dtype.is_complex else size
        kept = np.ascontiguousarray(kept.reshape(-1, width)[:, ::-1]).reshape(-1)
    return (kept != 0).view(np.uint8) if dtype is dtypes.bool_ else kept


# Tensors' storages by identity; what is shown of one is one object.
_objects: weakref.WeakValueDictionary[int, UntypedStorage]
_objects = weakref.WeakValueDictionary()


@public(namespaces=(), method=True)
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that the tensor shows (part of).

    Views of one tensor have the same; its size is in bytes.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.untyped_storage.html

    >>> import torchshim as torch
    >>> x = torch.arange(4)
    >>> x[1:].untyped_storage().nbytes()
    32
    """
    check_storage(self)
    return shown(local.rec.storage_of(self))


def shown(storage: Storage) -> UntypedStorage:
    """The one object that programs see of a storage."""
    found = _objects.get(id(storage))
    if found is None or found._core is not storage:
        found = _new(UntypedStorage)
        found._hold(storage)
        _objects[id(storage)] = found
    return found
