"""Typed storages: the elements under tensors, as `torch.FloatStorage` shows them.

https://docs.pytorch.org/docs/2.13/storage.html
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from torchshim import _warnings as warnings
from torchshim._core import dtypes
from torchshim._core.extent import check_extent
from torchshim._core.record import untracked
from torchshim._derived import NEVER, public
from torchshim._errors import called_by_us, warn
from torchshim._functions.storage import (
    UntypedStorage,
    bytes_of,
    lines_of,
    storage_device,
    untyped_of,
    untyped_storage,
)
from torchshim._tensor import Tensor

DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage "
    "will be the only storage class. This should only matter to you if you are using "
    "storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)


# Whether the warning is given every time; whether it was given (`torch.set_warn_always`
# does not matter here).
always_warn = [False]
has_warned = [False]


def warn_of_removal(stacklevel: int = 2) -> None:
    """Warns that typed storages will go."""
    if always_warn[0]:
        warnings.warn(DEPRECATED, UserWarning, stacklevel=stacklevel + 2)
    elif not has_warned[0]:
        warn(DEPRECATED)
    has_warned[0] = True


def announced(function: Any) -> Any:
    """A method that warns its caller, but for this package and for `_internal`."""

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        if not called_by_us() and not kwargs.get("_internal"):
            warn_of_removal(1)
        return function(*args, **kwargs)

    return method


_FORMS = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one "
    "of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)"
)


class TypedStorage:
    """The elements under tensors; deprecated, see `UntypedStorage`.

    https://docs.pytorch.org/docs/2.13/storage.html

    >>> import torchshim as torch
    >>> storage = torch.tensor([1.5, 2.5])[1:].storage()
    >>> storage[0], storage.dtype, len(storage), storage.nbytes()
    (1.5, torch.float32, 2, 8)
    """

    __module__ = "torch.storage"
    __slots__ = ("__weakref__", "_untyped", "dtype")

    is_sparse = False
    is_hpu = False

    @property
    def filename(self) -> str | None:
        """The file that the memory is and that is written to, if there is one."""
        return self._untyped.filename

    def __init__(
        self,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if args and isinstance(args[0], UntypedStorage):
            wrap_storage, *args = args  # type: ignore[assignment]
            dtype = args.pop() if args else dtype  # type: ignore[attr-defined]
        wrong, error = "", RuntimeError
        if wrap_storage is not None and args:
            wrong = "No positional arguments should be given when using 'wrap_storage'"
        elif wrap_storage is not None and dtype is None:
            wrong = "Argument 'dtype' must be specified"
        elif wrap_storage is not None and not isinstance(dtype, dtypes.dtype):
            wrong = f"Argument 'dtype' must be torch.dtype, not {type(dtype)}"
            error = TypeError
        elif wrap_storage is not None and device is not None:
            wrong = (
                "Argument 'device' should not be specified when 'wrap_storage' is given"
            )
        elif wrap_storage is not None and not isinstance(wrap_storage, UntypedStorage):
            kind = type(wrap_storage)
            wrong = f"Argument 'wrap_storage' must be UntypedStorage, but got {kind}"
            error = TypeError
        elif len(args) > 1:
            wrong = "Too many positional arguments"
        elif args and not is_data(args[0]):
            wrong, error = f"Argument type not recognized: {type(args[0])}", TypeError
        if wrong:
            raise error(f"{_FORMS}\n{wrong}")
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtype
        if not isinstance(self.dtype, dtypes.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        if wrap_storage is None:
            wrap_storage = new_untyped(args[0] if args else 0, self.dtype, device)
        self._untyped = wrap_storage

    @property
    def device(self) -> Any:
        return self._untyped.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped.is_cuda

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the legacy class, or the elements in another dtype."""
        if dtype is None and self.device.type == "meta":
            return "torch.storage.TypedStorage"
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        return self._to(_dtype_of(dtype))

    def pickle_storage_type(self) -> str:
        """The name of the legacy class within torch."""
        return f"{self.dtype.scalar_name}Storage"

    def _to(self, dtype: dtypes.dtype) -> TypedStorage:
        if dtype is self.dtype:
            return self
        if self.device.type == "meta":
            return TypedStorage(len(self), dtype=dtype, device=self.device)
        made: Any = self._as_tensor(self.dtype).to(dtype)
        return _typed_storage(made)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self._untyped

    def resizable(self) -> bool:
        """Whether it can take more elements."""
        return self._untyped.resizable()

    def share_memory_(self) -> TypedStorage:
        """Moves the memory to where other processes see it."""
        self._untyped.share_memory_()
        return self

    def pin_memory(self, device: Any = None) -> Any:
        """Refused: a copy to an accelerator is begun from tensors only."""
        return self._untyped.pin_memory(device)

    def _share_fd_cpu_(self, *args: Any) -> Any:
        return self._untyped._share_fd_cpu_(*args)

    def _share_filename_cpu_(self, *args: Any) -> Any:
        return self._untyped._share_filename_cpu_(*args)

    def _share_cuda_(self, *args: Any) -> Any:
        return self._untyped._share_cuda_(*args)

    def _write_file(self, *args: Any) -> None:
        self._untyped._write_file(*args)

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

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Takes the elements of a storage of this size."""
        if source.dtype is self.dtype or self.nbytes() != source.nbytes():
            self._untyped.copy_(source._untyped)
            return self
        self._untyped.copy_(source._to(self.dtype)._untyped)
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Sets all elements."""
        self[:] = value
        return self

    def resize_(self, size: int) -> None:
        """Takes another number of elements."""
        self._untyped.resize_(size * self.dtype.itemsize)

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(self._untyped.clone(), self.dtype)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def cpu(self) -> TypedStorage:
        """Itself where it is on the CPU, else a copy there."""
        return TypedStorage(self._untyped.cpu(), self.dtype)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Itself where it is on the GPU, else a copy there."""
        return TypedStorage(self._untyped.cuda(device), self.dtype)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """Itself where it is on the device, else a copy there."""
        return TypedStorage(self._untyped.to(device=device), self.dtype)

    @staticmethod
    def from_buffer(*args: Any, **kwargs: Any) -> TypedStorage:
        """The numbers of a buffer, in the order of bytes that is said."""
        dtype = kwargs.get("dtype", dtypes.get_default_dtype())
        found = bytes_of(*args, **kwargs | {"dtype": dtype})
        return TypedStorage(untyped_of(found, storage_device()), dtype)

    @staticmethod
    def from_file(filename: str, shared: bool, size: int) -> TypedStorage:
        """Of the classes for one dtype: so many numbers of a file, see
        `UntypedStorage.from_file`. Of this class it is refused.
        """
        raise RuntimeError("from_file can only be called on derived classes")

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether a GPU reads the memory directly: never."""
        return False

    def get_device(self) -> int | None:
        """The number of the device; None for the CPU."""
        return self._untyped.get_device()

    def __sizeof__(self) -> int:
        return 24 + self.nbytes()

    def _values(self) -> np.ndarray:
        return self._untyped._bytes().view(dtypes.array_dtype(self.dtype))

    def _as_elements(self, dtype: dtypes.dtype | None) -> Tensor:
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        if dtype is not self.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, "
                f"but got {self.dtype.scalar_name}"
            )
        return self._as_tensor(dtype)

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        found = self._values()
        if found.dtype.kind not in "?biufc":
            found = found.astype(np.float32)
        return found.tolist()

    def __getitem__(self, index: int) -> Any:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            raise RuntimeError(
                "slices are only supported in UntypedStorage.__getitem__"
            )
        self._check_index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"index {index} out of range for storage of size {len(self)}"
            )
        return self.tolist()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            self._check_index(index)
        with untracked():
            self._untyped._uncounted(self.dtype)[index] = value

    def _check_index(self, index: Any) -> None:
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _as_tensor(self, dtype: dtypes.dtype) -> Tensor:
        return self._untyped._as_tensor(dtype)

    _size = size
    _nbytes = nbytes
    _data_ptr = data_ptr
    _element_size = element_size
    _getitem = __getitem__

    def is_shared(self) -> bool:
        """Whether other processes see the memory; always on an accelerator."""
        return self._untyped.is_shared()

    # What PyTorch itself calls, without a warning.
    _is_shared, _share_memory_ = is_shared, share_memory_
    _resize_, _setitem = resize_, __setitem__
    _pickle_storage_type = pickle_storage_type

    def __reduce__(self) -> Any:
        return _rebuild_storage, (self._untyped._bytes().tobytes(), self.dtype)

    def __repr__(self) -> str:
        known = self.device.type != "meta"
        body = lines_of(self.tolist()) if known else "...\n"
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{body}[{kind} of size {self.size()}]"

    __str__ = __repr__


def is_data(data: Any) -> bool:
    """Whether a typed storage can be made of `data`."""
    return isinstance(data, (int, np.integer, Sequence))


# The names of the old classes, which say what a storage holds.
KINDS: dict[str, dtypes.dtype] = {
    f"{d.scalar_name}Storage": d
    for d in (
        *(dtypes.float64, dtypes.float32, dtypes.float16, dtypes.int64, dtypes.int32),
        *(dtypes.int16, dtypes.int8, dtypes.uint8, dtypes.bool_, dtypes.bfloat16),
        *(dtypes.complex128, dtypes.complex64),
    )
}


def _dtype_of(kind: Any) -> dtypes.dtype:
    """The dtype that `type()` is given: itself, or by a class or its name."""
    if isinstance(kind, str):
        kind = KINDS.get(kind.rpartition(".")[2], kind)
    return getattr(kind, "dtype", kind)


def _conversion(dtype: dtypes.dtype) -> Any:
    def convert(self: Any) -> TypedStorage:
        if isinstance(self, UntypedStorage):
            # Of a copy: what tensors show of the memory has a dtype.
            self = TypedStorage(wrap_storage=self.clone(), dtype=dtypes.uint8)
        return self._to(dtype)

    convert.__doc__ = f"The elements in {dtype}."
    return convert


for _name, _dtype in (
    *(("double", dtypes.float64), ("float", dtypes.float32), ("half", dtypes.float16)),
    *(("long", dtypes.int64), ("int", dtypes.int32), ("short", dtypes.int16)),
    *(("char", dtypes.int8), ("byte", dtypes.uint8), ("bool", dtypes.bool_)),
    *(("bfloat16", dtypes.bfloat16), ("complex_float", dtypes.complex64)),
    ("complex_double", dtypes.complex128),
    *((d.name, d) for d in dtypes.DTYPES if d.name.startswith("float8") and d.np),
):
    setattr(TypedStorage, _name, _conversion(_dtype))
    setattr(UntypedStorage, _name, _conversion(_dtype))


for _name in (
    *"__init__ __len__ __getitem__ __setitem__ __iter__ __sizeof__ __repr__".split(),
    *"__copy__ bfloat16 bool byte char clone complex_double complex_float".split(),
    *"copy_ cpu cuda data_ptr double element_size fill_ float get_device half".split(),
    *"int is_pinned is_shared long nbytes pickle_storage_type pin_memory".split(),
    *"resizable resize_ share_memory_ short size to tolist type untyped".split(),
):
    setattr(TypedStorage, _name, announced(getattr(TypedStorage, _name)))
TypedStorage.__str__ = TypedStorage.__repr__
for _name in ("device", "is_cuda"):
    _read = vars(TypedStorage)[_name].fget
    setattr(TypedStorage, _name, property(announced(_read)))


def new_untyped(data: Any, dtype: dtypes.dtype, device: Any) -> UntypedStorage:
    """Memory that holds so many zeros, or these numbers."""
    where = storage_device(device)
    if isinstance(data, (int, np.integer)):
        check_extent((int(data),), dtype.itemsize)
        values = np.zeros(data, dtypes.array_dtype(dtype))
    elif isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        values = np.array(data, dtypes.array_dtype(dtype))
    else:
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    return untyped_of(np.frombuffer(values.tobytes(), np.uint8), where)


def _rebuild_storage(data: bytes, dtype: dtypes.dtype) -> TypedStorage:
    raw = np.frombuffer(data, np.uint8)
    return TypedStorage(untyped_of(raw, storage_device()), dtype)


@public(namespaces=(), method=True)
def _typed_storage(self: Tensor) -> TypedStorage:
    return TypedStorage(untyped_storage(self), self._tmeta.dtype)


@public(namespaces=(), method=True)
def storage(self: Tensor) -> TypedStorage:
    """The memory that the tensor shows, as elements; deprecated.

    Deprecated for `untyped_storage`, with a warning.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.storage.html

    >>> import torchshim as torch
    >>> torch.tensor([1.5, 2.5])[1:].storage().tolist()
    [1.5, 2.5]
    """
    warn_of_removal()
    return _typed_storage(self)


@public(overridden=NEVER)
def is_storage(obj: Any, /) -> bool:
    """Whether `obj` is a storage.

    Of either kind, typed or untyped.

    https://docs.pytorch.org/docs/2.13/generated/torch.is_storage.html

    >>> import torchshim as torch
    >>> x = torch.ones(1)
    >>> torch.is_storage(x), torch.is_storage(x.untyped_storage())
    (False, True)
    """
    return isinstance(obj, (TypedStorage, UntypedStorage))
