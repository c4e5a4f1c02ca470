"""Tensors from data: `tensor`, `as_tensor`, `from_numpy`, `frombuffer`, …

https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from torchshim._core import dtypes
from torchshim._core.device import as_device
from torchshim._core.meta import meta_of
from torchshim._core.promotion import promote
from torchshim._core.shared import Shared
from torchshim._core.storage import Storage, TensorBase
from torchshim._derived import public
from torchshim._functions._arguments import (
    check_gradient,
    check_options,
    device_of,
    dtype_of,
    missing,
    number_of,
    warn,
    warn_once,
)
from torchshim._functions.creation import place
from torchshim._tensor import Tensor, from_array

_PLAIN = frozenset((int, float, bool, complex))
_new = object.__new__

SLOW_LIST = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please "
    "consider converting the list to a single numpy.ndarray with numpy.array() before "
    "converting to a tensor. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/utils/tensor_new.cpp:252.)"
)
SCALAR_WITH_GRAD = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
    "behavior.\nConsider using tensor.detach() first. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/autograd/generated/python_variable_methods.cpp:822"
    ".)"
)
NEGATIVE_STRIDE = (
    "At least one stride in the given numpy array is negative, and tensors with "
    "negative strides are not currently supported. (You can probably work around this "
    "by making a copy of your array  with array.copy().) "
)
NOT_WRITABLE = (
    "The given NumPy array is not writable, and PyTorch does not support non-writable "
    "tensors. This means writing to this tensor will result in undefined behavior. You "
    "may want to copy the array to protect its data or make it writable before "
    "converting it to a tensor. This type of warning will be suppressed for the rest of "
    "this program. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/utils/tensor_numpy.cpp:213.)"
)
NOT_WRITABLE_BUFFER = (
    "The given buffer is not writable, and PyTorch does not support non-writable "
    "tensors. This means you can write to the underlying (supposedly non-writable) "
    "buffer using the tensor. You may want to copy the buffer to protect its data or "
    "make it writable before converting it to a tensor. This type of warning will be "
    "suppressed for the rest of this program. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/utils/tensor_new.cpp:1556.)"
)
# Values -------------------------------------------------------------------------------


def cast_host(array: np.ndarray, np_dtype: np.dtype[Any]) -> np.ndarray:
    """A numpy array in another dtype, where a value does not fit as C on x86 has it.

    >>> cast_host(np.float32([300, -1, np.nan]), np.dtype("uint8"))
    array([ 44, 255,   0], dtype=uint8)
    """
    if array.dtype == np_dtype:
        return array
    if np_dtype.kind == "b":
        return array != 0
    if array.dtype.kind == "c" and np_dtype.kind != "c":
        array = array.real
    if np_dtype.kind in "iu" and array.dtype.kind not in "iub":
        long = np_dtype.itemsize == 8 or np_dtype == np.uint32
        wide = np.dtype(np.int64 if long else np.int32)
        array = array.astype(np.float64)
        if np_dtype == np.uint64:
            high = array >= 2.0**63
            low = np.where(high, array - 2.0**63, array).astype(np.int64)
            return low.astype(np.uint64) + (high.astype(np.uint64) << np.uint64(63))
        limit = 2.0 ** (8 * wide.itemsize - 1)
        fits = (array >= -limit) & (array < limit)
        array = np.where(fits, np.where(fits, array, 0).astype(wide), -int(limit))
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np_dtype)


def is_sequence(value: Any) -> bool:
    """Whether PyTorch takes a value for a sequence of elements."""
    kind = value.__class__
    if kind is list or kind is tuple or kind is range:
        return True
    if isinstance(value, (str, bytes, dict, set, TensorBase, np.generic)):
        return False
    if isinstance(value, np.ndarray):
        return bool(value.ndim)
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _plain(data: Any) -> bool:
    """Whether nested lists hold Python's own numbers only."""
    kind = data.__class__
    if kind in _PLAIN:
        return True
    if kind is not list and kind is not tuple:
        return False
    kinds = set(map(type, data))
    if kinds <= _PLAIN:
        return True
    return kinds <= {list, tuple} and all(map(_plain, data))


def _inferred(data: Any) -> dtypes.dtype | None:
    """The dtype that holds everything in nested sequences; None where there is none."""
    kind = data.__class__
    if kind is float:
        return dtypes.get_default_dtype()
    if kind is int:
        return dtypes.int64
    if kind is bool:
        return dtypes.bool_
    if kind is complex:
        return dtypes.get_default_complex_dtype()
    if isinstance(data, TensorBase):
        return data._meta.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        return dtypes.from_numpy_dtype(data.dtype)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if isinstance(data, int):
        return dtypes.int64
    if isinstance(data, float):
        return dtypes.get_default_dtype()
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {kind.__name__}")
    found: dtypes.dtype | None = None
    for item in data:
        one = _inferred(item)
        if one is not None:
            found = one if found is None else promote(found, one)
    return found


def _sizes(data: Any) -> tuple[int, ...]:
    """The size that the first elements of nested sequences imply."""
    sizes: list[int] = []
    while is_sequence(data):
        if isinstance(data, np.ndarray):
            return (*sizes, *data.shape)
        sizes.append(len(data))
        if len(sizes) > 128:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not sizes[-1]:
            break
        data = data[0]
        if isinstance(data, (str, bytes)):
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
    return tuple(sizes)


def _collect(data: Any, sizes: tuple[int, ...], depth: int, out: list[Any]) -> None:
    if depth == len(sizes):
        out.append(data)
        return
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != sizes[depth]:
        raise ValueError(
            f"expected sequence of length {sizes[depth]} at dim {depth} (got "
            f"{len(data)})"
        )
    for item in data:
        _collect(item, sizes, depth + 1, out)


def _element(value: Any, dtype: dtypes.dtype) -> Any:
    """One element as a number that the dtype's kind of array can hold."""
    if isinstance(value, TensorBase):
        if value._meta.requires_grad:
            warn_once(SCALAR_WITH_GRAD)
        value = value._scalar()  # type: ignore[attr-defined]
    elif isinstance(value, (np.generic, np.ndarray)):
        value = value.item()
    if dtype.category == dtypes.COMPLEX:
        return complex(value)
    if dtype.is_floating_point:
        return float(value)
    if dtype.category == dtypes.BOOL:
        return bool(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RuntimeError(_overflow(dtype))
        return int(value)
    if isinstance(value, complex):
        return int(float(value))  # raises Python's own error
    return value.__index__() if hasattr(value, "__index__") else _no_integer(value)


def _no_integer(value: Any) -> Any:
    raise TypeError(
        f"'{type(value).__name__}' object cannot be interpreted as an integer"
    )


def _overflow(dtype: dtypes.dtype) -> str:
    return f"value cannot be converted to type {dtype.name} without overflow"


def _fitted(array: np.ndarray, dtype: dtypes.dtype) -> np.ndarray:
    """Numbers from Python in a dtype; raises for those that it cannot hold."""
    target = dtypes.array_dtype(dtype)
    kind = array.dtype.kind
    if array.dtype == object:
        flat = array.reshape(-1)
        if any(not -(2**63) <= v < 2**63 for v in flat):
            raise ValueError("Overflow when unpacking long long")
        array = array.astype(np.int64)
        kind = "i"
    if kind == "u" and array.size and int(array.max()) >= 2**63:
        raise ValueError("Overflow when unpacking long long")
    if array.size and dtype.category == dtypes.INTEGER:
        if kind == "c":
            raise TypeError("must be real number, not complex")
        limits = np.iinfo(target)
        if kind == "f" and not np.isfinite(array).all():
            raise RuntimeError(_overflow(dtype))
        low = limits.min if limits.min else -limits.max
        least, most = array.min().item(), array.max().item()
        if kind != "b" and not (low <= least and most <= limits.max):
            raise RuntimeError(_overflow(dtype))
    elif array.size and kind == "c" and dtype.is_floating_point:
        raise TypeError("must be real number, not complex")
    return cast_host(array, target)


def values_of(
    data: Any, dtype: dtypes.dtype | None
) -> tuple[np.ndarray, dtypes.dtype]:
    """What nested sequences of numbers hold: a new array, and its dtype."""
    if _plain(data):
        try:
            array = np.array(data)
        except ValueError:
            array = None  # ragged: the search below says where
        if array is not None and array.dtype != object:
            if dtype is None:
                dtype = _of_kind(array)
            return _fitted(array, dtype), dtype
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    sizes = _sizes(data)
    if sizes and any(isinstance(item, np.ndarray) for item in data):
        warn_once(SLOW_LIST)
    if dtype is None:
        dtype = _inferred(data) or dtypes.get_default_dtype()
    flat: list[Any] = []
    if 0 not in sizes:
        _collect(data, sizes, 0, flat)
    held = [_element(v, dtype) for v in flat]
    if dtype.category == dtypes.INTEGER:
        if any(not -(2**63) <= v < 2**63 for v in held):
            raise ValueError("Overflow when unpacking long long")
        array = np.array(held, np.int64)
    else:
        array = np.array(held, np.complex128 if dtype.is_complex else np.float64)
    return _fitted(array, dtype).reshape(sizes), dtype


def _of_kind(array: np.ndarray) -> dtypes.dtype:
    kind = array.dtype.kind
    if kind == "f":
        return dtypes.get_default_dtype()
    if kind == "b":
        return dtypes.bool_
    return dtypes.get_default_complex_dtype() if kind == "c" else dtypes.int64


def _check_numpy(array: np.ndarray) -> dtypes.dtype:
    """The dtype of a numpy array that can become a tensor."""
    dtype = dtypes.from_numpy_dtype(array.dtype)
    if any(s < 0 for s in array.strides):
        raise ValueError(NEGATIVE_STRIDE)
    return dtype


def tensor_from(
    data: Any,
    dtype: dtypes.dtype | None,
    device: Any,
    requires_grad: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`; dtype and device are checked already."""
    if isinstance(data, jax.Array):
        data = np.asarray(data)
        if dtype is None and data.dtype.name not in dtypes._NUMPY_NAMES:
            dtype = dtypes.from_array_dtype(data.dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        data = np.asarray(data)
        own = dtypes.from_array_dtype(data.dtype) if dtype else _check_numpy(data)
        dtype = own if dtype is None else dtype
        array = cast_host(data, dtypes.array_dtype(dtype))
        if array is data or array.base is not None:
            array = array.copy()
        strides = None
    else:
        array, dtype = values_of(data, dtype)
        strides = None
    check_gradient(dtype, requires_grad)
    array = np.ascontiguousarray(array).reshape(array.shape)
    made = place(array, device)
    return from_array(made, requires_grad, device=device, strides=strides)


@public
def tensor(
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named: Any,
) -> Tensor:
    """A new leaf with a copy of `data`: numbers, nested sequences, arrays.

    Raises ValueError where the sequences are ragged, RuntimeError for what is no
    number or does not fit the dtype.

    >>> import torchshim as torch
    >>> torch.tensor([[1, 2.5], [3, 4]])
    tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]])
    """
    if "data" in named:
        args = (*args, named.pop("data"))
    for name in named:
        raise TypeError(f"tensor() got an unexpected keyword argument '{name}'")
    if not args:
        raise missing("tensor", "data")
    if len(args) > 1:
        raise TypeError(
            f"tensor() takes 1 positional argument but {len(args)} were given"
        )
    data = args[0]
    dtype = dtype_of("tensor", dtype)
    check_options("tensor", None, pin_memory, requires_grad)
    if isinstance(data, TensorBase):
        warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "torch.tensor(sourceTensor).",
        )
        return copied(data, dtype, device, requires_grad)
    return tensor_from(data, dtype, device_of("tensor", device), bool(requires_grad))


def copied(data: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A new leaf with the values of a tensor."""
    dtype = dtype or data._meta.dtype
    check_gradient(dtype, requires_grad)
    made = data.detach().to(device=device, dtype=dtype, copy=True)
    return made.requires_grad_() if requires_grad else made


@public
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A number as a 0-dim tensor, of the default dtype unless given.

    >>> import torchshim as torch
    >>> torch.scalar_tensor(3)
    tensor(3.)
    """
    value = number_of("scalar_tensor", "s", 1, s)
    check_options("scalar_tensor", layout, pin_memory, requires_grad)
    dtype = dtype_of("scalar_tensor", dtype) or dtypes.get_default_dtype()
    where = device_of("scalar_tensor", device)
    return tensor_from(value, dtype, where, bool(requires_grad))


# Shared memory ------------------------------------------------------------------------


def sharing(array: np.ndarray, cls: type = Tensor) -> Tensor:
    """A tensor on the memory of a numpy array."""
    dtype = _check_numpy(array)
    size = array.itemsize
    if any(s % size for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy "
            "the numpy array to reallocate the memory."
        )
    made = _new(cls)
    made._slot = -1
    made._array = None
    strides = tuple(s // size for s in array.strides)
    made._meta = meta_of(array.shape, dtype, _cpu(), strides)
    storage = Storage(made)
    made._storage = storage
    storage.shared = Shared(array)
    storage.shared.refresh(storage)
    return made


def _cpu() -> Any:
    return device_of("from_numpy", "cpu")


@public
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on the memory of a numpy array: writes on either side are seen.

    >>> import torchshim as torch
    >>> a = np.zeros(2, np.float32)
    >>> t = torch.from_numpy(a)
    >>> a[0] = 1
    >>> t
    tensor([1., 0.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {_np_name(ndarray)})")
    _check_numpy(ndarray)
    if not ndarray.flags.writeable:
        warn_once(NOT_WRITABLE)
    return sharing(ndarray)


def _np_name(value: Any) -> str:
    kind = type(value)
    if isinstance(value, np.generic):
        return f"numpy.{kind.__name__}"
    return dtypes.type_name(kind)


@public
def frombuffer(
    buffer: Any,
    *,
    dtype: Any = None,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A 1-dim tensor on the memory of an object with Python's buffer protocol.

    >>> import torchshim as torch
    >>> torch.frombuffer(bytearray([1, 2]), dtype=torch.uint8)
    tensor([1, 2], dtype=torch.uint8)
    """
    dtype = dtype_of("frombuffer", dtype)
    if dtype is None:
        raise missing("frombuffer", "dtype")
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    total, size = view.nbytes, dtype.itemsize
    if not total or not count:
        raise ValueError(
            f"both buffer length ({total}) and count ({count}) must not be 0"
        )
    if not 0 <= offset < total:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer "
            f"length ({total} bytes) minus 1"
        )
    if count > 0 and offset + count * size > total:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} "
            "bytes) must not be greater than actual buffer length "
            f"({total} bytes)"
        )
    if count < 0 and (total - offset) % size:
        raise ValueError(
            f"buffer length ({total - offset} bytes) after offset ({offset} bytes) "
            f"must be a multiple of element size ({size})"
        )
    check_gradient(dtype, requires_grad)
    kind = dtypes.array_dtype(dtype)
    array = np.frombuffer(buffer, kind, count, offset)
    if view.readonly:
        warn_once(NOT_WRITABLE_BUFFER)
    if dtype.name in dtypes._NUMPY_NAMES:
        made = sharing(array)
    else:
        made = from_array(array.copy(), device=_cpu())
    return made.requires_grad_() if requires_grad else made


@public
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where that is possible.

    Tensors come back as they are, numpy arrays share their memory.

    >>> import torchshim as torch
    >>> t = torch.ones(2)
    >>> torch.as_tensor(t) is t
    True
    """
    dtype = dtype_of("as_tensor", dtype)
    if isinstance(data, TensorBase):
        return data.to(device=device, dtype=dtype)  # type: ignore[attr-defined]
    if isinstance(data, np.ndarray):
        if not data.flags.writeable:
            warn_once(NOT_WRITABLE)
        where = device_of("as_tensor", device)
        return sharing(data).to(device=where, dtype=dtype)
    return tensor_from(data, dtype, device_of("as_tensor", device))


@public
def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor: tensors, arrays and buffers are shared unless `copy=True`.

    With `copy=False`, ValueError where sharing is not possible.

    >>> import torchshim as torch
    >>> torch.asarray([1, 2], dtype=torch.float32)
    tensor([1., 2.])
    """
    dtype = dtype_of("asarray", dtype)
    where = None if device is None else device_of("asarray", device)
    made: Any = None
    if isinstance(obj, TensorBase):
        made = obj
        if requires_grad is None and obj._meta.requires_grad:
            warn_once(
                "torch.asarray: unspecified requires_grad now defaults to "
                "obj.requires_grad instead of False. Pass requires_grad=False "
                "explicitly to get the old behavior and silence this warning. "
                "(Triggered internally at "
                "/__w/pytorch/pytorch/torch/csrc/utils/tensor_new.cpp:1737.)"
            )
    elif isinstance(obj, np.ndarray):
        if not obj.flags.writeable and not copy:
            warn_once(NOT_WRITABLE)
        made = sharing(obj)
    elif hasattr(obj, "__dlpack__"):
        made = sharing(np.from_dlpack(obj))
    elif not isinstance(obj, (list, tuple, int, float, complex)):
        try:
            memoryview(obj)
        except TypeError:
            pass
        else:
            kind = dtype or dtypes.get_default_dtype()
            made = frombuffer(obj, dtype=kind)
    if made is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        made = tensor_from(obj, dtype, where or device_of("asarray", None))
    else:
        own = made._meta
        if copy is False:
            if where is not None and where is not own.device:
                raise ValueError(
                    f"can't alias tensor from device '{own.device}' to '{where}'."
                )
            if dtype is not None and dtype is not own.dtype:
                raise ValueError(
                    f"can't alias tensor with dtype '{own.dtype.scalar_name}' into "
                    f"dtype '{dtype.scalar_name}'."
                )
        if copy:
            made = made.clone()
        made = made.to(device=where, dtype=dtype)
    if requires_grad is None or (requires_grad and not made.is_leaf):
        return made
    if made.is_leaf:
        if bool(requires_grad) != made.requires_grad:
            if made is obj and not requires_grad:
                return made.detach()
            made.requires_grad_(bool(requires_grad))
        return made
    return made.detach()


# The old constructors -----------------------------------------------------------------

_LEGACY = """
    (*, torch.device device = None)
    (torch.Storage storage)
    (Tensor other)
    (tuple of ints size, *, torch.device device = None)
    (object data, *, torch.device device = None)
"""


def legacy(
    cls: type, dtype: dtypes.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """`torch.Tensor(...)`, `torch.FloatTensor(...)`: sizes, data or another tensor."""
    from torchshim._functions.creation import filled

    device = kwargs.pop("device", None)
    if kwargs:
        raise _incorrect(args, kwargs)
    asked = None if device is None else as_device(device)
    if asked is not None and asked.type != "cpu":
        raise RuntimeError(
            "legacy constructor expects device type: cpu but device type: "
            f"{asked.type} was passed"
        )
    where = device_of("new", device)
    if not args:
        return filled("new", (0,), 0, dtype, where)
    first = args[0]
    if len(args) > 1 or first.__class__ is int or isinstance(first, np.integer):
        sizes = tuple(v.__index__() for v in args)
        return filled("new", sizes, 0, dtype, where)
    if first.__class__.__name__ == "Size":
        return filled("new", tuple(first), 0, dtype, where)
    if isinstance(first, TensorBase):
        own = first._meta
        if cls is not Tensor and own.dtype is not dtype:
            raise TypeError(f"expected {_options(dtype)} (got {_options(own.dtype)})")
        return first.detach()  # type: ignore[attr-defined]
    if isinstance(first, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if not is_sequence(first) and not isinstance(first, np.ndarray):
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


def _incorrect(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    from torchshim._functions._arguments import kind_of

    got = [kind_of(a) for a in args] + [f"{k}={kind_of(v)}" for k, v in kwargs.items()]
    lines = []
    for number, line in enumerate(_LEGACY.strip().splitlines()):
        lines.append(f" * {line.strip()}\n")
        if not number:
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
    made = legacy(cls, dtypes.get_default_dtype(), args, kwargs)
    return made if cls is Tensor else made.as_subclass(cls)


Tensor.__new__ = _new_tensor  # type: ignore[assignment]


class tensortype(type):
    """The class of `torch.FloatTensor` and its like."""

    __module__ = "torch"
    dtype: dtypes.dtype
    is_cuda = False
    is_sparse = False

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TensorBase)
            and instance._meta.dtype is cls.dtype
            and instance._meta.device.type == "cpu"
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return legacy(cls, cls.dtype, args, kwargs)

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _tensor_types() -> dict[str, tensortype]:
    made: dict[str, tensortype] = {}
    for d in dtypes.DTYPES:
        numbers = ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double")
        if d.scalar_name in (*numbers, "Bool", "BFloat16"):
            name = f"{d.scalar_name}Tensor"
            made[name] = tensortype(name, (), {"dtype": d, "__module__": "torch"})
    return made


TENSOR_TYPES = _tensor_types()


@public(namespaces=(), method=True)
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`, of this tensor's dtype and on its device."""
    check_options("new_tensor", layout, pin_memory, requires_grad)
    dtype = dtype_of("new_tensor", dtype) or self._meta.dtype
    where = self._meta.device if device is None else device_of("new_tensor", device)
    if isinstance(data, TensorBase):
        warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "tensor.new_tensor(sourceTensor).",
        )
        return copied(data, dtype, where, requires_grad)
    return tensor_from(data, dtype, where, bool(requires_grad))


@public(namespaces=(), method=True)
def new(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """As the constructor of the tensor's legacy type: sizes or data."""
    return legacy(type(self), self._meta.dtype, args, named)
