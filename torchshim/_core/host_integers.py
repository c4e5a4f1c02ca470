"""Random whole numbers, orders and choices, bit for bit as PyTorch's on a CPU.

The conventions are those of `host_random`.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from torchshim import _warnings as warnings
from torchshim._core.host_dtypes import (
    NAMES,
    DTypeLike,
    as_dtype,
    check_bound,
    check_kernel,
    digits_of,
)
from torchshim._core.host_math import (
    HALVES,
    cast,
)
from torchshim._core.host_random import (
    exponential,
    unit64,
)
from torchshim._core.mt19937 import MT19937
from torchshim._errors import triggered

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def random_integers(
    generator: MT19937,
    size: int,
    dtype: DTypeLike = "int64",
    low: int | None = None,
    high: int | None = None,
) -> np.ndarray:
    """Whole numbers in [low, high), as `Tensor.random_` and `torch.randint`.

    Without bounds: 0 up to the dtype's largest (for floating types up to the largest
    whole number that they hold exactly). Without `high`: up to that number, and all
    64 bits when `low` is the least int64. RuntimeError for empty ranges and for
    bounds that the dtype can't hold.

    >>> random_integers(MT19937(0), 5, "int64", 0, 10)
    array([4, 9, 3, 0, 3])
    """
    dtype = as_dtype(dtype)
    if low is None:
        return _random_plain(generator, size, dtype)
    if high is None and low == _INT64_MIN:
        return _random_all_bits(generator, size, dtype)
    low, last = bounds(dtype, low, high)
    span = last - low + 1
    # PyTorch takes 64 bits from 2**28 on, to keep the skew of the remainder small.
    draws = generator.draw64(size) if span >= 2**28 else generator.draw32(size)
    if span < 2**64:
        draws = draws % np.uint64(span)
    return cast((draws + np.uint64(low % 2**64)).view(np.int64), dtype)


def bounds(dtype: np.dtype, low: int | None, high: int | None) -> tuple[int, int]:
    """The least and the largest number that `random_integers` draws.

    >>> bounds(np.dtype("uint8"), None, None), bounds(np.dtype("int64"), 2, 5)
    ((0, 255), (2, 4))
    """
    if low is None:
        return 0, _plain_span(dtype) - 1
    digits = digits_of(dtype)
    if high is None and low == _INT64_MIN:
        _check_all_bits(dtype)
        return _INT64_MIN, _INT64_MAX
    if high is None:
        last = 2**digits if digits else 1 if dtype.kind == "b" else np.iinfo(dtype).max
        if digits:
            low = _raised(low, dtype)
            if low >= last:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than or equal "
                    "to 'to_inc' casted to dtype, but got "
                    f"from={low} > to_inc={last}"
                )
    else:
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' to be less than 'to', but got "
                f"from={low} >= to={high}"
            )
        if digits:
            low, high = _raised(low, dtype), _lowered(high, dtype)
            if low >= high:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than 'to' "
                    f"casted to dtype, but got from={low} >= to={high}"
                )
        last = high - 1
    _check_range(low, last, dtype)
    return low, last


def _plain_span(dtype: np.dtype) -> int:
    check_kernel(dtype, "random_kernel_cpu")
    digits = digits_of(dtype)
    if digits:
        return 2**digits + 1
    return 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1


def _random_plain(generator: MT19937, size: int, dtype: np.dtype) -> np.ndarray:
    if size == 0:
        return np.empty(0, dtype)
    span = _plain_span(dtype)
    wide = dtype in (np.dtype(np.int64), np.dtype(np.float64))
    draws = generator.draw64(size) if wide else generator.draw32(size)
    return cast((draws % np.uint64(span)).view(np.int64), dtype)


def _random_all_bits(generator: MT19937, size: int, dtype: np.dtype) -> np.ndarray:
    if size == 0:
        return np.empty(0, dtype)
    _check_all_bits(dtype)
    return cast(generator.draw64(size).view(np.int64), dtype)


def _check_all_bits(dtype: np.dtype) -> None:
    kernel = "random_full_64_bits_range_kernel_cpu"
    check_kernel(dtype, kernel, ("bool", "float16"))
    if dtype.name not in ("int64", "float64", "float32", "bfloat16"):
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")


def _through(value: int, dtype: np.dtype) -> int:
    """`value` as the floating dtype holds it; C++ makes infinity the least int64."""
    held = float(cast(np.array([value]), dtype)[0])
    return int(held) if -(2.0**63) <= held < 2.0**63 else _INT64_MIN


def _raised(low: int, dtype: np.dtype) -> int:
    """The least bound from `low` on that no rounding to the dtype falls below."""
    held = _through(low + 1, dtype)
    if held < low:
        low = held + 2 ** (abs(low + 1).bit_length() - digits_of(dtype))
    return low


def _lowered(high: int, dtype: np.dtype) -> int:
    """The largest bound up to `high` that no rounding to the dtype reaches."""
    held = _through(high - 1, dtype)
    if held >= high:
        high = held - 2 ** (abs(high - 1).bit_length() - digits_of(dtype))
    return high


def _check_range(low: int, last: int, dtype: np.dtype) -> None:
    digits, kind = digits_of(dtype), NAMES[dtype.name][1]
    if dtype.kind == "c":
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean "
            "types"
        )
    if digits:
        largest = float(ml_dtypes.finfo(dtype).max)
        bounds = (-largest, largest)
    elif dtype.kind == "b":
        bounds = (0, 1)
    else:
        limits = np.iinfo(dtype)
        bounds = (int(limits.min), min(int(limits.max), _INT64_MAX))
    check_bound("from", low, *bounds, dtype)
    check_bound("to - 1", last, *bounds, dtype)
    for name, value in (("from", low), ("to - 1", last)) if digits else ():
        if abs(value) > 2**digits:
            text = (
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to "
                f"precision limitations {kind} can support discrete uniform "
                "distribution only within this range. This warning will become an "
                "error in version 1.7 release, please fix the code in advance"
            )
            where = "aten/src/ATen/native/DistributionTemplates.h:111"
            warnings.warn(triggered(text, where), UserWarning, stacklevel=3)


def randperm(generator: MT19937, size: int, dtype: DTypeLike = "int64") -> np.ndarray:
    """A random order of 0 … size - 1, as `torch.randperm`.

    >>> randperm(MT19937(0), 5)
    array([4, 0, 1, 3, 2])
    """
    if size >= (2**32 - 1) // 20:
        order = inside_out(generator, size)
    elif size < _SHORT:
        order = _swapped(generator, size)
    else:
        order = _swapped_at_once(generator, size)
    return cast(order, as_dtype(dtype))


# Below this length a Python loop is faster than the dozen array operations.
_SHORT = 300


def _targets(generator: MT19937, size: int) -> np.ndarray:
    """For each place i but the last, the place in i … size - 1 that it swaps with."""
    places = np.arange(max(size - 1, 0), dtype=np.uint64)
    draws = generator.draw32(places.size)
    return (draws % (np.uint64(size) - places) + places).view(np.int64)


def _swapped(generator: MT19937, size: int) -> np.ndarray:
    order = list(range(size))
    for i, j in enumerate(_targets(generator, size).tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def _swapped_at_once(generator: MT19937, size: int) -> np.ndarray:
    """The same swaps without a loop.

    What place i ends with is what its target held: the target's own number, or what
    was moved there by the last earlier swap with the same target, which is what that
    swap's place held when its turn came. So each place points to the swap that wrote
    it last, and following the pointers to their ends (doubling) gives all values.
    """
    places = np.arange(size)
    targets = np.append(_targets(generator, size), size - 1)
    held = places.copy()  # held[i]: who wrote place i before its own turn, or itself
    moved = targets != places
    held[targets[moved]] = places[moved]  # the last writer wins
    while True:
        further = held[held]
        if np.array_equal(further, held):
            break
        held = further
    keys = np.sort((targets << 32) | places)
    target, place = keys >> 32, keys & 0xFFFFFFFF
    order = targets.copy()
    again = np.flatnonzero(target[1:] == target[:-1]) + 1
    order[place[again]] = held[place[again - 1]]
    return order


def inside_out(generator: MT19937, size: int) -> np.ndarray:
    """PyTorch's shuffle for lengths that 32 bits would skew."""
    order = np.zeros(size, np.int64)
    view = order.data
    step = 1 << 20
    for start in range(0, size, step):
        places = np.arange(start, min(start + step, size), dtype=np.uint64)
        draws = generator.draw64(places.size) % (places + np.uint64(1))
        for i, j in enumerate(draws.tolist(), start):
            view[i] = view[j]
            view[j] = i
    return order


def multinomial(
    generator: MT19937,
    weights: np.ndarray,
    count: int,
    replacement: bool = False,
    turned: bool = False,
) -> np.ndarray:
    """Indices drawn by weight, as `torch.multinomial`: (count,) or (rows, count).

    `weights` is a floating array of one row or several. RuntimeError for weights that
    are negative, not finite or all zero. Without replacement PyTorch picks the `count`
    largest of noisy scores; equal scores (zero weights, 16-bit types) come here in
    the order of their indices, in PyTorch in the order its selection leaves them in.
    The noise is drawn in the order of memory: column by column for `turned` weights.

    >>> multinomial(MT19937(0), np.float32([1, 0, 2]), 2, True).tolist()
    [2, 2]
    """
    rows = weights.reshape(-1, weights.shape[-1])
    wide = rows.astype(np.float32) if rows.dtype in HALVES else rows
    if replacement and count > 1:
        chosen = _with_replacement(generator, wide, count)
        return chosen.reshape(*weights.shape[:-1], count)
    if not ((wide.max(initial=0) < np.inf) and (wide.min(initial=0) >= 0)):
        raise RuntimeError(
            "probability tensor contains either `inf`, `nan` or element < 0"
        )
    if (wide.sum(-1) == 0).any():
        raise RuntimeError(
            "invalid multinomial distribution (sum of probabilities <= 0)"
        )
    race = exponential(generator, rows.size, rows.dtype)
    race = race.reshape(rows.shape[::-1]).T if turned else race.reshape(rows.shape)
    with np.errstate(divide="ignore"):
        race = cast(wide / race.astype(wide.dtype), rows.dtype)
    if count == 1:
        chosen = race.argmax(-1)[:, None]
    else:
        chosen = np.argsort(-race.astype(wide.dtype), -1, kind="stable")[:, :count]
    return chosen.reshape(*weights.shape[:-1], count)


def _with_replacement(generator: MT19937, rows: np.ndarray, count: int) -> np.ndarray:
    if (rows < 0).any() or np.isnan(rows).any():
        raise RuntimeError(
            "invalid multinomial distribution (encountering probability entry < 0)"
        )
    if np.isinf(rows).any():
        raise RuntimeError(
            "invalid multinomial distribution (encountering probability entry = "
            "infinity or NaN)"
        )
    chosen = np.empty((len(rows), count), np.int64)
    for row, out in zip(rows, chosen, strict=True):
        total = np.cumsum(row, dtype=row.dtype)
        if not total[-1] > 0:
            raise RuntimeError(
                "invalid multinomial distribution (sum of probabilities <= 0)"
            )
        total = (total / total[-1]).astype(np.float64)
        total[-1] = 1
        out[:] = np.searchsorted(total, unit64(generator, count))
    return chosen
