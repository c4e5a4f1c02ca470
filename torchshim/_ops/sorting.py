"""Sorting, the largest elements, and searching in sorted values."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core import dtypes, promotion
from torchshim._core.checks import Check
from torchshim._core.meta import Meta, contiguous_strides
from torchshim._core.op import Arranged, Array, Operand, op
from torchshim._core.placement import platform
from torchshim._core.promotion import number
from torchshim._errors import triggered, warn_once
from torchshim._ops._reducing import (
    is_complex,
    not_implemented,
    one_axis,
    positions,
    scalar_name,
    take,
)


def order(x: Array, axis: int, descending: bool = False) -> Array:
    """Positions that sort stably along an axis; NaN is the largest. int64."""
    key = jax.lax.stop_gradient(x)
    if key.dtype == jnp.bool_:
        key = key.astype(jnp.uint8)
    length = x.shape[axis]  # may be a symbol: see `_core/polymorphic.py`
    if platform() == "cpu" and not (isinstance(length, int) and length >= 1 << 31):
        key = jnp.moveaxis(ordered_bits(key), axis, -1)
        return jnp.moveaxis(_order_of_bits(~key if descending else key), -1, axis)
    if descending:
        # Reversed twice, so that equal elements stay in order.
        key = jnp.flip(key, axis)
    index = jax.lax.sort(
        (key, positions(x, axis)), dimension=axis, is_stable=True, num_keys=1
    )[1]
    if descending:
        index = x.shape[axis] - 1 - jnp.flip(index, axis)
    return index.astype(jnp.int64)


def ordered_bits(key: Array) -> Array:
    """Signed integers, of 32 or 64 bits, in the order of these real numbers."""
    wide = key.dtype.itemsize > 4
    kind = jnp.int64 if wide else jnp.int32
    least, most = jnp.iinfo(kind).min, jnp.iinfo(kind).max
    if jnp.issubdtype(key.dtype, jnp.unsignedinteger):
        unsigned = key.astype(jnp.uint64 if wide else jnp.uint32)
        return jax.lax.bitcast_convert_type(unsigned, kind) ^ least
    if jnp.issubdtype(key.dtype, jnp.integer):
        return key.astype(kind)
    number = key if wide else key.astype(jnp.float32)
    bits = jax.lax.bitcast_convert_type(number, kind)
    bits = jnp.where(bits < 0, bits ^ most, bits)
    bits = jnp.where(bits == -1, 0, bits)  # zeros are equal
    return jnp.where(jnp.isnan(number), most, bits)


def _order_of_bits(key: Array) -> Array:
    """As `order`, of such integers along the last axis.

    Each of 32 bits stands before its position in one integer: XLA for the CPU sorts
    single integers five times as fast as pairs, and the last axis up to three times as
    fast as others. Of 64 bits the low ones are sorted first, as the digits of a radix
    sort are.
    """
    at = positions(key, key.ndim - 1).astype(jnp.int64)

    def sorted_by(high: Array) -> Array:
        # Signed ones, as the shift leaves their order alone.
        packed = (high.astype(jnp.int64) << 32) | at
        packed = jax.lax.sort(packed, dimension=key.ndim - 1, is_stable=False)
        return packed & 0xFFFFFFFF

    if key.dtype.itemsize == 4:
        return sorted_by(key)
    low = sorted_by(key ^ (1 << 31))
    return take(low, sorted_by(take(key, low, key.ndim - 1) >> 32), key.ndim - 1)


def _sorted(input: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    x, axis = one_axis(input, dim)
    if is_complex(x):
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    index = order(x, axis, descending)
    return take(x, index, axis).reshape(input.shape), index.reshape(input.shape)


def _sort_node(input: object, dim: object, descending: object, stable: object) -> str:
    return "SortBackward0" if stable is None else "SortBackward1"


@op(
    grad_fn=_sort_node,
    saves=("result1",),
    named_result=("values", "indices"),
    curved=False,
    layout="preserve",
    whole=("input",),
    out="exact",
)
def sort(
    input: Array,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
) -> tuple[Array, Array]:
    """The elements in order along a dimension, and where they came from."""
    return _sorted(input, dim, descending)


@op(differentiable=False, saves=(), layout="preserve")
def argsort(
    input: Array,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
) -> Array:
    """The positions that put the elements in order along a dimension."""
    return _sorted(input, dim, descending)[1]


@op(
    grad_fn="SortBackward0",
    saves=("intermediate",),
    curved=False,
    layout="preserve",
    out="exact",
)
def msort(input: Array) -> Array:
    """The elements in order along the first dimension."""
    return _sorted(input, 0, False)[0]


@op(
    grad_fn="TopkBackward0",
    saves=("result1",),
    named_result=("values", "indices"),
    curved=False,
    whole=("input",),
    out="exact",
)
def topk(
    input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Array, Array]:
    """The `k` largest (or smallest) elements along a dimension, and their positions."""
    # Sorted results are among those that `sorted=False` allows.
    x, axis = one_axis(input, dim)
    if not 0 <= k <= x.shape[axis]:
        raise RuntimeError("selected index k out of range")
    k = k if input.ndim else 1  # PyTorch gives the element of a 0-dim tensor for 0, too
    if x.dtype == jnp.bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if is_complex(x):
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if x.size and largest and x.dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
        index = _top(x, k, axis)
    else:
        index = jax.lax.slice_in_dim(order(x, axis, largest), 0, k, axis=axis)
    values = take(x, index, axis)
    return (values, index) if input.ndim else (values.reshape(()), index.reshape(()))


def _top(x: Array, k: int, axis: int) -> Array:
    key = jax.lax.stop_gradient(jnp.moveaxis(x, axis, -1)).astype(jnp.float32)
    # XLA orders bits: one zero and one NaN, so that equal elements stay in order.
    key = jnp.where(jnp.isnan(key), jnp.nan, jnp.where(key == 0, 0.0, key))
    index = jax.lax.top_k(key, k)[1]
    return jnp.moveaxis(index, -1, axis).astype(jnp.int64)


# -- searching -------------------------------------------------------------------------


def _search(edges: Array, values: Array, right: bool) -> Array:
    """How many edges lie before each value, by bisection; edges along the last axis."""
    size = edges.shape[-1]
    flat = edges.reshape(-1)
    rows = jnp.zeros((), jnp.int64)
    if edges.ndim > 1:
        starts = jnp.arange(math.prod(edges.shape[:-1]), dtype=jnp.int64) * size
        rows = starts.reshape((*edges.shape[:-1], 1))
    low = jnp.zeros(values.shape, jnp.int64)
    high = jnp.full(values.shape, size, jnp.int64)

    def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = low + ((high - low) >> 1)
        at = jnp.minimum(rows + middle, flat.shape[0] - 1)
        edge = flat.at[at].get(mode="promise_in_bounds")
        # Negated, so that NaN counts as the largest value.
        before = ~(edge > values) if right else ~(edge >= values)
        open_ = low < high
        return (
            jnp.where(open_ & before, middle + 1, low),
            jnp.where(open_ & ~before, middle, high),
        )

    if not size or not values.size:
        return low
    return jax.lax.fori_loop(0, size.bit_length(), halve, (low, high))[0]


def _common(a: Any, b: Any) -> tuple[Array, Array]:
    """Two operands in the dtype they are compared in."""
    kind = promotion.result_dtype([_weight(a), _weight(b)]).np
    if kind == jnp.bool_:
        kind = jnp.uint8
    return number(a, kind), number(b, kind)


def _weight(x: Any) -> tuple[dtypes.dtype, int]:
    if not hasattr(x, "dtype"):
        return promotion.scalar_dtype(x), promotion.SCALAR
    # A 0-dim array may be a number that is only known at run time; weighs the same.
    kind = promotion.DIMENSIONED if x.ndim else promotion.ZERO_DIM
    return dtypes.from_array_dtype(x.dtype), kind


def _check_search(
    edges: Array, values: Any, side: str | None, right: bool, sorter: Array | None
) -> None:
    name = "torch.searchsorted()"
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"{name}: side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            f"{name}: side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    if sorter is not None:
        if sorter.shape != edges.shape:
            raise RuntimeError(
                f"{name}: boundary and sorter must have the same size, but got "
                f"boundary tensor {list(edges.shape)}and got sorter tensor "
                f"{list(sorter.shape)}"
            )
        if sorter.dtype != jnp.int64:
            raise RuntimeError(
                f"{name}: sorter must be a tensor of long dtype but got dtype "
                f"{scalar_name(sorter)}"
            )
    if not edges.ndim and getattr(values, "shape", ()):
        raise RuntimeError(
            f"{name}: boundaries tensor should have positive dimension, but got 0 "
            "dimension"
        )
    shape = getattr(values, "shape", ())
    if not shape and edges.ndim != 1:
        raise RuntimeError(
            f"{name}: input value can be a scalar only when boundaries tensor "
            f"dimension is 1, but we got boundaries tensor dim({edges.ndim}) and input "
            "value's dim(0) numel(1)"
        )
    if edges.ndim != 1 and edges.shape[:-1] != shape[:-1]:
        raise RuntimeError(
            f"{name}: boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but "
            f"we got boundaries tensor {list(edges.shape)} and input value tensor "
            f"{list(shape)}"
        )


def _sorter_in_range(
    edges: Array,
    values: Any,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: Array | None,
) -> list[Check]:
    if sorter is None or not sorter.size:
        return []
    bad = (sorter < 0) | (sorter >= edges.shape[-1])
    return [
        Check(
            bad.any(), RuntimeError, "torch.searchsorted(): sorter index out of range"
        )
    ]


def _searched(edges: Array, values: Any, right: bool, out_int32: bool) -> Array:
    if edges.dtype == jnp.bool_:
        raise not_implemented("searchsorted_out_cpu", edges)
    edges, values = _common(edges, values)
    if is_complex(edges):
        raise not_implemented("searchsorted_out_cpu", edges)
    found = _search(edges, values.reshape(values.shape or (1,)), right)
    found = found.reshape(values.shape)
    return found.astype(jnp.int32) if out_int32 else found


_OUT_OF_SEARCH = (
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) "
    "or Long(int64) depending on whether out_int32 flag is True, but we got output "
    "tensor's dtype {have.scalar_name} and out_int32 flag is {out_int32}"
)


def _warn_of_copies(values: Any, edges: Any, sorter: Any = None) -> None:
    """Tells of what PyTorch copies before it searches; here nothing is copied."""
    given = ("input value", values, 32), ("boundary", edges, 38), ("sorter", sorter, 44)
    for name, meta, line in given:
        if isinstance(meta, Meta) and not meta.contiguous:
            text = (
                f"torch.searchsorted(): {name} tensor is non-contiguous, this will "
                "lower the performance due to extra data copy when converting "
                f"non-contiguous tensor to contiguous, please use contiguous {name} "
                "tensor if possible. This message will only appear once per program."
            )
            where = f"aten/src/ATen/native/BucketizationUtils.h:{line}"
            warn_once(triggered(text, where))


@op(
    differentiable=False,
    saves=(),
    method=False,
    typecheck=lambda edges, values, *rest: _warn_of_copies(values, edges, rest[-1]),
    checks=_sorter_in_range,
    out=_OUT_OF_SEARCH,
)
def searchsorted(
    sorted_sequence: Array,
    input: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """Where values would be inserted to keep a sequence sorted."""
    _check_search(sorted_sequence, input, side, right, sorter)
    edges = sorted_sequence
    if sorter is not None:
        edges = take(edges, jnp.clip(sorter, 0, edges.shape[-1] - 1), edges.ndim - 1)
    return _searched(edges, input, right or side == "right", out_int32)


@op(
    differentiable=False,
    saves=(),
    method=False,
    typecheck=lambda values, edges, *_: _warn_of_copies(values, edges),
    out=_OUT_OF_SEARCH,
)
def bucketize(
    input: Operand, boundaries: Array, *, out_int32: bool = False, right: bool = False
) -> Array:
    """The number of the bucket that each value falls into."""
    if boundaries.ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})"
        )
    return _searched(boundaries, input, right, out_int32)


@op(differentiable=False, saves=(), method=False, out="exact")
def isin(
    elements: Operand,
    test_elements: Operand,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Array:
    """Whether each element is among the test elements."""
    # `assume_unique` is a promise that allows another algorithm, and asks for none.
    for each in (elements, test_elements):
        if hasattr(each, "dtype") and (each.dtype == jnp.bool_ or is_complex(each)):
            raise RuntimeError(
                f"Unsupported input type encountered for isin(): {scalar_name(each)}"
            )
        if isinstance(each, complex):
            raise RuntimeError(
                "Unsupported input type encountered for isin(): ComplexDouble"
            )
    x, tests = _common(elements, test_elements)
    tests = tests.reshape(-1)
    if tests.size <= 64:
        found = (x[..., None] == tests).any(-1)
    else:
        ordered = jnp.sort(tests)
        at = _search(ordered, x.reshape(x.shape or (1,)), False).reshape(x.shape)
        at = jnp.minimum(at, tests.size - 1)
        found = ordered.at[at].get(mode="promise_in_bounds") == x
    return ~found if invert else found


# -- what `_functions/data_dependent.py` takes -----------------------------------------


@op(
    method=False,
    namespaces=(),
    grad_fn="MaskedSelectBackward0",
    saves=("index",),
    differentiable=("input",),
)
def masked_take(input: Array, index: Array, shape: tuple[int, ...]) -> Array:
    """Elements of the input, broadcast to a shape, at flat positions."""
    flat = jnp.broadcast_to(input, shape).reshape(-1)
    return flat.at[index].get(mode="promise_in_bounds")


def _slices_first(
    shape: tuple[int, ...], input: Any, index: Any, dim: int | None, name: str
) -> Any:
    """Strides of slices that lie one after the other."""
    if dim is None:
        return None
    rest = contiguous_strides((shape[dim], *shape[:dim], *shape[dim + 1 :]))
    return *rest[1 : dim + 1], rest[0], *rest[dim + 1 :]


@op(
    method=False,
    namespaces=(),
    grad_fn=lambda input, index, dim, name: f"{name}Backward0",
    saves=(),
    layout=Arranged(_slices_first),
)
def unique_take(input: Array, index: Array, dim: int | None, name: str) -> Array:
    """Unique elements (or slices) of the input; without a derivative, as PyTorch's."""
    x, axis = (input.reshape(-1), 0) if dim is None else (input, dim)
    derivative = {
        "Unique": "_unique",
        "Unique2": "_unique2",
        "UniqueDim": "unique_dim",
        "UniqueConsecutive": "unique_consecutive",
    }[name]

    @jax.custom_jvp
    def taken(x: Array) -> Array:
        return jnp.take(x, index, axis=axis, mode="clip")

    @taken.defjvp
    def refused(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(
            f"the derivative for '{derivative}' is not implemented."
        )

    return taken(x)
