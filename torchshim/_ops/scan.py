"""Running sums, products and extremes; differences and integrals of samples."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core import dtypes
from torchshim._core.dtypes import dtype as DType
from torchshim._core.meta import elementwise_strides
from torchshim._core.op import Arranged, Array, Scalar, op
from torchshim._core.promotion import promote
from torchshim._ops import _shapes
from torchshim._ops._reducing import (
    accumulated,
    check_asked_along,
    dense,
    is_complex,
    is_exact,
    isnan,
    not_implemented,
    one_axis,
    positions,
    take,
    wide,
)
from torchshim._ops.view_geometry import wrap_dim


def _in_place(name: str) -> Any:
    def check(input: Any, dim: int, dtype: DType | None) -> None:
        if dtype is not None and dtype is not input.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {input.dtype.cpp_name} and "
                f"output tensor dtype {dtype.cpp_name} should match"
            )
        if input.dtype is dtypes.bool_:
            raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")

    return check


# What is said of `out=` of another dtype.
_OTHER_TYPE = "expected scalar_type {want.scalar_name} but found {have.scalar_name}"


@op(
    grad_fn="CumsumBackward0",
    saves=(),
    inplace=True,
    inplace_check=_in_place("cumsum"),
    typecheck=check_asked_along,
    whole=("input",),
    out="computed",
    shape=_shapes.same,
)
def cumsum(input: Array, dim: int, *, dtype: DType | None = None) -> Array:
    """The sum of each element and those before it along a dimension."""
    x, axis = one_axis(accumulated(input, dtype), dim)
    if x.dtype == jnp.bool_:
        raise not_implemented("cumsum_out_cpu", x)
    w = wide(x)
    out = jnp.cumsum(w, axis=axis, dtype=w.dtype)
    return out.astype(x.dtype).reshape(input.shape)


@op(
    grad_fn="CumprodBackward0",
    saves=("input", "result"),
    inplace=True,
    inplace_check=_in_place("cumprod"),
    typecheck=check_asked_along,
    whole=("input",),
    out="computed",
)
def cumprod(input: Array, dim: int, *, dtype: DType | None = None) -> Array:
    """The product of each element and those before it along a dimension."""
    x, axis = one_axis(accumulated(input, dtype), dim)
    if x.dtype == jnp.bool_:
        raise not_implemented("cumprod_out_cpu", x)
    w = wide(x)
    out = jnp.cumprod(w, axis=axis, dtype=w.dtype)
    return out.astype(x.dtype).reshape(input.shape)


@op(
    grad_fn="LogcumsumexpBackward0",
    saves=("input", "result"),
    whole=("input",),
    out=_OTHER_TYPE,
)
def logcumsumexp(input: Array, dim: int) -> Array:
    """The logarithm of the running sum of exponentials, without overflow."""
    x, axis = one_axis(input, dim)
    if is_exact(x):
        raise not_implemented("logcumsumexp_out_cpu", x)
    out = jax.lax.cumlogsumexp(wide(x), axis=axis)
    if is_complex(x) and x.size:
        added = _added_in_order(jax.lax.stop_gradient(x), axis)
        turn = 2 * math.pi
        turns = jnp.round((added.imag - jax.lax.stop_gradient(out.imag)) / turn)
        turned = out + jax.lax.complex(jnp.zeros_like(turns), turns * turn)
        endless = jnp.isnan(out) | jnp.isnan(added) | (added.real == jnp.inf)
        out = jnp.where(endless, added, turned)
    return out.astype(x.dtype).reshape(input.shape)


def _added_in_order(x: Array, axis: int) -> Array:
    """The running sum, one after the other: the phase goes on from the larger one's."""

    def add(total: Array, one: Array) -> tuple[Array, Array]:
        more = total.real > one.real
        large, small = jnp.where(more, total, one), jnp.where(more, one, total)
        size, angle = jnp.exp(small.real - large.real), small.imag - large.imag
        # A phase counts for nothing beside what is infinitely larger.
        angle = jnp.where(size == 0, 0, angle)
        across, along = size * jnp.sin(angle), 1 + size * jnp.cos(angle)
        real = large.real + jnp.log(along * along + across * across) / 2
        added = jax.lax.complex(real, large.imag + jnp.arctan2(across, along))
        added = jnp.where(small.real == jnp.inf, _of_infinite(total, one), added)
        added = jnp.where(jnp.isnan(total) | jnp.isnan(one), complex("nan+nanj"), added)
        total = jnp.where(large.real == -jnp.inf, total, added)
        return total, total

    items = jnp.moveaxis(x, axis, 0)
    start = jnp.full_like(items[0], -jnp.inf)
    _, sums = jax.lax.scan(add, start, items)
    return jnp.moveaxis(sums, 0, axis)


def _of_infinite(*numbers: Array) -> Array:
    """log(exp(x) + exp(y)) of numbers whose real parts are infinite, as C has it."""
    along = across = jnp.zeros_like(numbers[0].real)
    for each in numbers:
        along = along + jnp.where(
            jnp.isinf(each.imag), jnp.inf, jnp.inf * jnp.cos(each.imag)
        )
        across = across + jnp.where(
            each.imag == 0, each.imag, jnp.inf * jnp.sin(each.imag)
        )
    size = jnp.where(jnp.isnan(along) & jnp.isnan(across), jnp.nan, jnp.inf)
    return jax.lax.complex(size.astype(along.dtype), jnp.arctan2(across, along))


def _running(name: str, input: Array, dim: int, largest: bool) -> tuple[Array, Array]:
    if not input.ndim and dim not in (0, -1):
        raise IndexError(
            f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}"
        )
    if not input.size and input.ndim:
        dim = 0  # PyTorch does not look at it
    x, axis = one_axis(input, dim)
    if is_complex(x) and input.size and input.ndim:
        raise not_implemented(f"{name}_cpu", x)
    key = x.astype(jnp.uint8) if x.dtype == jnp.bool_ else jax.lax.stop_gradient(x)
    if input.size and input.ndim:
        run = (jax.lax.cummax if largest else jax.lax.cummin)(key, axis=axis)
        # The last of equal elements; after a NaN, NaNs only.
        hit = (key == run) | isnan(key)
        index = jax.lax.cummax(jnp.where(hit, positions(x, axis), 0), axis=axis)
    else:
        index = jnp.zeros(x.shape, jnp.int64)
    values = take(x, index, axis)
    shape = input.shape
    return values.reshape(shape), index.astype(jnp.int64).reshape(shape)


@op(
    grad_fn="CummaxBackward0",
    saves=("input", "result1"),
    named_result=("values", "indices"),
    curved=False,
    out=_OTHER_TYPE,
)
def cummax(input: Array, dim: int) -> tuple[Array, Array]:
    """The largest element so far along a dimension, and its position."""
    return _running("cummax", input, dim, True)


@op(
    grad_fn="CumminBackward0",
    saves=("input", "result1"),
    named_result=("values", "indices"),
    curved=False,
    out=_OTHER_TYPE,
)
def cummin(input: Array, dim: int) -> tuple[Array, Array]:
    """The smallest element so far along a dimension, and its position."""
    return _running("cummin", input, dim, False)


# -- differences and integrals ---------------------------------------------------------


def _diff_node(input: object, n: int = 1, *rest: object) -> str:
    return "SubBackward0" if n else "CopyBackwards"


def _diff_out(input: object, n: int = 1, *rest: object) -> bool | str:
    return True if n else _OTHER_TYPE


def _diff_layout(
    shape: tuple[int, ...], input: Any, n: int, dim: int, prepend: Any, append: Any
) -> tuple[int, ...]:
    """That of a difference of two pieces; what is joined first is row-major."""
    joined = [x for x in (input, prepend, append) if x is not None]
    if n and len(joined) > 1:
        return dense(shape, joined)
    return elementwise_strides(shape, [(shape, input[1])])


@op(
    grad_fn=_diff_node,
    saves=(),
    layout=Arranged(_diff_layout),
    out=_diff_out,
)
def diff(
    input: Array,
    n: int = 1,
    dim: int = -1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """The `n`-th differences of neighbours along a dimension."""
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if not n and prepend is None and append is None:
        return input  # whatever the dimension
    axis = wrap_dim(dim, input.ndim)
    for other in (prepend, append):
        if other is not None:
            _check_attached(input, other, axis)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    parts = [p for p in (prepend, input, append) if p is not None]
    if n and len(parts) > 1:
        kind = dtypes.from_array_dtype(parts[0].dtype)
        for part in parts[1:]:
            kind = promote(kind, dtypes.from_array_dtype(part.dtype))
        x = jnp.concatenate([p.astype(kind.np) for p in parts], axis=axis)
    else:
        x = input
    for _ in range(min(n, x.shape[axis])):
        after = jax.lax.slice_in_dim(x, 1, None, axis=axis)
        before = jax.lax.slice_in_dim(x, 0, -1, axis=axis)
        x = after ^ before if x.dtype == jnp.bool_ else after - before
    return x


def _check_attached(input: Array, other: Array, axis: int) -> None:
    if other.ndim != input.ndim:
        raise RuntimeError(
            "diff expects prepend or append to be the same dimension as input"
        )
    for d, (a, b) in enumerate(zip(input.shape, other.shape, strict=True)):
        if d != axis and a != b:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that "
                f"of input except along the differencing dimension; input.size({d}) = "
                f"{a}, but got tensor.size({d}) = {b}"
            )


def _steps(name: str, y: Array, x: Array | None, dim: int) -> tuple[Array | None, int]:
    """The distances between the points that `y` was sampled at, and the axis."""
    if not y.ndim:
        if name != "trapezoid":
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = wrap_dim(dim, y.ndim)
    if x is None:
        return None, axis
    if x.ndim == 1:
        if not y.shape[axis] and name == "trapezoid":
            return None, axis  # no area, whatever the points
        if x.shape[0] != y.shape[axis]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point"
            )
        x = x.reshape([x.shape[0] if d == axis else 1 for d in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + x.shape)
    return _right(x, axis) - _left(x, axis), axis


def _left(x: Array, axis: int) -> Array:
    return jax.lax.slice_in_dim(x, 0, max(x.shape[axis] - 1, 0), axis=axis)


def _right(x: Array, axis: int) -> Array:
    return jax.lax.slice_in_dim(x, min(1, x.shape[axis]), None, axis=axis)


def _check_steps(y: Array, steps: Array) -> None:
    shape, other = y.shape, steps.shape
    for k in range(1, min(len(shape), len(other)) + 1):
        a, b = shape[-k], other[-k]
        if a != b and 1 not in (a, b):
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                f"non-singleton dimension {max(len(shape), len(other)) - k}"
            )


def _check_integral(name: str, y: Array, x: Array | None, dx: Any) -> None:
    given = [y] if x is None else [y, x]
    if x is not None and not (isinstance(dx, int) and dx == 1):
        raise TypeError(f"{name}() takes points or their distance")
    if isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    if any(v.dtype == jnp.bool_ for v in given):
        names = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(
            f"{name}: received a bool input for {names}, but bool is not supported"
        )


def _pairs(y: Array, steps: Array | None, axis: int) -> Array:
    """The sums of neighbours, times their distance.

    Integers overflow in their own dtype, as they do in PyTorch; their sums are int64.
    """
    y = wide(y)
    pairs = _left(y, axis) + _right(y, axis)
    if steps is None:
        return pairs
    _check_steps(pairs, steps)
    return pairs * wide(steps)


def _integral_dtype(y: Array, x: Array | None) -> Any:
    kind = dtypes.from_array_dtype(y.dtype)
    if x is not None:
        kind = promote(kind, dtypes.from_array_dtype(x.dtype))
    floating = kind.is_floating_point or kind.is_complex
    return (kind if floating else dtypes.get_default_dtype()).np


def _wide_dtype(dtype: Any) -> Any:
    return jnp.float32 if jnp.dtype(dtype).itemsize == 2 else dtype


def _summand(x: Array, dtype: Any) -> Array:
    return x.astype(jnp.int64 if is_exact(x) else _wide_dtype(dtype))


def _trapezoid_node(y: object, x: object = None, *rest: object) -> str:
    return "MulBackward1" if x is None else "DivBackward1"


@op(
    grad_fn=_trapezoid_node,
    saves=("intermediate",),
    layout=dense,
    method=False,
    out=False,
    aliases=("trapz",),
)
def trapezoid(
    y: Array, x: Array | None = None, *, dx: Scalar = 1, dim: int = -1
) -> Array:
    """The integral of samples by the trapezoidal rule."""
    _check_integral("trapezoid", y, x, dx)
    steps, axis = _steps("trapezoid", y, x, dim)
    dtype = _integral_dtype(y, x)
    if not y.shape[axis]:
        return jnp.sum(y, axis=axis, dtype=y.dtype)
    broad = _wide_dtype(dtype)
    if steps is not None:
        pairs = _pairs(y, steps, axis)
        total = jnp.sum(_summand(pairs, dtype), axis=axis).astype(broad)
        return (total / 2).astype(dtype)
    # Without the halves of both ends, as PyTorch has it: NaN where these are infinite.
    total = jnp.sum(_summand(y, dtype), axis=axis).astype(broad)
    y = wide(y)
    ends = jnp.take(y, 0, axis=axis) + jnp.take(y, y.shape[axis] - 1, axis=axis)
    integral = (total - ends.astype(broad) / 2) * jnp.asarray(dx).astype(broad)
    return integral.astype(dtype)


def _cumulative_node(y: object, x: object = None, *rest: object) -> str:
    return "CumsumBackward0" if x is None else "DivBackward1"


@op(
    grad_fn=_cumulative_node,
    saves=("intermediate",),
    layout=dense,
    method=False,
    out=False,
)
def cumulative_trapezoid(
    y: Array, x: Array | None = None, *, dx: Scalar = 1, dim: int = -1
) -> Array:
    """The running integral of samples by the trapezoidal rule."""
    _check_integral("cumulative_trapezoid", y, x, dx)
    steps, axis = _steps("cumulative_trapezoid", y, x, dim)
    dtype = _integral_dtype(y, x)
    pairs = _pairs(y, steps, axis)
    if steps is None:
        half = (jnp.asarray(dx) / 2).astype(_wide_dtype(dtype))
        summands = pairs.astype(half.dtype) * half
        return jnp.cumsum(summands, axis=axis).astype(dtype)
    total = jnp.cumsum(_summand(pairs, dtype), axis=axis)
    return (total.astype(_wide_dtype(dtype)) / 2).astype(dtype)
