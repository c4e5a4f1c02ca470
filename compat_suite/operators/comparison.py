"""How what torchshim gives differs from what PyTorch gives.

A value agrees within its dtype's tolerance (`torch.testing.assert_close`'s), or where
it is as near to PyTorch's own result in higher precision as PyTorch's value is: sums in
different orders differ, and neither is the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import torchshim
from compat_suite.closeness import TOLERANCES, close
from compat_suite.operators.values import Known, dtype_name, is_tensor, to_numpy

#: How many times PyTorch's own error torchshim's may be.
SLACK = 4.0


@dataclass(frozen=True)
class Difference:
    """One way in which results differ: its kind, for grouping, and the details."""

    cause: str
    details: str


def compare(
    expected: Any,
    actual: Any,
    reference: Callable[[], Any],
    values: bool = True,
    strides: bool = False,
) -> Difference | None:
    """The first difference between results of PyTorch and torchshim.

    `reference()` gives PyTorch's result in higher precision, or None; it is only asked
    where values differ. `strides` compares the memory order, too.
    """
    found = _of_values(expected, actual, reference, values)
    if found is None and strides:
        for place, left, right in _pairs(expected, actual, "result"):
            if is_tensor(left) and order_of(left) != order_of(right):
                details = f"{tuple(left.shape)}: expected {left.stride()}"
                return Difference(
                    f"{place}: strides", f"{details}, got {right.stride()}"
                )
    return found


def order_of(tensor: Any) -> list[int]:
    """The strides that tell where elements lie."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [stride for size, stride in pairs if size > 1 and tensor.numel()]


def _of_values(
    expected: Any, actual: Any, reference: Callable[[], Any], values: bool
) -> Difference | None:
    different = [
        (place, left, right)
        for place, left, right in _pairs(expected, actual, "result")
        if not is_tensor(left) or _differ(left, right, values)
    ]
    for place, left, right in different:
        if not is_tensor(left):
            return Difference(f"{place}: {left}", str(right))
    if not different:
        return None
    wide = reference()
    for place, left, right in different:
        found = tensors_differ(left, right, _at(wide, expected, left), place)
        if found is not None:
            return found
    return None


def _pairs(a: Any, b: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Pairs of tensors; or, where there is a difference, its cause and details."""
    if is_tensor(a):
        if isinstance(b, torchshim.Tensor):
            yield place, a, b
        else:
            yield place, "expected a tensor", f"got {type(b).__name__}"
    elif isinstance(a, list | tuple):
        if not isinstance(b, list | tuple) or isinstance(a, list) != isinstance(
            b, list
        ):
            yield place, f"expected a {_kind(a)}", f"got {type(b).__name__}"
            return
        names = list(getattr(type(a), "__match_args__", ()))
        if names != list(getattr(type(b), "__match_args__", ())):
            yield place, "names of the fields", f"expected {names}"
        if len(a) != len(b):
            yield place, "number of results", f"expected {len(a)}, got {len(b)}"
            return
        for i, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _pairs(left, right, f"{place}[{names[i] if names else i}]")
    elif isinstance(a, dict):
        if not isinstance(b, dict) or list(a) != list(b):
            yield place, "expected a dict", f"with {list(a)}, got {b!r}"
            return
        for key in a:
            yield from _pairs(a[key], b[key], f"{place}[{key!r}]")
    elif isinstance(a, float | complex) and type(a) is type(b):
        if not bool(close(np.array(a), np.array(b), 1.3e-6, 1e-5)):
            yield place, "values differ", f"expected {a!r}, got {b!r}"
    elif a is not b and repr(a) != repr(b):
        yield place, "results differ", f"expected {a!r}, got {b!r}"


def _kind(value: Any) -> str:
    return "list" if isinstance(value, list) else "tuple"


def _at(wide: Any, expected: Any, tensor: Any) -> Any:
    """The tensor of `wide` that stands where `tensor` stands in `expected`."""
    if expected is tensor:
        return wide if is_tensor(wide) else None
    if isinstance(expected, dict):
        expected = list(expected.values())
        wide = list(wide.values()) if isinstance(wide, dict) else []
    if isinstance(expected, list | tuple) and isinstance(wide, list | tuple):
        for left, right in zip(expected, wide, strict=False):
            found = _at(right, left, tensor)
            if found is not None:
                return found
    return None


def _differ(a: Any, b: Any, values: bool) -> bool:
    if tuple(a.shape) != tuple(b.shape) or dtype_name(a) != dtype_name(b):
        return True
    if not values:
        return False
    tolerance = TOLERANCES.get(dtype_name(a), (0, 0))
    return not close(to_numpy(a), to_numpy(b), *tolerance).all()


def tensors_differ(a: Any, b: Any, wide: Any, place: str) -> Difference | None:
    """How two tensors differ; `wide` is what PyTorch gives in higher precision."""
    if tuple(a.shape) != tuple(b.shape):
        return Difference(
            f"{place}: shape", f"expected {tuple(a.shape)}, got {tuple(b.shape)}"
        )
    if dtype_name(a) != dtype_name(b):
        return Difference(f"{place}: dtype {dtype_name(b)} for {dtype_name(a)}", "")
    left, right = to_numpy(a), to_numpy(b)
    wrong = ~close(left, right, *TOLERANCES.get(dtype_name(a), (0, 0)))
    if left.dtype.kind in "fc":
        if isinstance(a, Known):
            wrong &= ~_as_exact(left, right, left, a.error, dtype_name(a))
        elif wide is not None and wide.shape == a.shape:
            exact = to_numpy(wide)
            worst = error_of(left, exact)
            wrong &= ~_as_exact(left, right, exact, worst, dtype_name(a))
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    old, new = left[first].item(), right[first].item()
    nan = np.isnan(new) != np.isnan(old)
    return Difference(
        f"{place}: {'nan or number' if nan else 'values'}",
        f"{int(wrong.sum())} of {left.size} differ, first at {list(first)}: "
        f"expected {old!r}, got {new!r}",
    )


def error_of(a: np.ndarray, wide: np.ndarray) -> float:
    """The largest distance of values from those in higher precision."""
    with np.errstate(all="ignore"):
        own = np.abs(a - wide)
    return float(np.max(np.where(np.isfinite(own), own, 0), initial=0))


def _as_exact(
    a: np.ndarray, b: np.ndarray, wide: np.ndarray, worst: float, dtype: str
) -> np.ndarray:
    """Where `b` is as near to `wide` as `a`, which is at most `worst` away."""
    rtol, _ = TOLERANCES[dtype]
    with np.errstate(all="ignore"):
        near = np.abs(b - wide) <= SLACK * worst + rtol * np.abs(wide)
        finite = np.isfinite(b) & np.isfinite(wide) & ~np.isnan(a)
        limit = np.isinf(b) & np.isinf(a.astype(b.dtype)) & (a == b)
    return (finite & near) | limit
