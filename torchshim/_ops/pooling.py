"""Pooling: the largest or the mean of the elements in a window (`_windows`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.linearize import is_forward
from torchshim._core.op import Array, op
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    INT,
    quotient,
    refuse,
    refuse_half,
    widened,
)
from torchshim._ops._formats import channels_layout, signal_layout, volume_layout
from torchshim._ops._windows import (
    Ints,
    are_rows,
    in_rows,
    largest,
    positions_in,
    slices,
    stretched,
    windows_of,
)
from torchshim._ops.view_geometry import size_at

_INT_MAX = np.iinfo(np.int32).max


def _values(value: Any, n: int, pool: str, name: str, alone: bool = False) -> Ints:
    if isinstance(value, int):
        return (value,) * n
    values = tuple(value)
    if len(values) == 1:
        return values * n
    if len(values) != n:
        if alone:
            # PyTorch has commas in two of the four texts.
            none = "None, " if name == "stride" else ""
            comma = "," * (name in ("stride", "padding"))
            raise RuntimeError(
                f"{pool}() {name} must be {none}an int, list of ints{comma} or tuple "
                f"of ints of size 1 but got size {len(values)}"
            )
        words = {1: "one", 2: "two", 3: "three"}[n]
        if n == 1:
            raise RuntimeError(
                f"{pool}() argument '{name}' should contain one int (got {len(values)})"
            )
        omitted = "omitted, " if name == "stride" else ""
        either = "" if pool == "avg_pool3d" else "either "
        raise RuntimeError(
            f"{pool}: {name} must {either}be {omitted}a single int, or a tuple of "
            f"{words} ints"
        )
    return values


def pooled_size(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> int:
    """How many windows fit; with `ceil` the last one may stick out."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = -(-span // stride) + 1 if ceil else span // stride + 1
    # A window has to start within the input or its left padding.
    if ceil and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def _check(
    pool: str,
    input: Array,
    n: int,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil: bool,
    alone: bool = True,
) -> Ints:
    """Raises PyTorch's errors; the output's size. `alone`: without indices."""
    if alone and pool == "max_pool1d":
        _check_1d(input, kernel[0], stride[0], padding[0], dilation[0])
    elif max(map(abs, (*kernel, *stride, *padding, *dilation))) > _INT_MAX:
        raise RuntimeError("value cannot be converted to type int without overflow")
    _check_dimensions(pool, input, n)
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero")
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > int((d * (k - 1) + 1) / 2):  # rounded to zero
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )
    _check_windows(n, kernel, stride, dilation)
    _check_elements(pool, input, n)
    size = input.shape[-n:]
    if pool == "avg_pool3d" and any(s < k for s, k in zip(size, kernel, strict=True)):
        raise RuntimeError(
            f"input image ({_named('THW', size)}) smaller than kernel size "
            f"({_named(('kT', 'kH', 'kW'), kernel)})"
        )
    out: Ints = tuple(
        pooled_size(*each, ceil)
        for each in zip(size, kernel, stride, padding, dilation, strict=True)
    )
    empty = any(o < 1 for o in out)
    if empty and pool == "max_pool1d" and alone:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out[0]}")
    if empty:
        channels = input.shape[-n - 1]
        one = (1,) if n == 1 else ()
        given = "x".join(map(str, (channels, *one, *size)))
        found = "x".join(map(str, (channels, *one, *(max(o, 0) for o in out))))
        raise RuntimeError(
            f"Given input size: ({given}). Calculated output size: ({found}). Output "
            "size is too small"
        )
    return out


def _named(names: Sequence[str], values: Ints) -> str:
    return " ".join(f"{name}: {v}" for name, v in zip(names, values, strict=True))


def _check_windows(n: int, kernel: Ints, stride: Ints, dilation: Ints) -> None:
    checked = (
        ("kernel size", "k", kernel),
        ("stride", "d", stride),
        ("dilation", "dilation", dilation),
    )
    for name, letter, values in checked:
        if min(values) <= 0:
            # A signal is an image of one row.
            inner = _named(
                [letter + c for c in "THW"[-max(n, 2) :]], (1, *values)[-max(n, 2) :]
            )
            raise RuntimeError(f"{name} should be greater than zero, but got {inner}")


def _check_dimensions(pool: str, input: Array, n: int) -> None:
    if input.ndim not in (n + 1, n + 2):
        if pool.startswith("avg_pool1d") or n == 1:
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor "
                f"for argument #1 'self' (while checking arguments for {pool})"
            )
        if pool == "avg_pool2d":
            size_at(input.shape, -3)  # raises if there are fewer
            return  # told with the empty ones
        raise RuntimeError(
            f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input"
        )


def _check_elements(pool: str, input: Array, n: int) -> None:
    """Refuses empty dimensions other than the batch."""
    if input.ndim < n + 3 and all(input.shape[input.ndim - n - 1 :]):
        return
    if n == 3:
        template = "max_pool3d_with_indices_out_cpu_template"
        name = template if pool == "max_pool3d" else pool
        raise RuntimeError(
            f"{name}(): Expected input's non-batch dimensions to have "
            f"positive length, but input has a shape of {list(input.shape)} and "
            "non-batch dimension 0 has length zero!"
        )
    # A signal is an image of one row.
    row = (1,) * (n == 1)
    shape = [*input.shape[:-1], *row, input.shape[-1]]
    raise RuntimeError(
        f"Expected {n + len(row) + 1}D or {n + len(row) + 2}D (batch mode) tensor "
        f"with optional 0 dim batch size for input, but got:{shape}"
    )


def _check_1d(input: Array, kernel: int, stride: int, padding: int, span: int) -> None:
    if input.ndim not in (2, 3) or not all(input.shape[input.ndim - 2 :]):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim "
            "batch "
            f"size for input, but got:{list(input.shape)}"
        )
    for name, value in (("kernel_size", kernel), ("stride", stride)):
        if value <= 0:
            raise RuntimeError(
                f"max_pool1d() {name} must be greater than zero, but got {value}"
            )
    if padding < 0:
        raise RuntimeError(
            f"max_pool1d() padding must be non-negative, but got {padding}"
        )
    if padding > kernel / 2:
        raise RuntimeError(
            "max_pool1d() padding should be at most half of kernel size, but got "
            f"padding={padding} and kernel_size={kernel}"
        )
    if span <= 0:
        raise RuntimeError(
            f"max_pool1d() dilation must be greater than zero, but got {span}"
        )


def _max_pool(
    n: int, input: Array, args: tuple[Any, ...], indices: bool
) -> tuple[Array, Array | None]:
    pool = f"max_pool{n}d"
    kernel_size, stride, padding, dilation, ceil = args
    alone = n == 1 and not indices
    kernel = _values(kernel_size, n, pool, "kernel_size", alone)
    steps = kernel
    if stride not in (None, ()):
        steps = _values(stride, n, pool, "stride", alone)
    pads = _values(padding, n, pool, "padding", alone)
    spans = _values(dilation, n, pool, "dilation", alone)
    out = _check(pool, input, n, kernel, steps, pads, spans, ceil, not indices)
    if alone:
        refuse("max_pool1d_impl", input, BOOL + INT + COMPLEX)
    refuse(f"max_pool{max(n, 2)}d", input, BOOL + COMPLEX)
    windows = windows_of(input.shape[-n:], kernel, steps, pads, spans)
    at = positions_in(input, n) if indices else None
    return largest(input, windows, out, at)


_PLAIN = {"namespaces": (), "method": False, "out": False, "saves": ("input",)}


def pool_op(
    node: str | Callable[..., str], layout: Any = channels_layout, **options: Any
) -> Any:
    return op(grad_fn=node, layout=layout, **{**_PLAIN, **options})


# Of largest elements PyTorch's gradient also reads where they stand.
WITH_PLACES: dict[str, Any] = {"saves": ("input", "result1")}


def _pair(found: tuple[Array, Any]) -> tuple[Array, Array]:
    return found


@pool_op("SqueezeBackward1")
def max_pool1d(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    dilation: int | Ints = 1,
    ceil_mode: bool = False,
) -> Array:
    """The largest element of each window of a signal."""
    args = (kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(1, input, args, False)[0]


@pool_op("SqueezeBackward1", signal_layout, **WITH_PLACES)
def max_pool1d_with_indices(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    dilation: int | Ints = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """`max_pool1d`, and where each largest element stands."""
    args = (kernel_size, stride, padding, dilation, ceil_mode)
    return _pair(_max_pool(1, input, args, True))


@pool_op("MaxPool2DWithIndicesBackward0")
def max_pool2d(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    dilation: int | Ints = 1,
    ceil_mode: bool = False,
) -> Array:
    """The largest element of each window of an image."""
    args = (kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(2, input, args, False)[0]


@pool_op("MaxPool2DWithIndicesBackward0", **WITH_PLACES)
def max_pool2d_with_indices(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    dilation: int | Ints = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """`max_pool2d`, and where each largest element stands."""
    args = (kernel_size, stride, padding, dilation, ceil_mode)
    return _pair(_max_pool(2, input, args, True))


@pool_op("MaxPool3DWithIndicesBackward0", volume_layout)
def max_pool3d(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    dilation: int | Ints = 1,
    ceil_mode: bool = False,
) -> Array:
    """The largest element of each window of a volume."""
    args = (kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(3, input, args, False)[0]


@pool_op("MaxPool3DWithIndicesBackward0", volume_layout, **WITH_PLACES)
def max_pool3d_with_indices(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    dilation: int | Ints = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """`max_pool3d`, and where each largest element stands."""
    args = (kernel_size, stride, padding, dilation, ceil_mode)
    return _pair(_max_pool(3, input, args, True))


# Means -------------------------------------------------------------------------------


def _divisors(
    size: Ints, windows: Sequence[tuple[int, int, int]], out: Ints, pads: bool
) -> np.ndarray:
    """How many elements each window counts."""
    total = np.ones((), np.int64)
    for s, (kernel, stride, padding), o in zip(size, windows, out, strict=True):
        start = np.arange(o) * stride - padding
        end = np.minimum(start + kernel, s + padding)
        if not pads:
            start, end = np.maximum(start, 0), np.minimum(end, s)
        total = total[..., None] * (end - start)
    return total


def _avg_pool(
    n: int,
    input: Array,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Array:
    pool = f"avg_pool{n}d"
    kernel = _values(kernel_size, n, pool, "kernel_size")
    steps = kernel if stride in (None, ()) else _values(stride, n, pool, "stride")
    pads = _values(padding, n, pool, "padding")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    out = _check(pool, input, n, kernel, steps, pads, (1,) * n, ceil_mode)
    kernel_name = "avg_pool3d_out_frame" if n == 3 else "avg_pool2d"
    integers = "" if input.dtype == jnp.int64 else INT
    refuse(kernel_name, input, BOOL + integers + COMPLEX)
    if n == 3:
        refuse_half(kernel_name, input)
    x = widened(input)
    size = input.shape[-n:]
    windows = windows_of(size, kernel, steps, pads, (1,) * n)
    for i in reversed(range(n)):
        axis = x.ndim - n + i
        reach = windows[i][0]
        if are_rows(windows[i], x.shape[axis], out[i]):
            x = in_rows(x, axis, out[i], reach).sum(axis + 1, dtype=x.dtype)
            continue
        x = stretched(x, axis, windows[i], out[i], 0)
        parts = slices(x, axis, reach, steps[i], 1, out[i])
        x = parts[0]
        for part in parts[1:]:
            x = x + part
    if divisor_override is not None:
        divisor = np.asarray(divisor_override)
    else:
        whole = list(zip(kernel, steps, pads, strict=True))
        divisor = _divisors(size, whole, out, count_include_pad)
        if (divisor == divisor.flat[0]).all():
            divisor = divisor.flat[0]
    if jnp.issubdtype(x.dtype, jnp.integer):
        return lax.div(x, jnp.broadcast_to(jnp.asarray(divisor, x.dtype), x.shape))
    return quotient(x, jnp.asarray(divisor, x.dtype)).astype(input.dtype)


def average_op(
    node: str, *spaces: str, out: bool | str = False, layout: Any = None
) -> Any:
    options = {**_PLAIN, "namespaces": spaces, "out": out, "layout": layout}
    return op(grad_fn=node, **options)


@average_op("SqueezeBackward1", "torch", "nn.functional", layout=signal_layout)
def avg_pool1d(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The mean of each window of a signal."""
    return _avg_pool(
        1, input, kernel_size, stride, padding, ceil_mode, count_include_pad
    )


@average_op("AvgPool2DBackward0", "nn.functional", out="exact", layout=channels_layout)
def avg_pool2d(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of an image."""
    args = (kernel_size, stride, padding, ceil_mode, count_include_pad)
    return _avg_pool(2, input, *args, divisor_override)


@average_op("AvgPool3DBackward0", "nn.functional", out="exact")
def avg_pool3d(
    input: Array,
    kernel_size: int | Ints,
    stride: Any = None,
    padding: int | Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of a volume."""
    args = (kernel_size, stride, padding, ceil_mode, count_include_pad)
    return _avg_pool(3, input, *args, divisor_override)


# Back to the places of the largest ---------------------------------------------------


def _unpool_checks(input: Array, indices: Array, size: Ints) -> list[Check]:
    count = math.prod(size)
    bad = (indices < 0) | (indices >= count)
    if not bad.size:
        return []
    value = indices.reshape(-1)[jnp.argmax(bad.reshape(-1))]
    # Signals are images of one column.
    dims = "x".join(map(str, size if len(size) > 1 else (*size, 1)))
    return [
        Check(
            bad.any(),
            RuntimeError,
            "Found an invalid max index: {value} (output volumes are of size "
            f"{dims})",
            value,
        )
    ]


@op(
    grad_fn=lambda input, indices, size: (
        "SqueezeBackward1" if len(size) == 1 else f"MaxUnpool{len(size)}DBackward0"
    ),
    checks=_unpool_checks,
    differentiable=("input",),
    layout=lambda shape, operands: (
        channels_layout(shape, operands) if len(shape) == 4 else None
    ),
    **{**_PLAIN, "saves": ("indices",)},
)
def max_unpool(input: Array, indices: Array, size: Ints) -> Array:
    """Zeros, with each element at the place it had before pooling."""
    kernel = f"max_unpool{max(len(size), 2)}d"
    refuse(kernel, input, BOOL + INT + COMPLEX)
    lead = input.shape[: input.ndim - len(size)]
    rows = math.prod(lead)
    row = jnp.arange(rows)[:, None]
    each = math.prod(input.shape[len(lead) :])
    at = indices.reshape(rows, each)

    @jax.custom_jvp
    def placed(values: Array) -> Array:
        return blank(values).set(values, mode="drop")

    @placed.defjvp
    def slope(primals: Any, tangents: Any) -> Any:
        if is_forward():
            return placed(*primals), placed(*tangents)
        # Elements that others overwrite get the gradient of that place, too.
        return placed(*primals), blank(tangents[0]).add(tangents[0], mode="drop")

    def blank(values: Array) -> Any:
        return jnp.zeros((rows, math.prod(size)), values.dtype).at[row, at]

    return placed(input.reshape(rows, each)).reshape(*lead, *size)
