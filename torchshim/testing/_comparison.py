"""Whether two values agree, and if not, a text that says where they do not.

Values are compared on the host, as a comparison that XLA compiles costs more for every
new shape than it takes.
"""

from __future__ import annotations

import cmath
import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import strided
from torchshim._core.promotion import promote_types
from torchshim._functions.construct import as_tensor, tensor
from torchshim._tensor import Tensor, host_value

__all__ = ["assert_allclose", "assert_close"]

_EXACT = (0.0, 0.0)
_TOLERANCES = {
    dtypes.float16: (0.001, 1e-5),
    dtypes.bfloat16: (0.016, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}
# Those of the older `assert_allclose`.
_OLD_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-3),
    dtypes.float32: (1e-4, 1e-5),
    dtypes.float64: (1e-5, 1e-8),
}
_DTYPE_OF = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)


Pair = Callable[[], None]


@dataclass(frozen=True)
class Options:
    """The arguments of `assert_close`."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool
    msg: Any
    # What is compared item by item.
    sequences: tuple[type, ...] = (Sequence,)
    mappings: tuple[type, ...] = (Mapping,)

    def pair(self, actual: Any, expected: Any, id: tuple[Any, ...]) -> Pair:
        """The comparison of two values that are no containers."""
        return leaves(actual, expected, self, id)

    def fail(
        self, id: tuple[Any, ...], text: str, error: type[Exception] = AssertionError
    ) -> NoReturn:
        """Raises for the item `id` of nested values."""
        __tracebackhide__ = True
        if id:
            where = "".join(str([item]) for item in id)
            text += f"\n\nThe failure occurred for item {where}"
        raise _Mismatch(error, text)

    def tolerances(self, id: tuple[Any, ...], *of: Any) -> tuple[float, float]:
        """(rtol, atol) for values of these dtypes."""
        rtol, atol = self.rtol, self.atol
        if rtol is not None and atol is not None:
            return rtol, atol
        if rtol is not None or atol is not None:
            self.fail(
                id,
                "Both 'rtol' and 'atol' must be either specified or omitted, but got "
                f"no {'rtol' if rtol is None else 'atol'}.",
                ValueError,
            )
        return _largest(_TOLERANCES, *of)


class _Mismatch(Exception):
    """What `assert_close` raises, before the caller's own text is put in."""

    def __init__(self, error: type[Exception], text: str) -> None:
        super().__init__(text)
        self.error, self.text = error, text


def _largest(table: Any, *of: Any) -> tuple[float, float]:
    found = [table.get(dtype, _EXACT) for dtype in of]
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
    return _largest(dtype_precisions or _TOLERANCES, *of)


# -- what is compared with what --------------------------------------------------------


def _pairs(
    actual: Any, expected: Any, options: Options, id: tuple[Any, ...] = ()
) -> list[Pair]:
    """A comparison for each pair of leaves of two nested values."""
    both = (actual, expected)
    sequences = options.sequences
    if all(isinstance(x, sequences) and not isinstance(x, str) for x in both):
        if len(actual) != len(expected):
            options.fail(
                id,
                "The length of the sequences mismatch: "
                f"{len(actual)} != {len(expected)}",
            )
        return [
            pair
            for i in range(len(actual))
            for pair in _pairs(actual[i], expected[i], options, (*id, i))
        ]
    if all(isinstance(x, options.mappings) for x in both):
        have, want = set(actual), set(expected)
        if have != want:
            options.fail(
                id,
                "The keys of the mappings do not match:\nMissing keys in the actual "
                f"mapping: {sorted(want - have)}\nAdditional keys in the actual "
                f"mapping: {sorted(have - want)}",
            )
        keys: Any = have
        with contextlib.suppress(TypeError):
            keys = sorted(have)
        return [
            pair
            for key in keys
            for pair in _pairs(actual[key], expected[key], options, (*id, key))
        ]
    return [options.pair(actual, expected, id)]


def leaves(actual: Any, expected: Any, options: Options, id: tuple[Any, ...]) -> Pair:
    """What `assert_close` compares besides containers."""
    if actual is None or expected is None:
        return lambda: _compare_none(actual, expected, options, id)
    both = (actual, expected)
    if all(isinstance(x, (bool, np.bool_)) for x in both):
        return lambda: compare_booleans(bool(actual), bool(expected), options, id)
    if all(isinstance(x, (int, float, complex, np.number)) for x in both):
        a, b = (x.item() if isinstance(x, np.number) else x for x in both)
        of = [_DTYPE_OF.get(type(x), dtypes.int64) for x in (a, b)]
        tolerances = options.tolerances(id, *of)
        return lambda: compare_numbers(a, b, tolerances, options, id)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (options.allow_subclasses or type(actual) is type(expected)):
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            x, y = as_tensor(actual), as_tensor(expected)
            return tensor_pair(x, y, options, id)
    options.fail(
        id,
        f"No comparison pair was able to handle inputs of type {type(actual)} and "
        f"{type(expected)}.",
        TypeError,
    )


def tensor_pair(x: Any, y: Any, options: Options, id: tuple[Any, ...]) -> Pair:
    """The comparison of two tensors."""
    tolerances = options.tolerances(id, x.dtype, y.dtype)
    return lambda: _compare_tensors(x, y, tolerances, options, id)


# -- comparisons of leaves -------------------------------------------------------------


def _compare_none(
    actual: Any, expected: Any, options: Options, id: tuple[Any, ...]
) -> None:
    if actual is not expected:
        options.fail(id, f"None mismatch: {actual} is not {expected}")


def compare_booleans(
    actual: bool, expected: bool, options: Options, id: tuple[Any, ...]
) -> None:
    """Raises where two booleans differ."""
    if actual is not expected:
        options.fail(id, f"Booleans mismatch: {actual} is not {expected}")


def compare_numbers(
    actual: Any,
    expected: Any,
    tolerances: tuple[float, float],
    options: Options,
    id: tuple[Any, ...],
) -> None:
    """Raises where two numbers are not close."""
    if options.check_dtype and type(actual) is not type(expected):
        options.fail(
            id, f"The (d)types do not match: {type(actual)} != {type(expected)}."
        )
    if actual == expected:
        return
    if options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    rtol, atol = tolerances
    difference = abs(actual - expected)
    if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    options.fail(id, _scalars_differ(actual, expected, tolerances))


def _compare_tensors(
    actual: Any,
    expected: Any,
    tolerances: tuple[float, float],
    options: Options,
    id: tuple[Any, ...],
) -> None:
    def same(name: str, a: Any, b: Any) -> None:
        if a != b:
            text = f"The values for attribute '{name}' do not match: {a} != {b}."
            options.fail(id, text)

    same("shape", actual.shape, expected.shape)
    if actual.layout != expected.layout:
        if options.check_layout:
            same("layout", actual.layout, expected.layout)
    elif options.check_stride and actual.layout == strided:
        same("stride()", actual.stride(), expected.stride())
    if options.check_device:
        same("device", actual.device, expected.device)
    if options.check_dtype:
        same("dtype", actual.dtype, expected.dtype)
    dtype = actual.dtype
    if dtype != expected.dtype:
        wide = [
            dtypes.int64 if t.dtype in _UNSIGNED else t.dtype
            for t in (actual, expected)
        ]
        dtype = promote_types(*wide)
        actual, expected = actual.to(dtype), expected.to(dtype)
    a, b = (
        host_value(t.detach() if t.layout == strided else t.detach().to_dense())
        for t in (actual, expected)
    )
    # Numbers of one byte are compared bit by bit.
    if dtype.is_floating_point and dtype.itemsize == 1 and tolerances != _EXACT:
        rtol, atol = tolerances
        options.fail(
            id,
            f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of "
            "low dimensional floats. Please use rtol=0.0 and atol=0.0.",
        )
    with np.errstate(all="ignore"):
        matches = _close(a, b, tolerances, options.equal_nan)
        if matches.all():
            return
        if not actual.shape:
            text = _scalars_differ(actual.item(), expected.item(), tolerances)
        else:
            text = _tensors_differ(a, b, matches, dtype, tolerances)
    options.fail(id, text)


def _close(
    a: np.ndarray, b: np.ndarray, tolerances: tuple[float, float], equal_nan: bool
) -> np.ndarray:
    """As `torch.isclose`."""
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


def _scalars_differ(actual: Any, expected: Any, tolerances: tuple[float, float]) -> str:
    absolute = abs(actual - expected)
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    return _differ(
        "Scalars",
        f"Expected {expected} but got {actual}.",
        (absolute, None),
        (relative, None),
        tolerances,
    )


def _tensors_differ(
    a: np.ndarray,
    b: np.ndarray,
    matches: np.ndarray,
    dtype: Any,
    tolerances: tuple[float, float],
) -> str:
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
        "Tensor-likes", extra, _greatest(absolute), _greatest(relative), tolerances
    )


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


# -- the functions ---------------------------------------------------------------------


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError where two values are not close.

    Values are numbers, tensors, what `torch.as_tensor` takes, or sequences and mappings
    of them; tolerances follow from the dtypes, `msg` replaces the text or makes it of
    the text. Follows ``torch.testing.assert_close``.

    >>> import torchshim as torch
    >>> torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    >>> torch.testing.assert_close([1, 2.0], [1, 2.5])
    Traceback (most recent call last):
    AssertionError: Scalars are not close!
    <BLANKLINE>
    Expected 2.5 but got 2.0.
    Absolute difference: 0.5 (up to 1e-07 allowed)
    Relative difference: 0.2 (up to 1e-07 allowed)
    <BLANKLINE>
    The failure occurred for item [1]
    """
    # Tracebacks of pytest leave these frames out.
    __tracebackhide__ = True
    compare(
        actual,
        expected,
        Options(
            allow_subclasses,
            rtol,
            atol,
            equal_nan,
            check_device,
            check_dtype,
            check_layout,
            check_stride,
            msg,
        ),
    )


def compare(actual: Any, expected: Any, options: Options) -> None:
    """Raises for the first pair of values that are not close."""
    __tracebackhide__ = True
    msg = options.msg
    try:
        pairs = _pairs(actual, expected, options)
    except _Mismatch as mismatch:
        raise mismatch.error(mismatch.text) from None
    try:
        for check in pairs:
            check()
    except _Mismatch as mismatch:
        text = mismatch.text
        if isinstance(msg, str):
            text = msg
        elif msg is not None:
            text = msg(text)
        error = mismatch.error(text)
    else:
        return
    raise error


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older `assert_close`, which does not compare dtypes. Deprecated.

    Follows ``torch.testing.assert_allclose``.
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be "
        "removed in a future release. Please use `torch.testing.assert_close()` "
        "instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    a: Any = actual if isinstance(actual, Tensor) else tensor(actual)
    b: Any = expected
    if not isinstance(expected, Tensor):
        b = tensor(expected, dtype=a.dtype)
    if rtol is None and atol is None:
        rtol, atol = _largest(_OLD_TOLERANCES, a.dtype, b.dtype)
    assert_close(
        a,
        b,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )
