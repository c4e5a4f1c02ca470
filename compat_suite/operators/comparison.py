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
import torch

import torchshim
from compat_suite.operators.translation import to_numpy

#: `torch.testing.assert_close`'s defaults: (relative, absolute).
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
#: How many times PyTorch's own error torchshim's may be.
SLACK = 4.0

_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
    torch.complex32: torch.complex64,
    torch.complex64: torch.complex128,
}


@dataclass(frozen=True)
class Difference:
    """One way in which results differ: its kind, for grouping, and the details."""

    cause: str
    details: str


def compare(
    expected: Any, actual: Any, reference: Callable[[], Any], values: bool = True
) -> Difference | None:
    """The first difference between results of PyTorch and torchshim.

    `reference()` gives PyTorch's result in higher precision, or None; it is only asked
    where values differ.
    """
    different = [
        (place, left, right)
        for place, left, right in _pairs(expected, actual, "result")
        if not isinstance(left, torch.Tensor) or _differ(left, right, values)
    ]
    for place, left, right in different:
        if not isinstance(left, torch.Tensor):
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
    if isinstance(a, torch.Tensor):
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
        if not bool(_close(np.array(a), np.array(b), 1.3e-6, 1e-5)):
            yield place, "values differ", f"expected {a!r}, got {b!r}"
    elif a is not b and repr(a) != repr(b):
        yield place, "results differ", f"expected {a!r}, got {b!r}"


def _kind(value: Any) -> str:
    return "list" if isinstance(value, list) else "tuple"


def _at(wide: Any, expected: Any, tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor of `wide` that stands where `tensor` stands in `expected`."""
    if expected is tensor:
        return wide if isinstance(wide, torch.Tensor) else None
    if isinstance(expected, dict):
        expected = list(expected.values())
        wide = list(wide.values()) if isinstance(wide, dict) else []
    if isinstance(expected, list | tuple) and isinstance(wide, list | tuple):
        for left, right in zip(expected, wide, strict=False):
            found = _at(right, left, tensor)
            if found is not None:
                return found
    return None


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _differ(a: torch.Tensor, b: Any, values: bool) -> bool:
    if tuple(a.shape) != tuple(b.shape) or _dtype(a) != _dtype(b):
        return True
    if not values:
        return False
    close = _close(to_numpy(a), to_numpy(b), *TOLERANCES.get(_dtype(a), (0, 0)))
    return not close.all()


def tensors_differ(
    a: torch.Tensor, b: Any, wide: torch.Tensor | None, place: str
) -> Difference | None:
    """How two tensors differ; `wide` is what PyTorch gives in higher precision."""
    if tuple(a.shape) != tuple(b.shape):
        return Difference(
            f"{place}: shape", f"expected {tuple(a.shape)}, got {tuple(b.shape)}"
        )
    if _dtype(a) != _dtype(b):
        return Difference(f"{place}: dtype {_dtype(b)} for {_dtype(a)}", "")
    left, right = to_numpy(a), to_numpy(b)
    wrong = ~_close(left, right, *TOLERANCES.get(_dtype(a), (0, 0)))
    if wide is not None and wide.shape == a.shape and left.dtype.kind in "fc":
        wrong &= ~_as_exact(left, right, to_numpy(wide), _dtype(a))
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


def _as_exact(a: np.ndarray, b: np.ndarray, wide: np.ndarray, dtype: str) -> Any:
    """Where `b` is as near to `wide` as `a`, which may differ where it rounds."""
    rtol, _ = TOLERANCES[dtype]
    with np.errstate(all="ignore"):
        own = np.abs(a - wide)
        scale = np.abs(wide)
        worst = np.max(np.where(np.isfinite(own), own, 0), initial=0)
        near = np.abs(b - wide) <= SLACK * np.maximum(own, worst) + rtol * scale
        finite = np.isfinite(b) & np.isfinite(wide)
        limit = np.isinf(b) & np.isinf(a.astype(b.dtype)) & (a == b)
    return (finite & near) | limit


def _close(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    if a.dtype.kind not in "fc" or b.dtype.kind not in "fc":
        return np.asarray(a == b)
    if a.dtype.kind == "c":
        # As in `torch.isclose`, distance is measured in the plane; where a part is
        # not finite, each part is judged by itself.
        finite = np.isfinite(a) & np.isfinite(b)
        real = _close(a.real, b.real, rtol, atol)
        imag = _close(a.imag, b.imag, rtol, atol)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= atol + rtol * np.abs(a)
        return np.where(finite, near, real & imag)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        near = np.isfinite(x) & np.isfinite(y) & (abs(x - y) <= atol + rtol * abs(x))
    return (x == y) | (np.isnan(x) & np.isnan(y)) | near


def widened(value: Any) -> Any:
    """Arguments with their floating point tensors in the next wider dtype."""
    if isinstance(value, torch.Tensor):
        wider = _WIDER.get(value.dtype)
        if wider is None:
            return value
        made = value.detach().to(wider)
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return _WIDER.get(value, value)
    if type(value) in (list, tuple):
        return type(value)(map(widened, value))
    if isinstance(value, dict):
        return {k: widened(v) for k, v in value.items()}
    return value
