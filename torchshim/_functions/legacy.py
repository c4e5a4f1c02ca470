"""The old constructors: `torch.Tensor(2, 3)`, `torch.FloatTensor([1, 2])`.

https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim import _parser
from torchshim._arguments import is_integer_array
from torchshim._core import dtypes
from torchshim._core.device import as_device, device_count
from torchshim._core.layout import strided
from torchshim._core.meta import Size
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._functions._arguments import device_of, kind_of
from torchshim._functions._values import is_sequence
from torchshim._functions.construct import as_tensor, tensor_from
from torchshim._functions.creation import filled
from torchshim._functions.defaults import default_type_device
from torchshim._tensor import Tensor

_LEGACY = """
    (*, torch.device device = None)
    (torch.Storage storage)
    (Tensor other)
    (tuple of ints size, *, torch.device device = None)
    (object data, *, torch.device device = None)
"""


def _is_size(value: Any) -> bool:
    if value.__class__ is bool:
        return False
    return isinstance(value, (int, np.integer)) or is_integer_array(value)


def legacy(
    cls: type, dtype: dtypes.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """`torch.Tensor(...)`, `torch.FloatTensor(...)`: sizes, data or another tensor."""
    on_device = "device" in kwargs
    device = kwargs.pop("device", None)
    if not args and len(kwargs) == 1 and isinstance(kwargs.get("other"), TensorBase):
        args = (kwargs.pop("other"),)
    if on_device and not kwargs and args and isinstance(args[0], TensorBase):
        new = cls is object  # as `Tensor.new` has it
        form = (
            "new of the form tensor.new(tensor, device=device) is not supported.  Use"
            if new
            else "constructor of the form torch.Tensor(tensor, device=device) is not "
            "supported.  Use torch.tensor(...) or"
        )
        raise RuntimeError(f"Legacy tensor {form} torch.as_tensor(...) instead.")
    if not args and len(kwargs) == 1 and "size" in kwargs:
        size = kwargs.pop("size")
        args = (Size(size),) if is_sequence(size) else (size,)
    if kwargs:
        raise _incorrect(args, kwargs)
    asked = None if device is None else as_device(device)
    if asked is not None and asked.type != "cpu":
        raise RuntimeError(
            "legacy constructor expects device type: cpu but device type: "
            f"{asked.type} was passed"
        )
    where = default_type_device() if device is None else device_of("new", device)
    if not args:
        return filled("new", (0,), None, dtype, where)
    first: Any = args[0]
    if len(args) > 1 or _is_size(first):
        return filled("new", _sizes(args), None, dtype, where)
    if first.__class__.__name__ == "Size":
        return filled("new", tuple(first), None, dtype, where)
    if isinstance(first, TensorBase):
        own = first._tmeta
        if not issubclass(cls, Tensor) and own.dtype is not dtype:
            raise TypeError(f"expected {_options(dtype)} (got {_options(own.dtype)})")
        return fns.alias(first)
    if hasattr(first, "_as_tensor"):  # storages have it
        own = getattr(first, "dtype", dtype)
        if own is not dtype:
            raise RuntimeError(
                f"Expected a Storage of type {dtype.cpp_name.capitalize()} or an "
                f"UntypedStorage, but got type {own.scalar_name} for argument 1 "
                "'storage'"
            )
        return first._as_tensor(dtype)
    if isinstance(first, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if isinstance(first, np.ndarray):
        return as_tensor(first, dtype, where)
    if not is_sequence(first):
        raise TypeError(
            f"new(): data must be a sequence (got {dtypes.type_name(type(first))})"
        )
    return tensor_from(first, dtype, where)


def _options(dtype: dtypes.dtype) -> str:
    names = {"int64": "long int", "int32": "int", "float64": "double"}
    kind = names.get(dtype.name, dtype.cpp_name)
    return (
        f"TensorOptions(dtype={kind}, device=cpu, layout=Strided, requires_grad=false "
        "(default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    if args[0].__class__ is bool or not is_index(args[0]):
        raise _incorrect(args, {})
    for at, value in enumerate(args):
        if not is_index(value):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {at + 1} "
                f'with error "type must be tuple of ints,but got {kind_of(value)}"'
            )
    return tuple(v.__index__() for v in args)


def is_index(value: Any) -> bool:
    """Whether a value is an integer, or a tensor that holds one."""
    if isinstance(value, TensorBase):
        exact = not (value.is_floating_point() or value.is_complex())  # type: ignore[attr-defined]
        return exact and value._tmeta.shape.numel() == 1
    return hasattr(value, "__index__")


def _incorrect(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    got = [kind_of(a) for a in args] + [f"{k}={kind_of(v)}" for k, v in kwargs.items()]
    lines = []
    # Two values could be for the first signature's `device`, by its deprecated order.
    marked = () if kwargs else (0,) if len(args) == 2 else (3, 4)
    for number, line in enumerate(_LEGACY.strip().splitlines()):
        lines.append(f" * {line.strip()}\n")
        if number in marked:
            kinds = ", ".join(f"!{_parser.nested_kind(value)}!" for value in args)
            lines.append(
                "      didn't match because some of the arguments have invalid types: "
                f"({kinds})\n"
            )
        elif kwargs and not number:
            lines.append(
                "      didn't match because some of the keywords were incorrect: "
                f"{', '.join(kwargs)}\n"
            )
    return TypeError(
        f"new() received an invalid combination of arguments - got ({', '.join(got)}), "
        f"but expected one of:\n{''.join(lines)}"
    )


def _new_tensor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`torch.Tensor(...)`, also for subclasses."""
    made = legacy(Tensor, dtypes.get_default_dtype(), args, kwargs)
    return made if cls is Tensor else made.as_subclass(cls)


Tensor.__new__ = _new_tensor


class tensortype(type):
    """The class of `torch.FloatTensor` and its like."""

    __module__ = "torch"
    dtype: dtypes.dtype
    layout = strided
    is_cuda = False
    is_sparse = False
    is_xpu = False

    def __new__(mcs, name: str, bases: tuple[type, ...], attrs: Any) -> Any:
        for base in bases:
            if isinstance(base, tensortype):
                raise TypeError(
                    f"type '{base.__module__}.{base.__name__}' is not an acceptable "
                    "base type"
                )
        return super().__new__(mcs, name, bases, attrs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TensorBase)
            and instance._tmeta.dtype is cls.dtype
            and instance._tmeta.device.type == "cpu"
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return legacy(cls, cls.dtype, args, kwargs)

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


class cuda_tensortype(tensortype):
    """The class of `torch.cuda.FloatTensor` and its like."""

    is_cuda = True

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TensorBase)
            and instance._tmeta.dtype is cls.dtype
            and instance._tmeta.device.type == "cuda"
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        if not device_count("cuda"):
            raise TypeError(
                f"type torch.cuda.{cls.__name__} not available. Torch not compiled "
                "with CUDA enabled."
            )
        made: Any = legacy(cls, cls.dtype, args, kwargs)
        return made.to("cuda")

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"


def _tensor_types(kind: type[tensortype], module: str) -> dict[str, tensortype]:
    made: dict[str, tensortype] = {}
    for d in dtypes.DTYPES:
        numbers = ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double")
        if d.scalar_name in (*numbers, "Bool", "BFloat16"):
            name = f"{d.scalar_name}Tensor"
            made[name] = kind(name, (), {"dtype": d, "__module__": module})
    return made


TENSOR_TYPES = _tensor_types(tensortype, "torch")
CUDA_TENSOR_TYPES = _tensor_types(cuda_tensortype, "torch.cuda")


@public(namespaces=(), method=True)
def new(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """As the constructor of the tensor's legacy type: sizes or data.

    >>> import torchshim as torch
    >>> torch.tensor([1, 2]).new([3, 4]), torch.tensor([1, 2]).new(2, 3).shape
    (tensor([3, 4]), torch.Size([2, 3]))
    """
    return legacy(object, self._tmeta.dtype, args, named)
