"""Where values differ, as texts that say so, and by how much they may.

Values are compared on the host, as a comparison that XLA compiles costs more for every
new shape than it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._tensor import Tensor

EXACT = (0.0, 0.0)
# What a text begins with in the place of "Scalars" or "Tensor-likes".
Identifier = str | Callable[[str], str] | None

TOLERANCES = {
    dtypes.float16: (0.001, 1e-5),
    dtypes.bfloat16: (0.016, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
    **dict.fromkeys(
        [
            dtypes.NAMES[n]
            for n in ("quint8", "quint2x4", "quint4x2", "qint8", "qint32")
        ],
        (1.3e-6, 1e-5),
    ),
}
UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)
# Those of the older `assert_allclose`.
OLD_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-3),
    dtypes.float32: (1e-4, 1e-5),
    dtypes.float64: (1e-5, 1e-8),
}


def largest(table: Any, *of: Any) -> tuple[float, float]:
    """The largest tolerances that a table has for these dtypes."""
    found = [table.get(dtype, EXACT) for dtype in of]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def default_tolerances(
    *inputs: Any, dtype_precisions: Mapping[Any, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """(rtol, atol) for tensors or dtypes: the largest of theirs."""
    for given in inputs:
        if not isinstance(given, (Tensor, dtypes.dtype)):
            raise TypeError(
                f"Expected a torch.Tensor or a torch.dtype, but got {type(given)} "
                "instead."
            )
    of = [x.dtype if isinstance(x, Tensor) else x for x in inputs]
    return largest(dtype_precisions or TOLERANCES, *of)


def close(
    a: np.ndarray, b: np.ndarray, tolerances: tuple[float, float], equal_nan: bool
) -> np.ndarray:
    """As `torch.isclose`."""
    for name, tolerance in zip(("rtol", "atol"), tolerances, strict=True):
        if tolerance < 0:
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {tolerance:g}"
            )
    rtol, atol = tolerances
    close = a == b
    inexact = a.dtype.kind not in "biu"
    if equal_nan and inexact:
        close |= np.isnan(a) & np.isnan(b)
    if rtol == 0 and atol == 0:
        return close
    if not inexact:
        a, b = a.astype(np.float64), b.astype(np.float64)
    allowed = atol + np.abs(rtol * b)
    difference = np.abs(a - b)
    return close | (np.isfinite(difference) & (difference <= allowed))


# -- texts -----------------------------------------------------------------------------


def scalars_differ(
    actual: Any,
    expected: Any,
    tolerances: tuple[float, float],
    identifier: Identifier = None,
) -> str:
    """What is said of two numbers that are not close."""
    absolute = abs(actual - expected)
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    return _differ(
        _named("Scalars", identifier),
        f"Expected {expected} but got {actual}.",
        (absolute, None),
        (relative, None),
        tolerances,
    )


def tensors_differ(
    a: np.ndarray,
    b: np.ndarray,
    matches: np.ndarray,
    dtype: Any,
    tolerances: tuple[float, float],
    identifier: Identifier = None,
) -> str:
    """What is said of two arrays, whose elements match in places."""
    count = matches.size - int(matches.sum())
    extra = (
        f"Mismatched elements: {count} / {matches.size} ({count / matches.size:.1%})"
    )
    if dtype.is_floating_point and dtype.itemsize == 1:
        first = tuple(int(i) for i in np.argwhere(~matches)[0])
        return (
            f"Tensor-likes are not 'equal'!\n\n{extra}\nThe first mismatched element "
            f"is at index {first}."
        )
    if a.dtype.kind in "biu":
        a, b = a.astype(np.int64), b.astype(np.int64)
    absolute = np.abs(a - b)
    absolute[matches] = 0
    size = np.abs(b)
    if absolute.dtype.kind in "iu":
        # Quotients of integers are of the default dtype.
        quotient = dtypes.get_default_dtype().np
        relative = absolute.astype(quotient) / size.astype(quotient)
    else:
        relative = absolute / size
    relative[matches] = 0
    return _differ(
        _named("Tensor-likes", identifier),
        extra,
        _greatest(absolute),
        _greatest(relative),
        tolerances,
    )


def _named(usual: str, identifier: Identifier) -> str:
    if identifier is None:
        return usual
    return identifier if isinstance(identifier, str) else identifier(usual)


def _greatest(values: np.ndarray) -> tuple[Any, tuple[int, ...]]:
    """The largest element, or the first NaN, and its index."""
    at = np.unravel_index(int(np.argmax(values)), values.shape)
    number = values[at]
    whole = values.dtype.kind in "iu"
    return int(number) if whole else float(number), tuple(int(i) for i in at)


def _differ(
    what: str,
    extra: str,
    absolute: tuple[Any, Any],
    relative: tuple[Any, Any],
    tolerances: tuple[float, float],
) -> str:
    rtol, atol = tolerances
    exact = rtol == 0 and atol == 0
    text = f"{what} are not {'equal' if exact else 'close'}!\n\n{extra}\n"
    rows = (("absolute", absolute, atol), ("relative", relative, rtol))
    for name, (difference, at), allowed in rows:
        if at is None:
            text += f"{name.title()} difference: {difference}"
        else:
            text += f"Greatest {name} difference: {difference} at index {at}"
        text += "\n" if exact else f" (up to {allowed} allowed)\n"
    return text.strip()
