"""How a tensor is printed: the text of ``repr(t)``, ``str(t)`` and ``format(t)``.

The text is PyTorch's, character by character. This module knows NumPy arrays only;
the tensor class hands over its values and what belongs behind them.

One layout holds for every row of a tensor, because all numbers of a tensor share one
format. So the text is built once from the shape, as a ``%`` template, and one ``%``
fills in the numbers, however many there are. The width of a column follows from the
extreme values alone: the length of a written number grows with its magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np


@dataclass
class PrinterOptions:
    """The print options of the process; the fields are those of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = PrinterOptions()

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed from now on (`torch.set_printoptions`).

    ``None`` leaves an option as it is, except ``sci_mode``, where it means that the
    values decide. ``profile`` is "default", "short" or "full"; as in PyTorch, any
    other name changes nothing, and the other arguments override the profile's.

    >>> set_printoptions(precision=2)
    >>> print(format_tensor(np.float32([1.12345]), dtype="float32"))
    tensor([1.12])
    >>> set_printoptions(profile="default")
    """
    changes = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    base = {} if profile is None else _PROFILES.get(profile, {})
    for name, value in {**base, **given}.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The print options in force, in the form that `set_printoptions` takes.

    >>> get_printoptions()["edgeitems"]
    3
    """
    return asdict(PRINT_OPTS)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Sets print options inside a ``with`` block; takes `set_printoptions`' arguments.

    >>> with printoptions(sci_mode=True, precision=1):
    ...     print(format_tensor(np.float32([20, 3]), dtype="float32"))
    tensor([2.0e+01, 3.0e+00])
    """
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


class _Shaped(Protocol):
    """All that is read of a tensor whose values are not printed."""

    @property
    def shape(self) -> tuple[int, ...]: ...


# --- numbers ---------------------------------------------------------------------


def _float_format(values: np.ndarray, *, nan_is_finite: bool) -> tuple[str, str, int]:
    """The number format of float64 values: conversion, what follows it, width."""
    finite = values[(values != 0) & (nan_is_finite | np.isfinite(values))]
    if not finite.size:
        return ".0f", ".", 1
    scientific = PRINT_OPTS.sci_mode
    if scientific is None:
        magnitude = np.abs(finite)
        low, high = magnitude.min(), magnitude.max()
        scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
    if scientific:
        conversion, tail = f".{PRINT_OPTS.precision}e", ""
    elif (finite == np.ceil(finite)).all():
        conversion, tail = ".0f", "."
    else:
        conversion, tail = f".{PRINT_OPTS.precision}f", ""
    # The exponent is longest at either end of the magnitudes, the integer part at the
    # upper one; the sign makes two groups.
    groups = [group for group in (finite[finite > 0], finite[finite < 0]) if group.size]
    ends = [float(end) for group in groups for end in (group.min(), group.max())]
    width = max((len(format(end, conversion)) for end in ends), default=1)
    return conversion, tail, width + len(tail)


def _float_cell(
    values: np.ndarray, *, imaginary: bool = False, nan_is_finite: bool = False
) -> tuple[str, int, list[Any]]:
    """Template, width and arguments of one column of float64 values, shape (n,)."""
    conversion, tail, width = _float_format(values, nan_is_finite=nan_is_finite)
    sign = "+" if imaginary else ""
    if tail and not np.isfinite(values).all():
        # Only numbers end in a dot, so that each is written on its own.
        texts = [
            format(value, sign + conversion) + tail * math.isfinite(value)
            for value in values.tolist()
        ]
        return ("%s" if imaginary else f"%{width}s"), width, texts
    # The imaginary part follows the real one directly, it is never padded.
    padding = sign if imaginary else width - len(tail)
    return f"%{padding}{conversion}{tail}", width, values.tolist()


def _cell(values: np.ndarray) -> tuple[str, int, list[Any]]:
    """Template, width and arguments of the numbers of one tensor, shape (n,)."""
    kind = values.dtype.kind
    if kind == "b":
        width = 4 if values.all() else 5
        return f"%{width}s", width, values.tolist()
    if kind in "iu":
        ends = (values.min(), values.max()) if values.size else ()
        width = max((len(str(end)) for end in ends), default=1)
        return f"%{width}d", width, values.tolist()
    if kind == "c":
        values = values.astype(np.complex128)
        real, real_width, real_arguments = _float_cell(np.real(values))
        imag, imag_width, imag_arguments = _float_cell(np.imag(values), imaginary=True)
        pairs = zip(real_arguments, imag_arguments, strict=True)
        arguments = [argument for pair in pairs for argument in pair]
        return f"{real}{imag}j", real_width + imag_width + 1, arguments
    return _float_cell(
        values.astype(np.float64),
        # PyTorch takes this format's NaN for a finite number.
        nan_is_finite=values.dtype.name == "float8_e8m0fnu",
    )


# --- layout ----------------------------------------------------------------------

_Kept = tuple[Sequence[int], Sequence[int]]


def _kept(size: int, *, innermost: bool) -> _Kept | None:
    """The indices before and after the dots of one axis; None if it is shown whole."""
    edge = PRINT_OPTS.edgeitems
    if size > 2 * edge:
        if innermost:
            return range(size)[:edge], range(size)[-edge:]
        if edge < 0:
            # What PyTorch's own slicing comes to when it collects no row at all.
            raise RuntimeError("stack expects a non-empty TensorList")
        return range(edge), range(size - edge, size)
    return None


def _template(
    shape: tuple[int, ...],
    kept: Sequence[_Kept | None],
    cell: str,
    cell_width: int,
    indent: int,
) -> str:
    """The text of an array, with the template ``cell`` in the place of each number."""
    parts = [cell]
    for axis in reversed(range(len(shape))):
        depth = len(shape) - axis
        ends = kept[axis]
        if ends is None:
            parts = parts * shape[axis]
        else:
            dots = "..." if depth > 1 else " ..."
            parts = [*parts * len(ends[0]), dots, *parts * len(ends[1])]
        margin = " " * (indent + axis + 1)
        if depth == 1:
            room = (PRINT_OPTS.linewidth - indent - axis) / (cell_width + 2)
            per_line = max(1, math.floor(room))
            starts = range(0, len(parts), per_line)
            parts = [", ".join(parts[start : start + per_line]) for start in starts]
        newlines = "\n" * max(1, depth - 1)
        parts = ["[" + f",{newlines}{margin}".join(parts) + "]"]
    return parts[0]


def format_values(array: np.ndarray, indent: int) -> str:
    """The values of an array as they stand between the parentheses of ``tensor()``.

    ``indent`` is the column of the opening bracket. The array may have any shape and
    any dtype of a tensor; where it has more than ``threshold`` elements only those
    that are shown are read.

    >>> format_values(np.array([[1, -2], [30, 4]]), 0).splitlines()
    ['[[ 1, -2],', ' [30,  4]]']
    """
    if not array.size:
        return "[]"
    shape, ndim = array.shape, array.ndim
    kept: list[_Kept | None] = [None] * ndim
    if array.size > PRINT_OPTS.threshold and ndim:
        if not PRINT_OPTS.edgeitems:
            return "[...]"
        kept = [_kept(n, innermost=i == ndim - 1) for i, n in enumerate(shape)]
        indices = [
            list(range(size)) if ends is None else [*ends[0], *ends[1]]
            for ends, size in zip(kept, shape, strict=True)
        ]
        array = array[np.ix_(*indices)]
    with np.errstate(over="ignore", invalid="ignore"):  # ratios, signalling NaNs
        cell, width, arguments = _cell(array.reshape(-1))
    return _template(shape, kept, cell, width, indent) % tuple(arguments)


def join_suffixes(
    text: str, suffixes: Sequence[str], indent: int, new_line: bool = False
) -> str:
    """Appends what follows the values, each on a new line where it does not fit.

    `new_line`: the first of them is on one in any case.
    """
    # PyTorch counts this line two columns longer than it is, and only this one.
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            new_line = False
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def format_tensor(
    array: np.ndarray | _Shaped,
    *,
    dtype: str,
    default_dtype: str = "float32",
    device: str = "cpu",
    requires_grad: bool = False,
    grad_fn: str | None = None,
    class_prefix: str = "tensor",
    tensor_contents: str | None = None,
    tangent: str | None = None,
    parameter: bool = False,
) -> str:
    """The text that PyTorch prints for a tensor (`torch.Tensor.__repr__`).

    Args:
        array: the values. Only the shape is read, and there need not be more, on the
            device "meta" or where ``tensor_contents`` are given.
        dtype: the tensor's dtype, such as "float32"; an array of complex64 values may
            stand for "complex32".
        default_dtype: `torch.get_default_dtype`, which is not printed.
        device: the tensor's device; "cpu" is not printed.
        requires_grad: printed unless there is a ``grad_fn``.
        grad_fn: the name of the node that the tensor comes from, "Invalid" where
            asking for it is an error.
        class_prefix: the name of a subclass; "tensor" for Tensor and Parameter.
        tensor_contents: stands in place of the values.
        tangent: the text of the tangent of a dual tensor.
        parameter: whether it is a Parameter.

    >>> print(format_tensor(np.float64([1, 2.5]), dtype="float64"))
    tensor([1.0000, 2.5000], dtype=torch.float64)
    >>> print(format_tensor(np.float32(9), dtype="float32", grad_fn="PowBackward0"))
    tensor(9., grad_fn=<PowBackward0>)
    >>> print(format_tensor(np.zeros((0, 3), np.float32), dtype="float32"))
    tensor([], size=(0, 3))
    """
    indent = len(class_prefix) + 1
    shape = tuple(int(size) for size in array.shape)
    default_complex = "complex128" if default_dtype == "float64" else "complex64"
    unsaid_dtypes = [default_dtype]
    show_size = True
    if device == "meta":
        contents = "..."
    elif 0 in shape:
        contents = "[]"
        show_size = len(shape) != 1
    else:
        contents = None
        show_size = not PRINT_OPTS.edgeitems
        # Values tell these dtypes apart from the others, an empty tensor cannot.
        unsaid_dtypes += [default_complex, "int64", "bool"]

    suffixes = []
    if device != "cpu":
        suffixes.append(f"device='{device}'")
    if show_size:
        suffixes.append(f"size={shape}")
    if dtype not in unsaid_dtypes:
        suffixes.append(f"dtype=torch.{dtype}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")

    if tensor_contents is not None:
        contents = tensor_contents
    elif contents is None:
        contents = format_values(np.asarray(array), indent)
    text = join_suffixes(f"{class_prefix}({contents}", suffixes, indent)
    return f"Parameter({text})" if parameter and class_prefix != "tensor" else text


def format_scalar(array: np.ndarray, format_spec: str = "") -> str:
    """``format(t, format_spec)`` for a plain 0-dim tensor: its number, formatted.

    A tensor that requires grad is formatted like any other. Subclasses (Parameter
    among them), tensors with dimensions and meta tensors are not formatted as
    numbers: they go through ``object.__format__``, which refuses any format.

    >>> format_scalar(np.float32(2.5), ".2f")
    '2.50'
    """
    return format(np.asarray(array).item(), format_spec)
