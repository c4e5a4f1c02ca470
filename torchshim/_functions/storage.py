"""Storages: the memory under tensors, as `torch.UntypedStorage` shows it.

https://docs.pytorch.org/docs/2.13/storage.html
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.meta import meta_of
from torchshim._core.record import local
from torchshim._core.storage import Storage
from torchshim._derived import public
from torchshim._functions._arguments import warn
from torchshim._functions.creation import _no_grad, place
from torchshim._tensor import Tensor, address_of, from_array

_new = object.__new__

DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage "
    "will be the only storage class. This should only matter to you if you are using "
    "storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)


def memory_of(storage: Storage) -> np.ndarray:
    """The elements of a storage in the order of its memory (not to be written to)."""
    if storage.shared is not None:
        base = storage.shared.memory
    else:
        base = np.asarray(local.rec.base_array_of(storage))
    order = sorted(range(base.ndim), key=lambda d: -storage.meta.strides[d])
    return np.ascontiguousarray(base.transpose(order)).reshape(-1)


def tensor_on(storage: Storage, cls: Any = Tensor) -> Any:
    """A tensor on the whole of a storage, as its base sees it."""
    made = _new(cls)
    made._slot = -1
    made._array = None
    made._meta = storage.meta
    storage.add(made)
    return made


class UntypedStorage:
    """The bytes under tensors.

    >>> import torchshim as torch
    >>> torch.ones(2).untyped_storage().nbytes()
    8
    """

    __module__ = "torch.storage"
    __slots__ = ("__weakref__", "_storage", "_tensor")

    is_sparse = False
    is_sparse_csr = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs or len(args) > 1:
            raise NotImplementedError(
                "UntypedStorage(): only a size or a sequence of bytes is supported"
            )
        data: Any = args[0] if args else 0
        if isinstance(data, int):
            held = np.zeros(data, np.uint8)
        else:
            held = np.array(list(data), np.uint8)
        base = from_array(place(held, _cpu()), device=_cpu())
        self._hold(local.rec.storage_of(base))

    def _hold(self, storage: Storage) -> None:
        # A tensor alone on a storage would take the memory back.
        self._storage = storage
        self._tensor = tensor_on(storage)

    @property
    def device(self) -> Any:
        return self._storage.meta.device

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def nbytes(self) -> int:
        """Its size in bytes."""
        meta = self._storage.meta
        return meta.numel * meta.dtype.itemsize

    size = __len__ = nbytes

    def element_size(self) -> int:
        """1: its elements are bytes."""
        return 1

    def data_ptr(self) -> int:
        """The address that tensors on it have in common; 0 where it is empty."""
        return address_of(self._storage) if self.nbytes() else 0

    @property
    def _cdata(self) -> int:
        return id(self._storage)

    def _bytes(self) -> np.ndarray:
        return memory_of(self._storage).view(np.uint8)

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._bytes().tolist()

    def __getitem__(self, index: Any) -> Any:
        found = self._bytes()[index]
        return int(found) if isinstance(index, int) else UntypedStorage(found)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._storage is other._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(self._bytes())

    def cpu(self) -> UntypedStorage:
        """Itself where it is on the CPU, else a copy there."""
        return self if self.device.type == "cpu" else self.clone()

    def is_shared(self) -> bool:
        """Whether other processes see the memory: never."""
        return False

    def _as_tensor(self, dtype: dtypes.dtype) -> Tensor:
        storage = self._storage
        if storage.meta.dtype is not dtype:
            raise NotImplementedError(
                f"a storage of {storage.meta.dtype} seen as {dtype} is not supported"
            )
        whole = tensor_on(storage)
        if len(storage.meta.shape) == 1 and storage.meta.contiguous:
            return whole
        with _no_grad():
            return whole.as_strided((storage.meta.numel,), (1,), 0)

    def __repr__(self) -> str:
        body = "".join(f" {value}\n" for value in self.tolist())
        kind = f"torch.storage.UntypedStorage(device={self.device})"
        return f"{body}[{kind} of size {self.nbytes()}]"

    __str__ = __repr__


def _cpu() -> Any:
    from torchshim._functions._arguments import device_of

    return device_of("UntypedStorage", "cpu")


class TypedStorage:
    """The elements under tensors; deprecated, see `UntypedStorage`."""

    __module__ = "torch.storage"
    __slots__ = ("__weakref__", "_untyped", "dtype")

    def __init__(self, untyped: UntypedStorage, dtype: dtypes.dtype) -> None:
        self._untyped = untyped
        self.dtype = dtype

    @property
    def device(self) -> Any:
        return self._untyped.device

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped

    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._untyped.nbytes()

    def size(self) -> int:
        """The number of its elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address that tensors on it have in common."""
        return self._untyped.data_ptr()

    @property
    def _cdata(self) -> int:
        return self._untyped._cdata

    def _values(self) -> np.ndarray:
        return self._untyped._bytes().view(dtypes.array_dtype(self.dtype))

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        found = self._values()
        if found.dtype.kind not in "?biufc":
            found = found.astype(np.float32)
        return found.tolist()

    def __getitem__(self, index: int) -> Any:
        return self.tolist()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _as_tensor(self, dtype: dtypes.dtype) -> Tensor:
        return self._untyped._as_tensor(dtype)

    def is_shared(self) -> bool:
        """Whether other processes see the memory: never."""
        return False

    def __reduce__(self) -> Any:
        return _rebuild_storage, (self._untyped._bytes().tobytes(), self.dtype)

    def __repr__(self) -> str:
        body = "".join(f" {value}\n" for value in self.tolist())
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{body}[{kind} of size {self.size()}]"

    __str__ = __repr__


def _rebuild_storage(data: bytes, dtype: dtypes.dtype) -> TypedStorage:
    held = np.frombuffer(bytearray(data), dtypes.array_dtype(dtype))
    base = from_array(place(held, _cpu()), device=_cpu())
    untyped = _new(UntypedStorage)
    untyped._hold(local.rec.storage_of(base))
    return TypedStorage(untyped, dtype)


# Tensors' storages by identity; what is shown of one is one object.
_objects: weakref.WeakValueDictionary[int, UntypedStorage]
_objects = weakref.WeakValueDictionary()


@public(namespaces=(), method=True)
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that the tensor shows (part of)."""
    storage = local.rec.storage_of(self)
    found = _objects.get(id(storage))
    if found is None or found._storage is not storage:
        found = _new(UntypedStorage)
        found._hold(storage)
        _objects[id(storage)] = found
    return found


@public(namespaces=(), method=True)
def _typed_storage(self: Tensor) -> TypedStorage:
    return TypedStorage(untyped_storage(self), self._meta.dtype)


@public(namespaces=(), method=True)
def storage(self: Tensor) -> TypedStorage:
    """The memory that the tensor shows, as elements; deprecated."""
    warn(DEPRECATED)
    return _typed_storage(self)


@public
def is_storage(obj: Any, /) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


def _rebuild_tensor_v2(
    storage: TypedStorage,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor on a storage, as pickles of tensors have it."""
    core = storage._untyped._storage
    size, stride = tuple(size), tuple(stride)
    meta = meta_of(size, storage.dtype, core.meta.device, stride, storage_offset)
    if meta is core.meta:
        made = tensor_on(core)
    else:
        array = _strided(memory_of(core), meta)
        if core.shared is None and len(core.tensors()) == 1:
            # Nobody else is on this memory: the tensor has it to itself.
            made = from_array(
                place(array, core.meta.device), device=core.meta.device, strides=stride
            )
        else:
            with _no_grad():
                made = tensor_on(core).as_strided(size, stride, storage_offset)
            made._base = None
    if requires_grad:
        made.requires_grad_()
    if backward_hooks:
        made._backward_hooks = backward_hooks
    return made


def _strided(flat: np.ndarray, meta: Any) -> np.ndarray:
    """A copy of the elements that a geometry shows of a row of memory."""
    if 0 in meta.shape:
        return np.zeros(meta.shape, flat.dtype)
    seen = np.lib.stride_tricks.as_strided(
        flat[meta.offset :],
        meta.shape,
        tuple(s * flat.itemsize for s in meta.strides),
        writeable=False,
    )
    return np.array(seen, order="C")
