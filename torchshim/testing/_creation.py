"""Tensors with random values, for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchshim import _warnings as warnings
from torchshim._core import dtypes
from torchshim._derived import fns
from torchshim._functions.creation import empty
from torchshim._functions.random import randint

__all__ = ["make_tensor"]

_WHOLE = tuple(
    getattr(dtypes, name)
    for name in ("bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64".split())
)


def _bounds(
    dtype: Any, low: Any, high: Any, limits: tuple[Any, Any], defaults: tuple[Any, Any]
) -> tuple[Any, Any]:
    """The interval to draw from: what is asked for, within what the dtype holds."""
    low = defaults[0] if low is None else low
    high = defaults[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    whole = dtype in _WHOLE
    if low == high and not whole:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or "
            "complex types is deprecated since 2.1 and will be removed in 2.3. Use "
            "`torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < limits[0] or low >= limits[1]:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but "
            f"{dtype} only supports [{limits[0]}, {limits[1]})"
        )
    low, high = (min(max(v, limits[0]), limits[1]) for v in (low, high))
    return (math.ceil(low), math.ceil(high)) if whole else (low, high)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """A tensor with values between `low` and `high`, at random.

    By default -9 to 9, for unsigned integers 0 to 9. `exclude_zero` puts the smallest
    positive number in place of zeros. ValueError for bounds that make no sense. Follows
    ``torch.testing.make_tensor``.

    >>> import torchshim as torch
    >>> t = torch.testing.make_tensor(2, 3, dtype=torch.int8, device="cpu", low=5)
    >>> t.shape, bool((t >= 5).all())
    (torch.Size([2, 3]), True)
    """
    size: tuple[int, ...] = shape
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        size = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually "
            f"exclusive, but got {noncontiguous=} and {memory_format=}"
        )
    whole = dtype in _WHOLE
    if requires_grad and whole:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, "
            f"but got {dtype=}"
        )
    noncontiguous = noncontiguous and math.prod(size) > 1
    if noncontiguous:
        # Every second element of a row twice as long.
        size = (*size[:-1], 2 * size[-1])
    result: Any
    if whole:
        if dtype is dtypes.bool_:
            limits, defaults = (0, 2), (0, 2)
        else:
            info = dtypes.iinfo(dtype)
            # `randint` cannot draw the largest int64.
            limits = info.min, info.max + (dtype is not dtypes.int64)
            defaults = -9, 10
        low, high = _bounds(dtype, low, high, limits, defaults)
        result = randint(low, high, size, device=device, dtype=dtype)
    elif getattr(dtype, "is_floating_point", False) or (
        getattr(dtype, "is_complex", False)
    ):
        info = dtypes.finfo(dtype)
        start, end = _bounds(dtype, low, high, (info.min, info.max), (-9, 9))
        small = dtype.itemsize == 1
        result = empty(size, device=device, dtype=dtypes.float32 if small else dtype)
        real = fns.view_as_real(result) if dtype.is_complex else result
        if end - start >= dtypes.finfo(real.dtype).max:
            real.uniform_(start / 2, end / 2).mul_(2)
        else:
            real.uniform_(start, end)
        if small:
            result = result.to(dtype)
    else:
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by "
            "torch.testing.make_tensor(). To request support, file an issue at: "
            "https://github.com/pytorch/pytorch/issues"
        )
    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        smallest = 1 if whole else dtypes.finfo(dtype).tiny
        result.masked_fill_(result == 0, smallest)
    if not whole and dtype.itemsize > 1:
        result.requires_grad = requires_grad
    return result
