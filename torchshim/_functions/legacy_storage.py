"""The old classes of storages: `torch.FloatStorage(3)`, `torch.LongStorage([1, 2])`."""

from __future__ import annotations

from typing import Any

from torchshim._core import dtypes
from torchshim._functions._arguments import device_of
from torchshim._functions.storage import UntypedStorage
from torchshim._functions.typed_storage import (
    KINDS,
    TypedStorage,
    announced,
    is_data,
    new_untyped,
)


class storagetype(type):
    """The class of `torch.FloatStorage` and its like."""

    __module__ = "torch"
    dtype: dtypes.dtype
    device = "cpu"

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TypedStorage)
            and instance.dtype is cls.dtype
            and (instance.device.type == "cuda") is (cls.device == "cuda")
        )

    @announced
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """The numbers of a buffer, in the order of bytes that is said."""
        return TypedStorage.from_buffer(*args, **kwargs, dtype=cls.dtype)

    @announced
    def from_file(cls, filename: str, shared: bool, size: int) -> TypedStorage:
        """So many numbers of a file, see `UntypedStorage.from_file`."""
        held = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(held, cls.dtype)

    @announced
    def __call__(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        if not isinstance(cls.dtype, dtypes.dtype):
            raise RuntimeError(
                "Only child classes of _LegacyStorage can be instantiated"
            )
        wrapped = kwargs.pop("wrap_storage", None)
        kwargs.pop("_internal", None)  # which says not to warn; see `announced`
        _check_given(cls, args, wrapped, kwargs)
        if wrapped is not None:
            return TypedStorage(wrapped, cls.dtype)
        data: Any = args[0] if args else 0
        if isinstance(data, UntypedStorage):
            return TypedStorage(data, cls.dtype)
        where = device_of(cls.__name__, cls.device)
        return TypedStorage(new_untyped(data, cls.dtype, where), cls.dtype)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"

    @property
    def _dtype(cls) -> dtypes.dtype:
        return cls.dtype


def _check_given(cls: Any, args: Any, wrapped: Any, others: Any) -> None:
    """Raises PyTorch's errors about the arguments of an old class."""
    wrong, error = "", RuntimeError
    for name in others:
        if name not in ("dtype", "device"):
            raise TypeError(
                f"TypedStorage.__new__() got an unexpected keyword argument '{name}'"
            )
        wrong = f"Keyword argument '{name}' cannot be specified"
    if wrong:
        pass
    elif wrapped is None:
        wrong = "Too many positional arguments" * (len(args) > 1)
        if len(args) == 1 and not is_data(args[0]):
            error = TypeError
            wrong = f"Argument type not recognized: {type(args[0])}"
    elif args:
        wrong = "No positional arguments should be given when using 'wrap_storage'"
    elif not isinstance(wrapped, UntypedStorage):
        kind, error = type(wrapped), TypeError
        wrong = f"Argument 'wrap_storage' must be UntypedStorage, but got {kind}"
    if wrong:
        raise error(
            f"{cls}.__new__ received an invalid combination of arguments. Expected "
            "one of:\n * no arguments\n * (int size)\n * (Sequence data)\n * (*, "
            f"UntypedStorage wrap_storage)\n{wrong}"
        )


class cuda_storagetype(storagetype):
    """The class of `torch.cuda.FloatStorage` and its like."""

    __module__ = "torch.cuda"
    device = "cuda"

    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """Refused: RuntimeError."""
        raise RuntimeError("from_buffer: Not available for CUDA storage")

    def from_file(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """Refused: RuntimeError."""
        raise RuntimeError("from_file: Not available for CUDA storage")

    def _new_with_weak_ptr(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        raise RuntimeError("_new_with_weak_ptr: Not available for CUDA storage")

    def _new_shared_filename(
        cls, manager: Any, obj: Any, size: Any, *, device: Any = None, dtype: Any = None
    ) -> TypedStorage:
        raise RuntimeError("_new_shared_filename: Not available for CUDA storage")


def _storage_types(meta: Any, module: str) -> dict[str, storagetype]:
    return {
        name: meta(name, (), {"dtype": dtype, "__module__": module})
        for name, dtype in KINDS.items()
    }


STORAGE_TYPES = _storage_types(storagetype, "torch")
CUDA_STORAGE_TYPES = _storage_types(cuda_storagetype, "torch.cuda")
_BY_DTYPE = {kind.dtype: kind for kind in STORAGE_TYPES.values()}


def default_storage() -> storagetype:
    """`torch.Storage`: the class for the default dtype."""
    return _BY_DTYPE[dtypes.get_default_dtype()]
