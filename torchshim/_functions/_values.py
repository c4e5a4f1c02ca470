"""What nested sequences of numbers hold: their sizes, dtype and elements.

The rules are those of `torch.tensor`, see
https://docs.pytorch.org/docs/2.13/generated/torch.tensor.html.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.determinism import determinism
from torchshim._core.promotion import holds, promote, within
from torchshim._core.storage import TensorBase
from torchshim._errors import TO_SCALAR, warn_once

_PLAIN = frozenset((int, float, bool, complex))
_MOST_DIMS = 128


def unchosen(dtype: dtypes.dtype) -> Any:
    """The value of elements that nobody has chosen one for: one that shows, or 0."""
    if not determinism.fills:
        return 0
    if dtype.is_floating_point or dtype.is_complex:
        return math.nan
    return True if dtype is dtypes.bool_ else dtypes.iinfo(dtype).max


SLOW_LIST = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please "
    "consider converting the list to a single numpy.ndarray with numpy.array() before "
    "converting to a tensor. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/utils/tensor_new.cpp:252.)"
)


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
        array = np.real(array)
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
    if np_dtype.itemsize == 1 and np_dtype.kind not in "iu":
        array = within(array.astype(np.float64), np_dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np_dtype)


_PYTHONS = frozenset((list, tuple, range))


def _items(data: Any) -> Any:
    """The elements of a sequence of any class; ValueError if it fails to give them."""
    if data.__class__ in _PYTHONS:
        return data
    try:
        return [data[i] for i in range(len(data))]
    except Exception:
        raise ValueError(
            f"could not determine the shape of object type '{type(data).__name__}'"
        ) from None


def is_sequence(value: Any) -> bool:
    """Whether PyTorch takes a value for a sequence of elements."""
    kind = value.__class__
    if kind in _PYTHONS:
        return True
    if isinstance(value, (str, bytes, dict, set, TensorBase, np.generic)):
        return False
    if isinstance(value, np.ndarray):
        return bool(value.ndim)
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _plain(data: Any, depth: int = 0) -> bool:
    """Whether nested lists hold Python's own numbers only."""
    kind = data.__class__
    if kind in _PLAIN:
        return True
    if kind is not list and kind is not tuple:
        return False
    kinds = set(map(type, data))
    if kinds <= _PLAIN:
        return True
    if not kinds <= {list, tuple} or depth > _MOST_DIMS:
        return False  # lists may contain themselves: without a bound that has no end
    return all(_plain(item, depth + 1) for item in data)


def inferred(data: Any) -> dtypes.dtype:
    """What holds everything in nested sequences; the default dtype for an empty one."""
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
        return data._tmeta.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        return dtypes.from_numpy_dtype(data.dtype)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if isinstance(data, int):
        return dtypes.int64
    if isinstance(data, float):
        return dtypes.get_default_dtype()
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {dtypes.type_name(kind)}")
    found: dtypes.dtype | None = None
    for item in _items(data):
        if item is data:
            raise TypeError("new(): self-referential lists are incompatible")
        one = inferred(item)
        found = one if found is None else promote(found, one)
    return dtypes.get_default_dtype() if found is None else found


def _sizes(data: Any) -> tuple[int, ...]:
    """The size that the first elements of nested sequences imply."""
    sizes: list[int] = []
    while is_sequence(data):
        if isinstance(data, np.ndarray):
            return (*sizes, *data.shape)
        sizes.append(len(data))
        if len(sizes) > _MOST_DIMS:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not sizes[-1]:
            break
        data = _items(data)[0]
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
    for item in _items(data):
        _collect(item, sizes, depth + 1, out)


def _element(value: Any, dtype: dtypes.dtype) -> Any:
    """One element as a number that the dtype's kind of array can hold."""
    if isinstance(value, TensorBase):
        if dtype.category <= dtypes.INTEGER:
            value = value.__index__()  # type: ignore[attr-defined]
            return bool(value) if dtype.category == dtypes.BOOL else value
        if value._tmeta.requires_grad:
            warn_once(TO_SCALAR)
        number = value._scalar()  # type: ignore[attr-defined]
        if dtype.is_complex:
            return complex(number)
        if isinstance(number, complex):
            raise RuntimeError(_overflow("double"))
        return float(number)
    elif isinstance(value, np.bool_):
        value = value.item()
    elif dtype.category != dtypes.BOOL and isinstance(value, (np.generic, np.ndarray)):
        value = value.item()
    if dtype.category == dtypes.COMPLEX:
        # `complex` would take strings, and has other words for what is no number.
        return complex(value if hasattr(value, "__complex__") else math.ldexp(value, 0))
    if dtype.is_floating_point:
        return math.ldexp(value, 0)  # `float` would take strings, in other words
    if dtype.category == dtypes.BOOL:
        whole = not isinstance(value, (float, complex))
        return bool(operator.index(value) if whole else value)
    if isinstance(value, float):
        if not math.isfinite(value) or (value < 0 and not np.iinfo(dtype.np).min):
            raise RuntimeError(_overflow(dtype.name))
        return int(value)
    return value.__index__() if hasattr(value, "__index__") else _no_integer(value)


def _no_integer(value: Any) -> Any:
    raise TypeError(
        f"'{type(value).__name__}' object cannot be interpreted as an integer"
    )


def _overflow(name: str) -> str:
    return f"value cannot be converted to type {name} without overflow"


def fitting(value: Any, dtype: dtypes.dtype, *, wide: bool = False) -> Any:
    """The number that elements of a dtype are set to; raises where PyTorch refuses.

    `wide`: half types are filled from a double, and what is larger is infinite, as
    single elements are.
    OverflowError for integers of more than 64 bits, RuntimeError for numbers that do
    not fit the dtype.
    """
    if value.__class__ is int and not -(2**63) <= value < 2**64:
        negative = "can't convert negative int to unsigned"
        raise OverflowError("int too big to convert" if value > 0 else negative)
    if not value:
        return value.real
    bad = False
    if value.__class__ is complex and not dtype.is_complex:
        if dtype is dtypes.bool_:
            return True
        bad = value.imag != 0
        value = value.real
    small = wide and dtype in (dtypes.float16, dtypes.bfloat16)
    bad = bad or not (small or holds(dtype, value))
    if bad:
        name = {"bool": "bool", "int64": "int64_t"}.get(dtype.name, dtype.cpp_name)
        if dtype.category == dtypes.INTEGER:
            name = "int" if dtype is dtypes.int32 else f"{dtype.name}_t"
        if small:
            name = "double"
        raise RuntimeError(_overflow(name))
    return value


def _unsigned(values: list[int]) -> np.ndarray:
    """Integers as uint64; raises for those that are too large, or negative."""
    if any(v < 0 for v in values):
        raise OverflowError("can't convert negative int to unsigned")
    if any(v >= 2**64 for v in values):
        raise OverflowError("int too big to convert")
    return np.array(values, np.uint64)


def _fitted(array: np.ndarray, dtype: dtypes.dtype) -> np.ndarray:
    """Numbers from Python in a dtype; raises for those that it cannot hold."""
    target = dtypes.array_dtype(dtype)
    if dtype.name == "uint64" and array.dtype.kind in "Oiu":
        return _unsigned(array.reshape(-1).tolist()).reshape(array.shape)
    if dtype.name == "uint64" and array.dtype.kind == "f" and array.size:
        raise TypeError("an integer is required")
    kind = array.dtype.kind
    if array.dtype == object:
        flat = array.reshape(-1)
        if dtype.category != dtypes.INTEGER:
            return cast_host(array.astype(np.float64), target)
        if any(not -(2**63) <= v < 2**63 for v in flat):
            raise ValueError("Overflow when unpacking long long")
        array = array.astype(np.int64)
        kind = "i"
    integral = dtype.category == dtypes.INTEGER
    if kind == "u" and integral and array.size and int(array.max()) >= 2**63:
        raise ValueError("Overflow when unpacking long long")
    if array.size and integral:
        if kind == "c":
            _no_integer(1j)
        limits = np.iinfo(target)
        if kind == "f" and not np.isfinite(array).all():
            raise RuntimeError(_overflow(dtype.name))
        low = limits.min if limits.min or kind == "f" else -limits.max
        least, most = array.min().item(), array.max().item()
        if kind != "b" and not (low <= least and most <= limits.max):
            raise RuntimeError(_overflow(dtype.name))
    elif array.size and kind == "c" and dtype.is_floating_point:
        raise TypeError("must be real number, not complex")
    return cast_host(array, target)


def _large(array: np.ndarray) -> bool:
    return bool(array.size) and float(np.abs(array).max()) >= 2**63


def values_of(data: Any, dtype: dtypes.dtype | None) -> tuple[np.ndarray, dtypes.dtype]:
    """What nested sequences of numbers hold: a new array, and its dtype."""
    if _plain(data):
        try:
            array = np.array(data)
        except ValueError:
            array = None  # ragged: the search below says where
        if array is not None and array.dtype == float and _large(array):
            # NumPy makes floats of large integers.
            numbers = np.array(data, object)
            floats = any(isinstance(v, float) for v in numbers.reshape(-1))
            wanted = dtype or (dtypes.float32 if floats else dtypes.int64)
            if wanted.category == dtypes.INTEGER:
                return _fitted(numbers if not floats else array, wanted), wanted
        if array is not None and array.dtype != object:
            if dtype is None:
                dtype = _of_kind(array)
            return _fitted(array, dtype), dtype
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    sizes = _sizes(data)
    if sizes and any(isinstance(item, np.ndarray) for item in _items(data)):
        warn_once(SLOW_LIST)
    if dtype is None:
        dtype = inferred(data)
    flat: list[Any] = []
    if 0 not in sizes:
        _collect(data, sizes, 0, flat)
    held = [_element(v, dtype) for v in flat]
    if dtype.name == "uint64" and all(isinstance(v, int) for v in held):
        return _unsigned(held).reshape(sizes), dtype
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
