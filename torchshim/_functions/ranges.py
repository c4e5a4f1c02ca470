"""Tensors with values in a pattern: `arange`, `linspace`, `eye`, `tril_indices`, …

https://docs.pytorch.org/docs/2.13/torch.html#creation-ops. The length of a range is
part of a recording's shape; where it starts and its step are not, so that
`arange(i, i + 32)` does not make a new program for every `i`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.extent import COUNTS, too_many_elements
from torchshim._core.promotion import element
from torchshim._derived import fns, public
from torchshim._functions._arguments import (
    as_index,
    check_gradient,
    check_options,
    check_room,
    device_of,
    is_number,
    missing,
    number_of,
    unfit,
    warn,
    wrong,
)
from torchshim._functions.creation import (
    at_once,
    finish,
    into,
    out_dtype,
    place,
    placed,
)
from torchshim._ops import creation as ops
from torchshim._tensor import Tensor, from_array


def _default_dtype(*numbers: Any) -> dtypes.dtype:
    if any(isinstance(n, complex) for n in numbers):
        return dtypes.get_default_complex_dtype()
    return dtypes.get_default_dtype()


def _check_kernel(name: str, dtype: dtypes.dtype, without: tuple[int, ...]) -> None:
    if dtype.category in without:
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{dtype.scalar_name}'"
        )
    dtypes.array_dtype(dtype)


_OTHER_LENGTH = (
    "The number of elements in the out tensor of shape {0} is {1} which does not match "
    "the computed number of elements {2}. Note that this may occur as a result of "
    "rounding error. The out tensor will be resized to a tensor of shape ({2},). "
    "(Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/native/RangeFactories.cpp:199.)"
)


def _in_order(out: Tensor, result: Tensor, warned: bool = False) -> Tensor:
    """`out=` of a range: an `out` of as many elements keeps its shape."""
    shape, count = out._tmeta.shape, result._tmeta.shape.numel()
    if shape.numel() == count:
        return into(out, result.view(shape))
    if warned and shape.numel():
        warn(_OTHER_LENGTH.format(list(shape), shape.numel(), count))
    return into(out, result)


@public
def arange(
    *args: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Numbers from `start` up to, not including, `end`, `step` apart.

    >>> import torchshim as torch
    >>> torch.arange(1, 6, 2)
    tensor([1, 3, 5])
    """
    names = ("start", "end", "step")
    given: dict[str, Any] = {}
    if len(args) == 1 and "end" not in named:
        given["end"] = args[0]
        args = ()
    given.update(zip(names, args, strict=False))
    clash = [n for n in named if n not in names or n in given]
    given.update(named)
    if clash or len(args) > 3 or "end" not in given or not {*given} <= {*names}:
        raise unfit("arange")
    for position, name in enumerate(names):
        value = given.get(name, 0)
        if not is_number(value):
            at = 1 if len(given) == 1 else position + 1
            raise TypeError(wrong("arange", name, at, "Number", value))
    start, end, step = (
        number_of("arange", n, i + 1, given.get(n, d))
        for i, (n, d) in enumerate(zip(names, (0, 0, 1), strict=True))
    )
    if any(isinstance(v, complex) and v.imag for v in (start, end, step)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    start, end, step = (
        v.real if isinstance(v, complex) else v for v in (start, end, step)
    )
    check_options("arange", layout, pin_memory, requires_grad)
    whole = all(isinstance(v, int) for v in (start, end, step))
    default = dtypes.int64 if whole else _default_dtype()
    chosen = out_dtype("arange", out, dtype, default)
    device = device_of("arange", device)
    _check_kernel("arange_cpu", chosen, (dtypes.BOOL, dtypes.COMPLEX))
    check_gradient(chosen, requires_grad)
    length = _length(start, end, step, chosen)
    result = _arithmetic(length, start, step, chosen, device, bool(requires_grad))
    return result if out is None else _in_order(out, result, warned=True)


def _length(start: Any, end: Any, step: Any, dtype: dtypes.dtype) -> int:
    """How many numbers a range has; raises for one that has none to give."""
    if not (step < 0 or step > 0):  # nor NaN
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is dtypes.int64:
        if int(step) == 0:
            raise ValueError("step must be nonzero")
        first, last, by = int(start), int(end), int(step)
        length = -((first - last) // by)
    else:
        length = math.ceil((float(end) - float(start)) / float(step))
    if not 0 <= length < 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    return length


def _arithmetic(
    length: int,
    start: Any,
    step: Any,
    dtype: dtypes.dtype,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    if dtype.category == dtypes.INTEGER:
        start, step = int(start), int(step)
    elif start.__class__ is bool:
        start = int(start)
    if at_once(device):
        with np.errstate(over="ignore", invalid="ignore"):
            array = ops.sequence(np, length, start, step, dtype.np)
        return from_array(place(array, device), requires_grad, device=device)
    return finish(fns.arange(length, start, step, dtype, device), requires_grad)


@public(name="range")
def range_(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` up to and including `end`; deprecated, see `arange`.

    https://docs.pytorch.org/docs/2.13/generated/torch.range.html

    >>> import torchshim as torch
    >>> torch.range(1, 2, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if end is None:
        raise missing("range", "end")
    if start is None:
        raise unfit("range")
    warn(
        "torch.range is deprecated and will be removed in a future release because its "
        "behavior is inconsistent with Python's range builtin. Instead, use "
        "torch.arange, which produces values in [start, end)."
    )
    start, end, step = (
        number_of("range", n, i, v)
        for i, (n, v) in enumerate((("start", start), ("end", end), ("step", step)), 1)
    )
    check_options("range", layout, pin_memory, requires_grad)
    chosen = out_dtype("range", out, dtype, _default_dtype())
    device = device_of("range", device)
    _check_kernel("range_cpu", chosen, (dtypes.BOOL, dtypes.COMPLEX))
    check_gradient(chosen, requires_grad)
    _length(start, end, step, chosen)
    length = math.floor((end - start) / step) + 1
    result = _arithmetic(length, start, step, chosen, device, bool(requires_grad))
    return result if out is None else _in_order(out, result)


def _ends(function: str, start: Any, end: Any, steps: Any) -> tuple[Any, Any, int]:
    count = as_index(steps)
    wrong_kind = count is None or isinstance(steps, bool)
    for value in (start, end):
        if not is_number(value) and not isinstance(value, Tensor):
            wrong_kind = True
    if wrong_kind:
        raise unfit(function)
    ends = (("start", start), ("end", end))
    given = [(name, v.dim()) for name, v in ends if isinstance(v, Tensor)]
    if any(dims for _, dims in given):
        told = " and ".join(f"{name} with {dims} dimension(s)" for name, dims in given)
        raise RuntimeError(
            f"{function} only supports 0-dimensional start and end tensors, but "
            f"got {told}."
        )
    assert count is not None
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    # Tensors here are tensors for PyTorch, too, but have no gradient.
    first, last = (v.detach() if isinstance(v, Tensor) else v for v in (start, end))
    return (
        number_of(function, "start", 1, first),
        number_of(function, "end", 2, last),
        count,
    )


def _held(number: Any, dtype: dtypes.dtype) -> Any:
    """A number as a dtype holds it; RuntimeError where it does not."""
    element(number, dtype.np)
    return number if dtype.is_complex or type(number) is not complex else number.real


def _spaced_dtype(
    function: str, start: Any, end: Any, out: Any, dtype: Any
) -> dtypes.dtype:
    inferred = _default_dtype(start, end)
    chosen = out_dtype(function, out, dtype, inferred)
    if out is None and inferred.is_complex and not chosen.is_complex:
        raise RuntimeError(
            f"torch.{function}(): inferred dtype {inferred.cpp_name} can't be safely "
            f"cast to passed dtype {chosen.scalar_name}"
        )
    return chosen


@public
def linspace(
    start: Any = None,
    end: Any = None,
    steps: Any = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers at equal distances from `start` to `end`, both included.

    >>> import torchshim as torch
    >>> torch.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    start, end, count = _ends("linspace", start, end, steps)
    check_options("linspace", layout, pin_memory, requires_grad)
    chosen = _spaced_dtype("linspace", start, end, out, dtype)
    device = device_of("linspace", device)
    if count > 1:
        _check_kernel("linspace_cpu", chosen, (dtypes.BOOL,))
    if count:
        start, end = (_held(number, chosen) for number in (start, end))
    check_gradient(chosen, requires_grad)
    if at_once(device):
        with np.errstate(over="ignore", invalid="ignore"):
            array = ops.spaced(np, start, end, count, chosen.np)
        result = from_array(place(array, device), bool(requires_grad), device=device)
    else:
        result = fns.linspace(start, end, count, chosen, device)
        result = finish(result, bool(requires_grad))
    return result if out is None else _in_order(out, result)


@public
def logspace(
    start: Any = None,
    end: Any = None,
    steps: Any = None,
    base: float = 10.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Powers of `base` with exponents at equal distances from `start` to `end`.

    >>> import torchshim as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, end, count = _ends("logspace", start, end, steps)
    base = number_of("logspace", "base", 4, base)
    check_options("logspace", layout, pin_memory, requires_grad)
    chosen = _spaced_dtype("logspace", start, end, out, dtype)
    device = device_of("logspace", device)
    if count > 1:
        _check_kernel("logspace_cpu", chosen, (dtypes.BOOL,))
    if count:
        start, end = (_held(number, chosen) for number in (start, end))
    check_gradient(chosen, requires_grad)
    if at_once(device):
        with np.errstate(over="ignore", invalid="ignore"):
            array = ops.powers(np, start, end, count, base, chosen.np)
        result = from_array(place(array, device), bool(requires_grad), device=device)
    else:
        result = fns.logspace(start, end, count, base, chosen, device)
        result = finish(result, bool(requires_grad))
    return result if out is None else _in_order(out, result)


@public
def eye(
    n: Any = None,
    m: Any = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix with ones on the diagonal and zeros elsewhere.

    >>> import torchshim as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if n is None:
        raise missing("eye", "n")
    rows = as_index(n, single=True)
    if rows is None:
        raise TypeError(wrong("eye", "n", 1, "int", n))
    columns = rows if m is None else as_index(m, single=True)
    if columns is None:
        raise TypeError(wrong("eye", "m", 2, "int", m))
    for name, count in (("n", rows), ("m", columns)):
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    check_options("eye", layout, pin_memory, requires_grad)
    chosen = out_dtype("eye", out, dtype, dtypes.get_default_dtype())
    device = device_of("eye", device)
    if rows * columns >= COUNTS:
        raise too_many_elements()
    check_room((rows, columns), chosen, device)
    kind = dtypes.array_dtype(chosen)
    check_gradient(chosen, requires_grad)
    if at_once(device):
        array = np.eye(rows, columns, dtype=kind)
        result = from_array(place(array, device), bool(requires_grad), device=device)
    else:
        result = finish(fns.eye(rows, columns, chosen, device), bool(requires_grad))
    return result if out is None else into(out, result)


def _triangle(
    function: str,
    row: Any,
    col: Any,
    offset: Any,
    upper: bool,
    dtype: Any,
    device: Any,
    layout: Any,
    pin_memory: Any,
) -> Tensor:
    counts = []
    for at, (name, value) in enumerate(
        (("row", row), ("col", col), ("offset", offset)), 1
    ):
        if value is None:
            raise missing(function, name)
        count = as_index(value)
        if count is None:
            raise TypeError(wrong(function, name, at, "int", value))
        if count < 0 and name != "offset":
            raise RuntimeError(f"{name} must be non-negative, got{count}")
        counts.append(count)
    check_options(function, layout, pin_memory, False)
    chosen = out_dtype(function, None, dtype, dtypes.int64)
    device = device_of(function, device)
    if chosen not in (dtypes.int64, dtypes.int32):
        raise NotImplementedError(
            f"\"{function}\" not implemented for '{chosen.scalar_name}'"
        )
    if at_once(device):
        array = ops.triangle(*counts, upper=upper, np_dtype=chosen.np)
        return placed(array, device)
    return fns.triangle_indices(*counts, upper, chosen, device)


@public
def tril_indices(
    row: Any = None,
    col: Any = None,
    offset: Any = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Rows and columns of a matrix's lower triangle, as two rows.

    >>> import torchshim as torch
    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    rest = dtype, device, layout, pin_memory
    return _triangle("tril_indices", row, col, offset, False, *rest)


@public
def triu_indices(
    row: Any = None,
    col: Any = None,
    offset: Any = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Rows and columns of a matrix's upper triangle, as two rows.

    >>> import torchshim as torch
    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    rest = dtype, device, layout, pin_memory
    return _triangle("triu_indices", row, col, offset, True, *rest)
