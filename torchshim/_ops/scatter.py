"""`gather` and the scatter family: one index for every element."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.op import Array, Scalar, op
from torchshim._ops._common import BOOL, COMPLEX, quotient, refuse, without_derivative
from torchshim._ops._reducing import wide
from torchshim._ops.index_dim import check_source, outside_self
from torchshim._ops.indexing import (
    IN_BOUNDS,
    added,
    is_integer,
    multiplied,
    outside,
    scalar_for,
    written,
)
from torchshim._ops.shape import contiguous_layout
from torchshim._ops.view_geometry import Ints, wrap_dim


def _places(index: Array, dim: int) -> tuple[Any, ...]:
    """Index arrays that address every element of `index` in the other tensor."""
    return tuple(
        index if d == dim else lax.broadcasted_iota(index.dtype, index.shape, d)
        for d in range(index.ndim)
    )


def _line(value: Array) -> Array:
    """0-dim tensors take part as vectors of one element."""
    return value.reshape(1) if not value.ndim else value


def _range_checks(input: Array, dim: int, index: Array, *rest: Any) -> list[Check]:
    dim = wrap_dim(dim, input.ndim)
    n = input.shape[dim] if input.ndim else 1
    text = f"index {{value}} is out of bounds for dimension {dim} with size {n}"
    return outside(index, 0, n, text, RuntimeError)


def _check_gather(input: Array, dim: int, index: Array) -> int:
    dim = wrap_dim(dim, input.ndim)
    if index.size == 0:
        return dim
    if not is_integer(index):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as input tensor"
        )
    for d in range(input.ndim):
        if d != dim and _line(index).shape[d] > input.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index "
                f"{list(index.shape)} to be no larger than self {list(input.shape)} "
                f"apart from dimension {dim}"
            )
    return dim


def _sparse_places(*args: Any) -> tuple[str, bool] | None:
    return ("gather_places", False) if args[-1] else None


@op(
    grad_fn="GatherBackward0",
    saves=("input", "index"),
    curved=False,
    differentiable=("input",),
    checks=_range_checks,
    sparse_grad=_sparse_places,
    out="exact",
    apart=("input",),
    whole=("index",),
)
def gather(input: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    """For every index the element there along a dimension."""
    dim = _check_gather(input, dim, index)
    if index.size == 0:
        return jnp.zeros(index.shape, input.dtype)
    # Gradients of half types are summed in float32.
    source, where = _line(wide(input)), _places(_line(index), dim)
    if not source.size:  # the check says so
        return jnp.zeros(index.shape, input.dtype)
    found = source.at[where].get(mode=IN_BOUNDS).reshape(index.shape)
    return found.astype(input.dtype)


def _check_dims(number: int, other: Array, what: str) -> None:
    if number != max(other.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {what} tensor"
        )


def _check_scatter(
    input: Array, dim: int, index: Array, src: Any, name: str = "scatter()"
) -> int:
    dim = wrap_dim(dim, input.ndim)
    if index.size and not is_integer(index):
        raise RuntimeError(f"{name}: Expected dtype int32/int64 for index")
    is_tensor = hasattr(src, "ndim")
    if is_tensor and src.dtype != input.dtype:
        raise RuntimeError(f"{name}: Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return dim
    rows = _line(index).shape
    _check_dims(len(rows), input, "self")
    small = all(d == dim or n <= _line(input).shape[d] for d, n in enumerate(rows))
    if is_tensor:
        given = _line(src).shape
        fits = small and all(n <= m for n, m in zip(rows, given, strict=False))
        if fits and 0 < src.ndim < len(rows):  # PyTorch asks for the next length
            wrap_dim(src.ndim, src.ndim)
        _check_dims(len(rows), src, "src")
        if not fits:
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self "
                f"{list(input.shape)} apart from dimension {dim} and to be no larger "
                f"size than src {list(src.shape)}"
            )
    elif not small:
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self "
            f"{list(input.shape)} apart from dimension {dim}"
        )
    return dim


def _taken(src: Any, index: Array, dtype: Any) -> Array:
    """The part of `src` that is scattered, in the index's shape."""
    shape = _line(index).shape
    if not getattr(src, "ndim", 0):
        return jnp.broadcast_to(scalar_for(src, dtype), shape)
    return lax.slice(src, (0,) * src.ndim, shape)


def scattered(input: Array, dim: int, index: Array, src: Any) -> Array:
    if index.size == 0:
        return input
    target, where = _line(input), _places(_line(index), dim)
    values = _taken(src, index, input.dtype)
    return written(target, values, where).reshape(input.shape)


@op(
    grad_fn="ScatterBackward0",
    saves=("index",),
    differentiable=("input", "src"),
    checks=_range_checks,
    layout=contiguous_layout,
    inplace=True,
    method=False,
    namespaces=(),
    out="exact",
    apart=("index", "src"),
    whole=("input",),
)
def scatter_set(input: Array, dim: int, index: Array, src: Array) -> Array:
    """The input with elements of `src` where the indices say along a dimension."""
    dim = _check_scatter(input, dim, index, src)
    return scattered(input, dim, index, src)


@op(
    grad_fn="ScatterBackward1",
    saves=("index",),
    differentiable=("input",),
    checks=_range_checks,
    layout=contiguous_layout,
    inplace=True,
    method=False,
    namespaces=(),
    out="exact",
    apart=("index",),
    whole=("input",),
    fits=("value",),
)
def scatter_value(input: Array, dim: int, index: Array, value: Scalar) -> Array:
    """The input with one number where the indices say along a dimension."""
    dim = _check_scatter(input, dim, index, None)
    return scattered(input, dim, index, value)


@without_derivative("aten::scatter")
def _plus(target: Array, values: Array, *where: Array) -> Array:
    return added(target, where, values)


@without_derivative("aten::scatter")
def _times(target: Array, values: Array, *where: Array) -> Array:
    return multiplied(target, where, values)


def _old_reduce(
    input: Array, dim: int, index: Array, src: Any, reduce: str, is_tensor: bool
) -> Array:
    dim = _check_scatter(input, dim, index, src if is_tensor else None)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if index.size == 0:
        return input
    target, where = _line(input), _places(_line(index), dim)
    values = _taken(src, index, input.dtype)
    combine = _plus if reduce == "add" else _times
    return combine(target, values, *where).reshape(input.shape)


@op(
    grad_fn="NotImplemented",
    saves=(),
    differentiable=("input", "src"),
    checks=_range_checks,
    layout=contiguous_layout,
    inplace=True,
    method=False,
    namespaces=(),
    out="exact",
)
def scatter_combine(
    input: Array, dim: int, index: Array, src: Array, reduce: str
) -> Array:
    """`scatter` with `reduce="add"` or `"multiply"`, which has no gradient."""
    return _old_reduce(input, dim, index, src, reduce, True)


@op(
    grad_fn="NotImplemented",
    saves=(),
    differentiable=("input",),
    checks=_range_checks,
    layout=contiguous_layout,
    inplace=True,
    method=False,
    namespaces=(),
    out="exact",
    fits=("value",),
)
def scatter_combine_value(
    input: Array, dim: int, index: Array, value: Scalar, reduce: str
) -> Array:
    """`scatter_combine` with one number."""
    return _old_reduce(input, dim, index, value, reduce, False)


@op(
    grad_fn="ScatterAddBackward0",
    saves={"input": (), "src": ("index",)},
    differentiable=("input", "src"),
    checks=_range_checks,
    layout=contiguous_layout,
    inplace=True,
    out="exact",
    apart=("index", "src"),
    whole=("input",),
)
def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """The input with elements of `src` added where the indices say."""
    dim = _check_scatter(input, dim, index, src)
    if index.size == 0:
        return input
    target, where = _line(input), _places(_line(index), dim)
    values = _taken(src, index, input.dtype)
    return added(target, where, values).reshape(input.shape)


# -- reductions --------------------------------------------------------------------

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _check_reduce(reduce: str) -> None:
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            "reduce argument must be either sum, prod, mean, amax or amin, got "
            f"{reduce}"
        )


def _extreme(dtype: Any, largest: bool) -> Any:
    if jnp.issubdtype(dtype, jnp.floating):
        return -jnp.inf if not largest else jnp.inf
    if dtype == np.bool_:
        return largest
    info = jnp.iinfo(dtype)
    return info.max if largest else info.min


def reduced(
    input: Array,
    values: Array,
    where: Any,
    reduce: str,
    include_self: bool,
    rounds: bool = False,
) -> Array:
    """`values` reduced into `input` at index arrays.

    Products of half types are rounded at the end, or after each factor if it `rounds`.
    """
    touched = jnp.zeros(input.shape, bool).at[where].set(True, mode="drop")
    if reduce in ("sum", "mean"):
        start = input
        if not include_self:
            start = jnp.where(touched, jnp.zeros((), input.dtype), input)
        total = added(start, where, values)
        if reduce == "sum":
            return total
        count = jnp.full(input.shape, int(include_self), np.int64)
        count = count.at[where].add(1, mode="drop")
        count = jnp.maximum(count, 1)
        if jnp.issubdtype(input.dtype, jnp.integer):
            return jnp.where(touched, total // count.astype(input.dtype), total)
        return quotient(total, count.astype(input.dtype))
    if reduce == "prod":
        start = input
        if not include_self:
            start = jnp.where(touched, jnp.ones((), input.dtype), input)
        if not rounds:
            start, values = wide(start), wide(values)
        return _product(start, values, *where).astype(input.dtype)
    largest = reduce == "amax"
    return _extremum(input, values, largest, include_self, *where)


@jax.custom_jvp
def _product(start: Array, values: Array, *where: Array) -> Array:
    return multiplied(start, where, values)


# The derivative by one factor is the product of the others, also where it is 0.
@_product.defjvp
def _product_jvp(primals: Any, tangents: Any) -> Any:
    start, values, *at = primals
    d_start, d_values, *_ = tangents
    at = tuple(at)
    result = _product(start, values, *at)
    no_start, no_value = start == 0, values == 0
    count = no_start.astype(np.int32)
    count = count.at[at].add(no_value.astype(np.int32), mode="drop")
    total = jnp.where(no_start, start, 0)
    total = total.at[at].add(jnp.where(no_value, values, 0), mode="drop")
    # What is not zero: a product whose derivatives are found the same way.
    rest = _product(jnp.where(no_start, 1, start), jnp.where(no_value, 1, values), *at)

    def others(x: Array, count: Array, total: Array, rest: Array, all: Array) -> Array:
        none = x == 0
        # One other zero: its value, 0, times the rest, so that it has a derivative.
        zero = rest * jnp.where(count == 1, 1, jnp.where(count == 2, total - x, 0))
        return jnp.where(none, zero, all / jnp.where(none, 1, x))

    by_start = others(start, count, total, rest, result)
    by_values = others(values, count[at], total[at], rest[at], result[at])
    return result, (d_start * by_start).at[at].add(d_values * by_values, mode="drop")


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _extremum(
    input: Array, values: Array, largest: bool, include_self: bool, *at: Array
) -> Array:
    start = input
    if not include_self:
        none = jnp.asarray(_extreme(input.dtype, not largest), input.dtype)
        touched = jnp.zeros(input.shape, bool).at[at].set(True, mode="drop")
        start = jnp.where(touched, none, input)
    place = start.at[at]
    if input.dtype == np.bool_:
        small = start.astype(np.int8).at[at]
        bits = values.astype(np.int8)
        return (small.max(bits) if largest else small.min(bits)).astype(bool)
    return place.max(values, mode="drop") if largest else place.min(values, mode="drop")


# Ties share the gradient evenly, as in PyTorch.
@_extremum.defjvp
def _extremum_jvp(
    largest: bool, include_self: bool, primals: Any, tangents: Any
) -> Any:
    input, values, *at = primals
    d_input, d_values, *_ = tangents
    at = tuple(at)
    out = _extremum(input, values, largest, include_self, *at)
    own = input == out
    given = values == out[at]
    dtype = out.dtype
    count = own.astype(dtype).at[at].add(given.astype(dtype), mode="drop")
    count = jnp.maximum(count, 1)
    if not include_self:
        # PyTorch counts the input among the ties all the same.
        own &= ~jnp.zeros(input.shape, bool).at[at].set(True, mode="drop")
    tangent = jnp.where(own, d_input, 0) / count
    return out, tangent.at[at].add(
        jnp.where(given, d_values, 0) / count[at], mode="drop"
    )


@op(
    grad_fn="ScatterReduceBackward0",
    saves=("input", "index", "src", "result"),
    differentiable=("input", "src"),
    checks=_range_checks,
    layout=contiguous_layout,
    inplace=True,
    out="exact",
    apart=("index", "src"),
    whole=("input",),
    real_gradients="scatter_reduce",
)
def scatter_reduce(
    input: Array,
    dim: int,
    index: Array,
    src: Array,
    reduce: str,
    *,
    include_self: bool = True,
) -> Array:
    """Elements of `src` reduced into the input where the indices say."""
    dim = _check_scatter(input, dim, index, src)
    _check_reduce(reduce)
    if reduce == "mean":
        refuse("scatter_gather_tensor_cpu_reduce_mean", input, BOOL)
    elif reduce in ("amax", "amin"):
        refuse(f"scatter_gather_tensor_cpu_reduce_{reduce}", input, COMPLEX)
    if index.size == 0:
        return input
    target, where = _line(input), _places(_line(index), dim)
    values = _taken(src, index, input.dtype)
    out = reduced(target, values, where, reduce, include_self)
    return out.astype(input.dtype).reshape(input.shape)


def _check_index_reduce(reduce: str) -> None:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but "
            f"got {reduce}."
        )


@op(
    name="index_reduce_values",
    grad_fn="IndexReduceBackward0",
    saves=("input", "index", "source", "result"),
    differentiable=("input", "source"),
    checks=outside_self,
    layout=contiguous_layout,
    inplace=True,
    method=False,
    namespaces=(),
    out="exact",
    apart=("index", "source"),
    whole=("input",),
)
def index_reduce_values(
    input: Array,
    dim: int,
    index: Array,
    source: Array,
    reduce: str,
    *,
    include_self: bool = True,
) -> Array:
    """Slices of `source` reduced into the input at the indices along a dimension."""
    _check_index_reduce(reduce)
    dim = wrap_dim(dim, input.ndim)
    check_source(input, dim, index, source, "index_reduce_()")
    kind = input.dtype
    if not include_self:
        refuse("index_reduce_func_exclude_input_init", input, BOOL + COMPLEX)
    if input.ndim < 2:
        refuse("index_func_", input, BOOL + COMPLEX)
    if reduce == "mean":
        refuse("div_floor_cpu", input, BOOL)
    elif reduce != "prod":
        refuse("maximum_cpu" if reduce == "amax" else "minimum_cpu", input, COMPLEX)
    if kind == np.bool_:
        input, source = input.astype(np.uint8), source.astype(np.uint8)
    target, values = _line(input), _line(source)
    along: Ints = tuple(-1 if d == dim else 1 for d in range(target.ndim))
    full = jnp.broadcast_to(index.reshape(along), values.shape)
    where = _places(full, dim)
    out = reduced(target, values, where, reduce, include_self, rounds=True)
    return out.astype(kind).reshape(input.shape)
