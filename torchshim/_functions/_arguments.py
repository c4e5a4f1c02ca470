"""Arguments that many functions have in common: sizes, dtype, device and the like.

The texts of errors are those of PyTorch's argument parser.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._arguments import NO_BOOL
from torchshim._core import dtypes
from torchshim._core.device import (
    as_device,
    current_accelerator,
    get_default_device,
    resolve,
)
from torchshim._core.dtypes import as_dtype
from torchshim._core.extent import check_extent
from torchshim._core.layout import layout as Layout
from torchshim._core.layout import strided
from torchshim._core.storage import TensorBase, bits_of
from torchshim._errors import warn as warn
from torchshim._errors import warn_once as warn_once

NO_INTEGER_GRADIENT = (
    "Only Tensors of floating point and complex dtype can require gradients"
)


def kind_of(value: Any) -> str:
    """The name of a value's type in PyTorch's texts."""
    if isinstance(value, TensorBase):
        name = type(value).__name__
        return name if name == "Parameter" else "Tensor"
    return dtypes.type_name(type(value))


def only_bools(*values: Any) -> None:
    """Raises unless all are; which is not, the parser says of functions of `torch`."""
    if not all(isinstance(value, (bool, np.bool_)) for value in values):
        raise TypeError("a bool is expected")


def all_tensors(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """What was given, if it is tensors."""
    for i, each in enumerate(given):
        if not isinstance(each, TensorBase):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {kind_of(each)}"
            )
    return given


def wrong(function: str, name: str, position: int, expected: str, value: Any) -> str:
    """The text of a TypeError; position 0: given by keyword."""
    where = f" (position {position})" if position else ""
    return (
        f"{function}(): argument '{name}'{where} must be {expected}, not "
        f"{kind_of(value)}"
    )


def missing(function: str, *names: str) -> TypeError:
    """The error for required arguments that were not given."""
    plural = "" if len(names) > 1 else "s"
    listed = ", ".join(f'"{n}"' for n in names)
    return TypeError(
        f"{function}() missing {len(names)} required positional argument{plural}: "
        f"{listed}"
    )


def as_index(value: Any, *, single: bool = False) -> int | None:
    """An integer argument, or None if it is none.

    `single`: a tensor of one element is one, too, whatever its dimensions.
    """
    if value.__class__ is int:
        return value
    if isinstance(value, TensorBase):
        meta = value._tmeta
        many = meta.shape.numel() != 1 if single else meta.shape
        if many or meta.dtype.category > dtypes.INTEGER:
            return None
        if meta.dtype is dtypes.bool_:
            if single:
                raise RuntimeError(NO_BOOL)
            return None
        return value.__index__()  # type: ignore[attr-defined]
    if isinstance(value, (bool, float, str)) or not hasattr(value, "__index__"):
        return None
    try:
        return value.__index__()
    except TypeError:
        return None


def size_of(
    function: str, given: tuple[Any, ...], keyword: Any = None, name: str = "size"
) -> tuple[int, ...]:
    """A size given as one sequence, as several integers or by keyword."""
    position = 1
    if not given:
        if keyword is None:
            raise missing(function, name)
        given, position = (keyword,), 0
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        items: Sequence[Any] = given[0]
    elif len(given) == 1 and (
        given[0].__class__ is bool or as_index(given[0], single=position == 1) is None
    ):
        raise TypeError(wrong(function, name, position, "tuple of ints", given[0]))
    else:
        items = given
    sizes: list[int] = []
    for at, item in enumerate(items):
        size = item if item.__class__ is int else as_index(item, single=True)
        if at and isinstance(item, bool):  # an integer, but where it stands first
            size = int(item)
        if size is None:
            raise TypeError(
                f"{function}(): argument '{name}' failed to unpack the object at pos "
                f'{at + 1} with error "type must be tuple of ints,but got '
                f'{kind_of(item)}"'
            )
        sizes.append(size)
    return tuple(sizes)


def check_size(function: str, size: tuple[int, ...]) -> None:
    """Raises for a negative length, and for more dimensions than arrays can have."""
    if len(size) > 64:
        raise RuntimeError("only tensors with up to 64 dims are supported")
    for length in size:
        if length < 0:
            if function == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {length}: "
                f"{list(size)}"
            )
    check_count(size)


def check_count(size: tuple[int, ...]) -> None:
    """Raises where strides or the number of elements are beyond 64 bits."""
    count = math.prod(size)
    if not count and math.prod(max(n, 1) for n in size[1:]) >= 2**63:
        raise RuntimeError("Stride calculation overflowed")
    if count >= 2**61:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)}"
        )


def check_room(size: tuple[int, ...], dtype: dtypes.dtype, device: Any) -> None:
    """Raises where a new tensor on the CPU is larger than its memory."""
    if device.type == "cpu":
        check_extent(size, dtype.itemsize)


def dtype_of(function: str, dtype: Any) -> dtypes.dtype | None:
    """The argument `dtype`; Python's types stand for dtypes."""
    if dtype is None or dtype.__class__ is dtypes.dtype:
        return dtype
    found = as_dtype(dtype)
    if found is None:
        raise TypeError(wrong(function, "dtype", 0, "torch.dtype", dtype))
    return found


def device_of(function: str, device: Any, found_by: Any = resolve) -> Any:
    """The device that a tensor will be on.

    `found_by` is `linked` for functions that say so otherwise where it is missing.
    """
    if device is None:
        return get_default_device()
    found = as_device(device)
    if found is None:
        raise TypeError(wrong(function, "device", 0, "torch.device", device))
    return found_by(found)


def check_options(
    function: str,
    layout: Any,
    pin_memory: Any,
    requires_grad: Any,
    none_is_false: bool = True,
) -> None:
    """Refuses what is wrong or not supported among the rarer arguments."""
    if layout is not None and layout is not strided:
        if layout.__class__ is not Layout:
            raise TypeError(wrong(function, "layout", 0, "torch.layout", layout))
        raise NotImplementedError(
            f"{function}(): layout={layout} is not supported; sparse_coo_tensor(size) "
            "makes a sparse tensor without values"
        )
    for name, value in (("pin_memory", pin_memory), ("requires_grad", requires_grad)):
        given = not (none_is_false and value is None)
        if given and not isinstance(value, (bool, np.bool_)):
            raise TypeError(wrong(function, name, 0, "bool", value))
    if pin_memory and current_accelerator() is None:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned "
            "memory allocator is available on this system."
        )


def check_gradient(dtype: dtypes.dtype, requires_grad: bool) -> None:
    """Raises where a tensor of this dtype is asked to require grad."""
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(NO_INTEGER_GRADIENT)


def tensor_argument(function: str, name: str, position: int, value: Any) -> Any:
    """An argument that must be a tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(wrong(function, name, position, "Tensor", value))
    return value


def is_number(value: Any) -> bool:
    """Whether an argument counts as a number: 0-dim tensors without gradient do."""
    if isinstance(value, TensorBase):
        return not (value._tmeta.shape or value._tmeta.requires_grad)
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def number_of(function: str, name: str, position: int, value: Any) -> Any:
    """An argument that must be a number, as Python's own."""
    if isinstance(value, (bool, int, float, complex)):
        # Subclasses (np.float64) must not reach a recording's keys.
        kind = value.__class__
        if kind in (bool, int, float, complex):
            return value
        item = getattr(value, "item", None)
        return value if item is None else item()
    if not is_number(value):
        raise TypeError(wrong(function, name, position, "Number", value))
    if isinstance(value, np.complexfloating):
        return float(value)  # as PyTorch takes it, with NumPy's warning
    return value.item()


def unfit(function: str) -> TypeError:
    """The error for arguments that fit none; `_refusal` says which signatures fit."""
    return TypeError(f"{function}() received an invalid combination of arguments")


def combination(
    function: str, args: Sequence[Any], kwargs: dict[str, Any], signatures: str
) -> TypeError:
    """The error for arguments that fit none of several signatures (one a line)."""
    got = [kind_of(a) for a in args]
    got += [f"{k}={kind_of(v)}" for k, v in kwargs.items()]
    listed = "".join(f" * {line.strip()}\n" for line in signatures.strip().splitlines())
    return TypeError(
        f"{function}() received an invalid combination of arguments - got "
        f"({', '.join(got)}), but expected one of:\n{listed}"
    )


def is_known(tensor: TensorBase) -> bool:
    """Whether a tensor's value can be read without running what is recorded."""
    storage = tensor._storage
    if storage is None:
        return tensor._array is not None
    return storage.array is not None or storage.shared is not None


def check_retyped(tensor: TensorBase, dtype: Any) -> None:
    """Raises for what cannot be read as another dtype: conjugated, negated views.

    And for a place in memory that only the arguments of a slice tell.
    """
    for bit in bits_of(tensor):
        which = "conjugate view tensors"
        if bit == "neg":
            which = "tensors with negative bit set"
        raise RuntimeError(
            f"torch.Tensor.view is not supported for {which} when converting to a "
            "different dtype."
        )
    old = tensor._tmeta.dtype
    ratio = dtype.itemsize // old.itemsize
    shape = tensor._tmeta.shape
    if ratio > 1 and shape and not shape[-1] % ratio:
        offset = tensor.storage_offset()  # type: ignore[attr-defined]
        if offset % ratio:
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {ratio} to view "
                f"{old.scalar_name} as {dtype.scalar_name} (different element sizes), "
                f"but got {offset}"
            )
