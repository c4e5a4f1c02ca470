"""What reductions share: their axes, widths, and derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core import dtypes, promotion, record
from torchshim._core.dtypes import dtype as DType
from torchshim._core.meta import contiguous_strides
from torchshim._core.op import Array
from torchshim._ops.view_geometry import wrap_dim

Dims = Any  # an integer, a sequence of them, or None


class _Unsaid:
    """A default where leaving the argument out is not the same as None."""

    def __repr__(self) -> str:
        return "None"


ALL: Any = _Unsaid()  # dimensions
UNSAID: Any = _Unsaid()


def dense(shape: tuple[int, ...], _: Any) -> tuple[int, ...]:
    """The layout of a promoting operator that is not element-wise."""
    return contiguous_strides(shape)


def axes_of(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The axes that `dim` names; none named means all of them."""
    if dim is ALL or dim is None or dim == ():
        return tuple(range(ndim))
    found: list[int] = []
    for each in dim if isinstance(dim, tuple) else (dim,):
        axis = wrap_dim(each, ndim)
        if axis in found:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
        found.append(axis)
    return tuple(sorted(found)) if ndim else ()


def one_axis(input: Array, dim: int) -> tuple[Array, int]:
    """The input with at least one dimension, and the axis that `dim` names."""
    axis = wrap_dim(dim, input.ndim)
    return (input if input.ndim else input.reshape(1)), axis


def count(input: Array, axes: tuple[int, ...]) -> int:
    """How many elements are reduced to one."""
    return math.prod(input.shape[a] for a in axes)


def check_not_empty(
    name: str, input: Array, axes: tuple[int, ...], given: bool
) -> None:
    """Raises for a reduction without identity over nothing."""
    if input.size or not input.ndim:
        return
    if not given:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    for axis in axes:
        if not input.shape[axis]:
            raise IndexError(
                f"{name}(): Expected reduction dim {axis} to have non-zero size."
            )


def is_complex(input: Array) -> bool:
    return jnp.issubdtype(input.dtype, jnp.complexfloating)


def is_float(input: Array) -> bool:
    return jnp.issubdtype(input.dtype, jnp.floating)


def is_exact(input: Array) -> bool:
    return not jnp.issubdtype(input.dtype, jnp.inexact)


def scalar_name(input: Array) -> str:
    """The dtype as PyTorch's errors name it: Float, Long, …"""
    return dtypes.from_array_dtype(input.dtype).scalar_name


def not_implemented(kernel: str, input: Array) -> NotImplementedError:
    return NotImplementedError(
        f"\"{kernel}\" not implemented for '{scalar_name(input)}'"
    )


def wide(input: Array) -> Array:
    """Half types as float32, which is what is computed in."""
    if is_float(input) and input.dtype.itemsize < 4:
        return input.astype(jnp.float32)
    return input


def total(input: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The sum; of complex numbers part by part, as XLA's tree of sums is of reals."""
    if jnp.iscomplexobj(input):
        parts = (total(x, axes, keepdims) for x in (input.real, input.imag))
        return lax.complex(*parts)
    return jnp.sum(input, axis=axes, keepdims=keepdims, dtype=input.dtype)


def spread(input: Array, shape: tuple[int, ...]) -> Array:
    """The input broadcast; the gradients of half types are summed in float32."""
    return jnp.broadcast_to(wide(input), shape).astype(input.dtype)


def cast(input: Array, asked: DType | None) -> Array:
    """The input in the dtype that was asked for."""
    if asked is None or input.dtype == asked.np:
        return input
    return promotion.cast(input, asked.np)


def accumulated(input: Array, asked: DType | None) -> Array:
    """The input as sums and products take it: integers and bool in int64."""
    if asked is None and is_exact(input):
        return input.astype(jnp.int64)
    return cast(input, asked)


def isnan(input: Array) -> Array:
    """Where there are NaNs; False for dtypes that have none."""
    if is_exact(input):
        return jnp.zeros(input.shape, bool)
    return jnp.isnan(input)


def positions(input: Array, axis: int) -> Array:
    """Each element's position along an axis, int32 where that is enough."""
    kind = jnp.int32 if input.shape[axis] < 2**31 - 1 else jnp.int64
    return jax.lax.broadcasted_iota(kind, input.shape, axis)


def first(hit: Array, axis: int) -> Array:
    """The first position along an axis where `hit` holds, dimension kept; int64."""
    at = positions(hit, axis)
    # Two plain reductions: XLA's argmax is a scalar loop on CPU.
    end = jnp.asarray(max(hit.shape[axis] - 1, 0), at.dtype)
    return jnp.min(
        jnp.where(hit, at, end), axis=axis, keepdims=True, initial=end
    ).astype(jnp.int64)


def extreme(input: Array, axes: int | tuple[int, ...], largest: bool) -> Array:
    """The extreme along some axes, dimensions kept; an element of the input.

    XLA would take that of joined tensors from each of them, which it computes again and
    may round otherwise than the joined ones: no element would equal it.
    """
    reduce = jnp.max if largest else jnp.min
    return reduce(jax.lax.optimization_barrier(input), axis=axes, keepdims=True)


def take(input: Array, index: Array, axis: int) -> Array:
    """`take_along_axis` for positions that are known to be in bounds."""
    return jnp.take_along_axis(input, index, axis, mode="promise_in_bounds")


def pick(input: Array, index: Array, axis: int) -> Array:
    """One element along an axis, dimension kept; its gradient goes there alone."""

    @jax.custom_jvp
    def picked(input: Array) -> Array:
        return take(input, index, axis)

    @picked.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        # A masked sum, whose transpose is a select: a scatter is slow on CPU.
        (tangent,) = tangents
        chosen = positions(input, axis) == index
        return picked(*primals), jnp.sum(
            jnp.where(chosen, tangent, 0), axis=axis, keepdims=True, dtype=tangent.dtype
        )

    return picked(input)


def squeezed(value: Array, axes: tuple[int, ...], keepdim: bool) -> Array:
    """A value with kept dimensions, with or without them."""
    return value if keepdim else jnp.squeeze(value, axes)


def _with_tangents(
    value: Callable[[Array], Array],
    along: Callable[[Array, Array, Array], Array],
) -> Callable[[Array], Array]:
    """A reduction whose tangent is `along(x, value(x), tangent of x)`."""

    @jax.custom_jvp
    def reduced(x: Array) -> Array:
        return value(x)

    @reduced.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = reduced(x)
        return out, along(x, out, t).astype(out.dtype)

    return reduced


def with_slope(
    input: Array,
    axes: tuple[int, ...],
    value: Callable[[Array], Array],
    slope: Callable[[Array, Array], Array],
    still: Callable[[Array], Array] | None = None,
) -> Array:
    """A reduction and the derivative that PyTorch gives it.

    `value(x)` keeps dimensions; `slope(x, value)` is what an element's gradient is
    multiplied with. It is differentiable again. Where `still(value)` is true the
    gradient is 0, even of what has a gradient of NaN.
    """

    def along(x: Array, out: Array, t: Array) -> Array:
        by = slope(x, out)
        if is_complex(x) and not is_complex(out):
            each = by.real * t.real + by.imag * t.imag
        else:
            each = by * t
        if still is not None:
            each = jnp.where(still(out), 0, each)
        return jnp.sum(each, axis=axes, keepdims=True)

    return _with_tangents(value, along)(input)


def shared_out(
    input: Array, axes: tuple[int, ...], value: Callable[[Array], Array]
) -> Array:
    """A choice of an element, whose gradient all that equal it share, NaNs too.

    The other elements have none, not a product with 0: that has a sign, or is NaN.
    """

    def along(x: Array, out: Array, t: Array) -> Array:
        equal = (x == out) | (jnp.isnan(x) & jnp.isnan(out))
        total = jnp.sum(jnp.where(equal, t, 0), axis=axes, keepdims=True)
        number = jnp.sum(equal, axis=axes, keepdims=True, dtype=wide(t).dtype)
        return total / number

    return _with_tangents(value, along)(input)


def share(hit: Array, axes: tuple[int, ...], kind: Any) -> Array:
    """The part of a gradient that each hit gets; NaN for all if there is none."""
    number = jnp.sum(
        hit, axis=axes, keepdims=True, dtype=wide(jnp.zeros(1, kind)).dtype
    )
    # No quotient of `hit`: XLA makes a select of it, and 0 / 0 becomes 0.
    return jnp.where(hit, 1 / number, jnp.where(number == 0, jnp.nan, 0)).astype(kind)


@jax.custom_jvp
def sqrt(value: Array) -> Array:
    """The square root with PyTorch's derivative 0 at 0, as standard deviations have."""
    return jnp.sqrt(value)


@sqrt.defjvp
def _sqrt_derivative(primals: Any, tangents: Any) -> Any:
    root = sqrt(*primals)
    zero = root == 0
    slope = tangents[0] / (2 * jnp.where(zero, 1, root))
    return root, jnp.where(zero, 0, slope)


def check_asked(input: Any, asked: DType | None) -> None:
    """Raises where a gradient is wanted of a result whose dtype can have none.

    Warns where it has no imaginary parts.
    """
    if asked is None:
        return
    if (
        not (asked.is_floating_point or asked.is_complex)
        and input.requires_grad
        and record.local.rec.grad
    ):
        raise RuntimeError(f"Autograd not support dtype: {asked.scalar_name}")
    promotion.note_lost_part(input.dtype, asked)


def check_asked_along(input: Any, dim: Any, asked: DType | None) -> None:
    """As `check_asked`, for operators along a dimension."""
    check_asked(input, asked)


def ratio(a: float, b: float) -> float:
    """A quotient of numbers as floating point has it: no error at 0."""
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))
