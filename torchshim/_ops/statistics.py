"""Variances and order statistics."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.op import Array, op
from torchshim._errors import triggered
from torchshim._ops._reducing import (
    ALL,
    UNSAID,
    Dims,
    axes_of,
    check_not_empty,
    count,
    first,
    is_complex,
    is_exact,
    is_float,
    isnan,
    not_implemented,
    one_axis,
    pick,
    positions,
    ratio,
    shared_out,
    sqrt,
    squeezed,
    take,
    wide,
    with_slope,
)
from torchshim._ops._selection import position_of_rank
from torchshim._ops.sorting import order

# -- variance --------------------------------------------------------------------------


def _moments(
    name: str, input: Array, dim: Dims, lost: float, keepdim: bool
) -> tuple[Array, Array]:
    """The variance (or its root) and the mean, with `lost` degrees of freedom."""
    if is_exact(input):
        which = f"{name} only" if name.endswith("_mean") else "std and var only"
        raise RuntimeError(f"{which} support floating point and complex dtypes")
    dim = None if dim is ALL else dim
    axes = axes_of(dim, input.ndim)
    w = wide(input)
    number = count(w, axes)
    free = number - lost

    def mean(x: Array) -> Array:
        if is_complex(x):
            return jax.lax.complex(mean(x.real), mean(x.imag))
        return jnp.sum(x, axis=axes, keepdims=True) / number

    # Of nothing there is no variance, whatever the correction.
    divisor = max(free, 0) if number else 0

    def spread(d: Array) -> Array:
        return jnp.sum(d * d, axis=axes, keepdims=True) / divisor

    def value(x: Array) -> Array:
        d = x - mean(x)
        # Each part by itself: one without spread is NaN where no freedom is left.
        return spread(d.real) + spread(d.imag) if is_complex(d) else spread(d)

    def slope(x: Array, out: Array) -> Array:
        d = x - mean(x)
        if (dim is None or not x.ndim) and free <= 0:
            return jnp.where(d == 0, jnp.nan, jnp.inf).astype(d.dtype)
        # PyTorch counts one element where no dimension is named.
        return d * ratio(2, 1 - lost if dim == () else free)

    variance = with_slope(w, axes, value, slope)
    if name.startswith("std"):
        variance = sqrt(variance)
    kind = input.real.dtype
    return (
        squeezed(variance, axes, keepdim).astype(kind),
        squeezed(mean(w) + _lost_mean(w, axes), axes, keepdim).astype(input.dtype),
    )


def _lost_mean(x: Array, axes: tuple[int, ...]) -> Array:
    """NaN where an infinite element is not the last one: PyTorch's mean is running."""
    if is_complex(x):
        return jax.lax.complex(_lost_mean(x.real, axes), _lost_mean(x.imag, axes))
    last = functools.reduce(
        operator.and_, (positions(x, d) == x.shape[d] - 1 for d in axes), True
    )
    lost = jnp.any(jnp.isinf(x) & ~jnp.asarray(last), axis=axes, keepdims=True)
    return jnp.where(lost, jnp.nan, 0).astype(x.dtype)


def degrees(dim: Dims, unbiased: bool, correction: float | None) -> float:
    """What the number of elements is reduced by before it divides."""
    if unbiased is UNSAID:
        return 1 if correction is None else correction
    if correction is not None or unbiased is None or dim is ALL:
        raise TypeError("unbiased goes with dimensions, in the place of correction")
    return int(unbiased)


def _warning(name: str, input: Any, dim: Dims, lost: float) -> str | None:
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        return None  # an error, which comes before those of dimensions
    axes = axes_of(dim, len(input.shape))
    number = math.prod(input.shape[a] for a in axes)
    if not math.prod(n for d, n in enumerate(input.shape) if d not in axes):
        number = 0  # no result, which PyTorch takes for one of no elements
    if number - lost > 0:
        return None
    text = (
        f"{name}(): degrees of freedom is <= 0. Correction should be strictly "
        "less than the reduction factor (input numel divided by output numel)."
    )
    return triggered(text, "aten/src/ATen/native/ReduceOps.cpp:1861")


def _warns(name: str) -> Any:
    def warning(input: Any, dim: Dims, unbiased: bool, *rest: Any) -> str | None:
        return _warning(name, input, dim, degrees(dim, unbiased, rest[-1]))

    return warning


def _warns_whole(name: str) -> Any:
    return lambda input, unbiased: _warning(name, input, None, int(unbiased))


@op(
    name="var.whole",
    public="var",
    overload=True,
    grad_fn="VarBackward0",
    saves=("input",),
    out=False,
    warns=_warns_whole("var"),
)
def var_whole(input: Array, unbiased: bool) -> Array:
    """The variance of all elements."""
    return _moments("var", input, None, int(unbiased), False)[0]


@op(
    name="var.dim",
    public="var",
    overload=True,
    grad_fn="VarBackward0",
    saves=("input",),
    warns=_warns("var"),
)
def var(
    input: Array,
    dim: Dims = ALL,
    unbiased: bool = UNSAID,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Array:
    """The variance, over some dimensions or all."""
    lost = degrees(dim, unbiased, correction)
    return _moments("var", input, dim, lost, keepdim)[0]


@op(
    name="std.whole",
    public="std",
    overload=True,
    grad_fn="StdBackward0",
    saves=("input", "result"),
    out=False,
    warns=_warns_whole("std"),
)
def std_whole(input: Array, unbiased: bool) -> Array:
    """The standard deviation of all elements."""
    return _moments("std", input, None, int(unbiased), False)[0]


@op(
    name="std.dim",
    public="std",
    overload=True,
    grad_fn="StdBackward0",
    saves=("input", "result"),
    warns=_warns("std"),
)
def std(
    input: Array,
    dim: Dims = ALL,
    unbiased: bool = UNSAID,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Array:
    """The standard deviation, over some dimensions or all."""
    lost = degrees(dim, unbiased, correction)
    return _moments("std", input, dim, lost, keepdim)[0]


@op(
    name="var_mean.whole",
    public="var_mean",
    overload=True,
    grad_fn="VarMeanBackward0",
    saves=("input",),
    method=False,
    out=False,
    warns=_warns_whole("var_mean"),
)
def var_mean_whole(input: Array, unbiased: bool) -> tuple[Array, Array]:
    """The variance and the mean of all elements."""
    return _moments("var_mean", input, None, int(unbiased), False)


@op(
    name="var_mean.dim",
    public="var_mean",
    overload=True,
    grad_fn="VarMeanBackward0",
    saves=("input",),
    method=False,
    out=False,
    warns=_warns("var_mean"),
)
def var_mean(
    input: Array,
    dim: Dims = ALL,
    unbiased: bool = UNSAID,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Array, Array]:
    """The variance and the mean, over some dimensions or all."""
    lost = degrees(dim, unbiased, correction)
    return _moments("var_mean", input, dim, lost, keepdim)


@op(
    name="std_mean.whole",
    public="std_mean",
    overload=True,
    grad_fn="StdMeanBackward0",
    saves=("input", "result0"),
    method=False,
    out=False,
    warns=_warns_whole("std_mean"),
)
def std_mean_whole(input: Array, unbiased: bool) -> tuple[Array, Array]:
    """The standard deviation and the mean of all elements."""
    return _moments("std_mean", input, None, int(unbiased), False)


@op(
    name="std_mean.dim",
    public="std_mean",
    overload=True,
    grad_fn="StdMeanBackward0",
    saves=("input", "result0"),
    method=False,
    out=False,
    warns=_warns("std_mean"),
)
def std_mean(
    input: Array,
    dim: Dims = ALL,
    unbiased: bool = UNSAID,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Array, Array]:
    """The standard deviation and the mean, over some dimensions or all."""
    lost = degrees(dim, unbiased, correction)
    return _moments("std_mean", input, dim, lost, keepdim)


# -- order statistics ------------------------------------------------------------------


def _median_position(x: Array, axis: int, skip_nan: bool) -> Array:
    """Where the lower median stands, dimension kept."""
    size = x.shape[axis]
    nan = isnan(x)
    if skip_nan:
        number = jnp.sum(~nan, axis=axis, keepdims=True, dtype=jnp.int64)
        rank: Any = jnp.maximum(number - 1, 0) // 2
    else:
        rank = (size - 1) // 2
    index = position_of_rank(x, axis, rank)
    if skip_nan or is_exact(x):
        return index
    has_nan = jnp.any(nan, axis=axis, keepdims=True)
    return jnp.where(has_nan, first(nan, axis), index)


def _median(input: Array, skip_nan: bool) -> Array:
    """The median of all elements; equal ones share the gradient."""
    _check_sortable("median_cpu", input)
    if not input.size:
        empty = jnp.nan if is_float(input) else jnp.iinfo(input.dtype).min
        return jnp.full((), empty, input.dtype)
    flat = input.reshape(-1)

    def value(x: Array) -> Array:
        return take(x, _median_position(x, 0, skip_nan), 0)

    if is_exact(flat):
        return value(flat).reshape(())
    return shared_out(flat, (0,), value).reshape(())


def _check_sortable(kernel: str, input: Array) -> None:
    if input.dtype == jnp.bool_ or is_complex(input):
        raise not_implemented(kernel, input)


def _chosen(x: Array, index: Array, axis: int, keepdim: bool) -> tuple[Array, Array]:
    """Values and indices of one element along an axis."""
    return (
        squeezed(pick(x, index, axis), (axis,), keepdim),
        squeezed(index.astype(jnp.int64), (axis,), keepdim),
    )


def _median_along(
    input: Array, dim: int, keepdim: bool, skip_nan: bool
) -> tuple[Array, Array]:
    x, axis = one_axis(input, dim)
    check_not_empty("median", x, (axis,), True)
    _check_sortable("median_out", input)
    index = _median_position(x, axis, skip_nan)
    return _chosen(x, index, axis, keepdim and bool(input.ndim))


# Of operators that give elements along a dimension, and where they stand.
_ELEMENTS: dict[str, Any] = {
    "saves": ("result1",),
    "named_result": ("values", "indices"),
    "out": True,
    "curved": False,
}
_OTHER_TYPE = (
    "Expected tensor for 'values' to have the same type as tensor for argument #2 "
    "'self'; but type {have.tensor_name} does not equal {want.tensor_name} (while "
    "checking arguments for median)"
)
_NO_INDICES = (
    "Expected tensor for argument #1 'indices' to have scalar type Long; but got "
    "{have.tensor_name} instead (while checking arguments for median)"
)
_OF_MEDIAN: dict[str, Any] = _ELEMENTS | {"out": (_OTHER_TYPE, _NO_INDICES)}


_WHOLE: dict[str, Any] = {
    "overload": True,
    "saves": ("input", "result"),
    "out": False,
    "curved": False,
}


@op(name="median.whole", public="median", grad_fn="MedianBackward0", **_WHOLE)
def median_whole(input: Array) -> Array:
    """The median of all elements: the lower, of two."""
    return _median(input, False)


@op(
    name="median.dim",
    public="median",
    overload=True,
    grad_fn="MedianBackward1",
    **_OF_MEDIAN,
)
def median_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The medians along a dimension, and their positions."""
    return _median_along(input, dim, keepdim, False)


@op(name="nanmedian.whole", public="nanmedian", grad_fn="NanmedianBackward0", **_WHOLE)
def nanmedian_whole(input: Array) -> Array:
    """The median of all elements, NaNs left out: the lower, of two."""
    return _median(input, True)


@op(
    name="nanmedian.dim",
    public="nanmedian",
    overload=True,
    grad_fn="NanmedianBackward1",
    **_OF_MEDIAN,
)
def nanmedian_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The medians along a dimension, NaNs left out, and their positions."""
    return _median_along(input, dim, keepdim, True)


_SAME_VALUES = "output values must be of same type as input"
_OF_KTHVALUE: dict[str, Any] = {
    "out": (_SAME_VALUES, "output indices must be of scalar type Long")
}


@op(grad_fn="KthvalueBackward0", apart=("input",), **_ELEMENTS | _OF_KTHVALUE)
def kthvalue(
    input: Array, k: int, dim: int = -1, keepdim: bool = False
) -> tuple[Array, Array]:
    """The `k`-th smallest elements along a dimension, and their positions."""
    x, axis = one_axis(input, dim)
    check_not_empty("kthvalue", x, (axis,), True)
    if not 1 <= k <= x.shape[axis]:
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {axis}"
        )
    _check_sortable("kthvalue_cpu", input)
    index = position_of_rank(x, axis, k - 1)
    return _chosen(x, index, axis, keepdim and bool(input.ndim))


_OF_MODE: dict[str, Any] = {
    "out": tuple(
        "expected scalar type '{want.scalar_name}' but got '{have.scalar_name}' "
        f"for {name} output"
        for name in ("values", "indices")
    )
}


@op(grad_fn="ModeBackward0", apart=("input",), **_ELEMENTS | _OF_MODE)
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The most frequent elements along a dimension, and where they stand last."""
    x, axis = one_axis(input, dim)
    check_not_empty("mode", x, (axis,), True)
    if is_complex(x):
        raise not_implemented("mode_cpu", x)
    if not x.size:
        shape = [1 if a == axis else n for a, n in enumerate(x.shape)]
        return _chosen(x, jnp.zeros(shape, jnp.int64), axis, keepdim)
    ordered = order(x, axis)
    s = take(jax.lax.stop_gradient(x), ordered, axis)
    at = positions(s, axis)
    before = jnp.roll(s, 1, axis)
    starts = jax.lax.cummax(jnp.where((s != before) | (at == 0), at, 0), axis=axis)
    length = at - starts
    longest = first(length == jnp.max(length, axis=axis, keepdims=True), axis)
    return _chosen(x, take(ordered, longest, axis), axis, keepdim and bool(input.ndim))
