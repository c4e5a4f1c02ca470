"""Operators that pick or replace elements by integer tensors and masks.

An index out of range cannot be seen while recording; `checks=` reports it at the next
read, with PyTorch's text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes
from torchshim._core.checks import Check
from torchshim._core.meta import contiguous_strides, indexed_strides
from torchshim._core.op import Arranged, Array, Indices, Operand, OptArrays, op
from torchshim._core.promotion import cast, element, no_element
from torchshim._errors import triggered, warn_once
from torchshim._ops import _shapes
from torchshim._ops._common import broadcast_shapes
from torchshim._ops._products import expands
from torchshim._ops._reducing import spread
from torchshim._ops.shape import contiguous_layout
from torchshim._ops.view_geometry import Ints, index_node
from torchshim._ops.views import piece_shape, write_piece

IN_BOUNDS = "promise_in_bounds"


def outside(
    index: Any,
    low: int,
    high: int,
    text: str,
    error: type[Exception] = IndexError,
) -> list[Check]:
    """The check that an integer array lies in [low, high); `{value}` in the text."""
    if index is None or index.size == 0:
        return []
    flat = index.reshape(-1)
    bad = (flat < low) | (flat >= high)
    return [Check(bad.any(), error, text, flat[jnp.argmax(bad)])]


def bounds_text(dim: int, size: int) -> str:
    if not size:
        return "index is out of bounds for dimension with size 0"
    return f"index {{value}} is out of bounds for dimension {dim} with size {size}"


def from_end(index: Array, size: int) -> Array:
    """Negative indices made positive."""
    return jnp.where(index < 0, index + size, index)


def is_integer(index: Any) -> bool:
    """Whether the dtype is one that most operators index by."""
    return index.dtype in (np.int32, np.int64)


def scalar_name(value: Any) -> str:
    """A dtype in PyTorch's texts: Float, Long."""
    return dtypes.from_array_dtype(value.dtype).tensor_name[6:-6]


def dense_layout(shape: Ints, pairs: Any) -> Ints:
    """Strides of the first operand where it is dense, as `clone` keeps them."""
    size, strides = pairs[0]
    order = sorted(range(len(size)), key=lambda d: (-strides[d], d))
    dense = contiguous_strides([size[d] for d in order])
    if all(size[d] == 1 or strides[d] == s for d, s in zip(order, dense, strict=True)):
        return strides
    return contiguous_strides(shape)


# -- several index tensors ---------------------------------------------------------


def advanced_shape(shape: Ints, indices: Any) -> Ints:
    """The shape of `input[indices]`; errors as PyTorch's."""
    found = _shapes.taken(shape, [None if i is None else i.shape for i in indices])
    if found is not None:
        return found
    if len(indices) > len(shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(shape)} "
            f"(got {len(indices)})"
        )
    shapes = ", ".join(str(list(i.shape)) for i in indices if i is not None)
    raise IndexError(
        "shape mismatch: indexing tensors could not be broadcast together with "
        f"shapes {shapes}"
    )


def _index_tuple(input: Array, indices: OptArrays) -> tuple[Any, ...]:
    advanced_shape(input.shape, indices)
    return tuple(
        slice(None) if i is None else from_end(i, input.shape[d])
        for d, i in enumerate(indices)
    )


def _index_checks(input: Array, indices: OptArrays, *rest: Any) -> list[Check]:
    # The dimension that PyTorch's text names is the place among the index tensors.
    found: list[Check] = []
    place = 0
    if 0 in advanced_shape(input.shape, indices) and all(
        n for n, i in zip(input.shape, indices, strict=False) if i is not None
    ):
        return found  # it looks at no element
    for n, index in zip(input.shape, indices, strict=False):
        if index is not None:
            found += outside(index, -n, n, bounds_text(place, n))
            place += 1
    return found


@op(
    grad_fn="IndexBackward0",
    saves=("indices",),
    differentiable=("input",),
    checks=_index_checks,
    layout=Arranged(indexed_strides),
    shape=_shapes.taken,
    method=False,
    namespaces=(),
)
def index_tensors(input: Array, indices: OptArrays) -> Array:
    """`input[indices]` for integer tensors, None for a whole dimension."""
    where = _index_tuple(input, indices)
    shape = advanced_shape(input.shape, indices)
    if 0 in input.shape or 0 in shape:
        return jnp.zeros(shape, input.dtype) + 0 * input.sum().astype(input.dtype)
    return input.at[where].get(mode=IN_BOUNDS)


def written(input: Array, values: Array, where: tuple[Any, ...]) -> Array:
    """`input[where] = values` with PyTorch's gradient."""
    taken = tuple(not isinstance(w, slice) for w in where)
    return _put(input, values, taken, *(w for w in where if not isinstance(w, slice)))


def added(input: Array, where: Any, values: Array, mode: str = "drop") -> Array:
    """`values` added at index arrays: for truth values that is "or"."""
    place = input.at[where]
    if input.dtype == np.bool_:
        return place.max(values, mode=mode)
    return place.add(values, mode=mode)


def multiplied(input: Array, where: Any, values: Array) -> Array:
    """`values` multiplied into index arrays: for truth values that is "and"."""
    place = input.at[where]
    if input.dtype == np.bool_:
        return place.min(values, mode="drop")
    return place.multiply(values, mode="drop")


def _spots(taken: tuple[bool, ...], arrays: Any) -> tuple[Any, ...]:
    given = iter(arrays)
    return tuple(next(given) if t else slice(None) for t in taken)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _put(input: Array, values: Array, taken: tuple[bool, ...], *arrays: Array) -> Array:
    return input.at[_spots(taken, arrays)].set(values, mode=IN_BOUNDS)


# Where an index occurs twice PyTorch gives the gradient to every value written there,
# JAX to the last one alone.
@_put.defjvp
def _put_jvp(taken: tuple[bool, ...], primals: Any, tangents: Any) -> Any:
    input, values, *arrays = primals
    d_input, d_values, *_ = tangents
    at = _spots(taken, arrays)
    hit = jnp.zeros(input.shape, bool).at[at].set(True, mode=IN_BOUNDS)
    kept = jnp.where(hit, 0, d_input)
    return _put(input, values, taken, *arrays), kept.at[at].add(
        d_values, mode=IN_BOUNDS
    )


@op(
    grad_fn="IndexPutBackward0",
    saves=("indices",),
    differentiable=("input", "values"),
    checks=_index_checks,
    layout=dense_layout,
    inplace=True,
    overlaps=("index_put_", "tensor[indices] = tensor", 976),
    apart=("indices", "values"),
    method=False,
    namespaces=(),
)
def put_tensors(
    input: Array, indices: OptArrays, values: Array, accumulate: bool = False
) -> Array:
    """The input with `input[indices]` replaced by (or added to) `values`."""
    where = _index_tuple(input, indices)
    shape = advanced_shape(input.shape, indices)
    _check_values(values.shape, shape)
    if input.dtype != values.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_name(input)} for the destination and {scalar_name(values)} for "
            "the source."
        )
    if 0 in shape or 0 in input.shape:
        return input
    values = spread(values, shape)
    if accumulate:
        return added(input, where, values, IN_BOUNDS)
    return written(input, values, where)


def _check_values(have: Ints, want: Ints) -> None:
    try:
        fits = np.broadcast_shapes(tuple(have), tuple(want)) == tuple(want)
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(have)} cannot be broadcast "
            f"to indexing result of shape {list(want)}"
        )


# -- masks -------------------------------------------------------------------------


def _mask_shapes(input: Any, mask: Any, values: Any, at: int) -> tuple[Ints, Ints, int]:
    """(sizes before, sizes after the mask's dimensions, values along the mask)."""
    end = at + len(mask.shape)
    before, after = tuple(input.shape[:at]), tuple(input.shape[end:])
    place = len(values.shape) - len(after) - 1
    count = values.shape[place] if place >= 0 else 1
    return before, after, count


def _mask_checks(
    input: Array, mask: Array, values: Array, at: int, accumulate: bool = False
) -> list[Check]:
    before, after, count = _mask_shapes(input, mask, values, at)
    if count == 1:
        other = values.size == 1 and values.dtype != input.dtype
        return _masked_fill_checks(input, mask, values) if other else []
    found = mask.sum()
    shape = [*map(str, before), "{value}", *map(str, after)]
    return [
        Check(
            found != count,
            RuntimeError,
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be "
            f"broadcast to indexing result of shape [{', '.join(shape)}]",
            found,
        )
    ]


@op(
    grad_fn="IndexPutBackward0",
    saves=("mask",),
    differentiable=("input", "values"),
    checks=_mask_checks,
    layout=dense_layout,
    inplace=True,
    overlaps=("index_put_", "tensor[indices] = tensor", 976),
    apart=("values",),
    method=False,
    namespaces=(),
)
def put_mask(
    input: Array, mask: Array, values: Array, at: int, accumulate: bool = False
) -> Array:
    """`input[..., mask, ...] = values` without reading the mask.

    `at`: the dimension of the input where the mask's dimensions begin. `values`
    broadcasts to the sizes before, one value for each True, the sizes after.
    """
    before, after, count = _mask_shapes(input, mask, values, at)
    if input.dtype != values.dtype:
        if values.size != 1:
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{scalar_name(input)} for the destination and {scalar_name(values)} "
                "for the source."
            )
        values = cast(values, input.dtype)
    _check_values(values.shape, (*before, count, *after))
    values = jnp.broadcast_to(values, (*before, count, *after))
    n = mask.size
    if count == 1:
        spread = jnp.broadcast_to(values, (*before, n, *after))
    elif count:
        order = jnp.clip(jnp.cumsum(mask.reshape(-1)) - 1, 0, count - 1)
        spread = jnp.take(values, order, axis=len(before), mode="clip")
    else:
        return input
    spread = spread.reshape(input.shape)
    chosen = mask.reshape(mask.shape + (1,) * len(after))
    return jnp.where(chosen, input + spread if accumulate else spread, input)


def scalar_for(value: Any, dtype: Any, complex_text: str | None = None) -> Array:
    """A number as a 0-dim array of a tensor's dtype; refuses complex to real."""
    real = not jnp.issubdtype(dtype, jnp.complexfloating)
    if isinstance(value, complex) and real and (not value.imag or dtype == np.bool_):
        value = bool(value) if dtype == np.bool_ else value.real
    if real and (isinstance(value, complex) or jnp.iscomplexobj(value)):
        found = dtypes.from_array_dtype(dtype)
        name = "int64_t" if found is dtypes.int64 else found.cpp_name
        raise RuntimeError(
            complex_text or f"value cannot be converted to type {name} without overflow"
        )
    if isinstance(value, jax.Array):
        return cast(value, dtype)
    value = element(value, dtype)
    if isinstance(value, int) and value >= 2**63:
        value = np.uint64(value)
    with np.errstate(over="ignore"):  # what is too large for half types is infinite
        return jnp.asarray(value).astype(dtype)


def _may_overflow(metas: Sequence[Any]) -> bool:
    """Whether a number may be too large for the first tensor's elements."""
    kind = metas[0].dtype
    if kind.category == dtypes.INTEGER or kind is dtypes.float16:
        return True
    return any(
        (m.dtype.is_complex and not kind.is_complex)
        or (m.dtype in _WIDE and kind not in _WIDE)
        for m in metas[2:]
    )


_WIDE = (dtypes.float64, dtypes.complex128)


def _masked_fill_checks(input: Array, mask: Array, value: Any) -> list[Check]:
    return filler_checks(input, value)


def filler_checks(input: Array, value: Any) -> list[Check]:
    """That the elements can hold the value, which is a number or has one element."""
    kind = dtypes.from_array_dtype(input.dtype)
    plain = not isinstance(value, jax.Array)
    number = jnp.asarray(np.asarray(value)) if plain else value
    if number.dtype == np.bool_ or kind is dtypes.bool_:
        return []
    bad: Any = np.False_
    if jnp.iscomplexobj(number):
        if kind.category == dtypes.COMPLEX:
            return []
        bad = number.imag != 0
        number = number.real
    bad = bad | _too_large(number, input.dtype, kind)
    return [Check(bad.reshape(()), RuntimeError, no_element(input.dtype))]


def _too_large(number: Array, np_dtype: Any, kind: dtypes.dtype) -> Array:
    if kind.category == dtypes.INTEGER:
        limits = np.iinfo(np_dtype)
        high = limits.max
        if jnp.issubdtype(number.dtype, jnp.floating):
            # In floats the limits are those of the next numbers that do not fit.
            number = number.astype(np.float64)
            return ~((number >= float(limits.min)) & (number < float(high) + 1.0))
        # Negative integers of the same width wrap around.
        low = limits.min if limits.min else -high
        info = np.iinfo(number.dtype)
        return (number < max(low, info.min)) | (number > min(high, info.max))
    number = number.astype(np.float64)
    most = float(dtypes.finfo(kind).max)
    return jnp.isfinite(number) & (jnp.abs(number) > most)


def _check_filled(mask: dtypes.dtype) -> None:
    if mask is not dtypes.bool_:
        name = "unsigned char" if mask is dtypes.uint8 else mask.cpp_name
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {name}"
        )


def _check_filling(input: Any, mask: Any, value: Any) -> None:
    if getattr(value, "shape", ()):
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {len(value.shape)} dimension(s)."
        )


def _masked_fill_in_place(input: Any, mask: Any, value: Any) -> None:
    _check_filling(input, mask, value)
    _check_filled(mask.dtype)
    broadcast_shapes(input.shape, mask.shape)


def _fill_node(input: Any, mask: Any, value: Any) -> str:
    return f"MaskedFillBackward{int(hasattr(value, 'requires_grad'))}"


@op(
    grad_fn=_fill_node,
    saves=("mask",),
    differentiable=("input", "value"),
    layout=contiguous_layout,
    checks=_masked_fill_checks,
    checks_for=_may_overflow,
    inplace=True,
    inplace_check=_masked_fill_in_place,
    out=False,
    overlaps=("masked_fill_", "tensor[mask] = scalar", 2450),
    whole=("mask",),
    fits=("value",),
    shape=_shapes.masked,
)
def masked_fill(input: Array, mask: Array, value: Operand) -> Array:
    """The input with `value` wherever the mask is True."""
    shape = broadcast_shapes(mask.shape, input.shape)
    _check_filling(input, mask, value)
    _check_filled(dtypes.from_array_dtype(mask.dtype))
    if isinstance(value, jax.Array):
        number = cast(value, input.dtype)
    else:
        number = scalar_for(value, input.dtype, no_element(input.dtype))
    return jnp.where(mask, jnp.broadcast_to(number, shape), input)


def _masked_scatter_checks(input: Array, mask: Array, source: Array) -> list[Check]:
    shape = broadcast_shapes(mask.shape, input.shape)
    wanted = mask.sum() * (math.prod(shape) // max(mask.size, 1))
    text = "Number of elements of source < number of ones in mask"
    return [Check(wanted > source.size, RuntimeError, text)]


def _check_scattered(input: Any, mask: Any, source: Any) -> None:
    if mask.dtype is dtypes.uint8:
        text = (
            "masked_scatter_ received a mask with dtype torch.uint8, this behavior is "
            "now deprecated,please use a mask with dtype torch.bool instead."
        )
        where = "aten/src/ATen/native/TensorAdvancedIndexing.cpp:3130"
        warn_once(triggered(text, where))


@op(
    grad_fn="MaskedScatterBackward0",
    saves=("mask",),
    typecheck=_check_scattered,
    differentiable=("input", "source"),
    checks=_masked_scatter_checks,
    layout=contiguous_layout,
    inplace=True,
    inplace_check=lambda input, mask, source: expands(mask, input.shape),
    out=False,
)
def masked_scatter(input: Array, mask: Array, source: Array) -> Array:
    """The input with elements of `source`, in order, wherever the mask is True."""
    shape = broadcast_shapes(mask.shape, input.shape)
    if mask.dtype != np.bool_:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{scalar_name(mask)}"
        )
    if input.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{scalar_name(input)} and {scalar_name(source)}"
        )
    whole = jnp.broadcast_to(mask, shape)
    target = jnp.broadcast_to(input, shape)
    if not source.size:
        return target
    order = jnp.cumsum(whole.reshape(-1)) - 1
    taken = (
        source.reshape(-1).at[jnp.clip(order, 0, source.size - 1)].get(mode=IN_BOUNDS)
    )
    return jnp.where(whole, taken.reshape(shape), target)


# -- basic indexing, written to ----------------------------------------------------


def _is_whole(plan: Any) -> bool:
    return index_node(plan) == "AliasBackward0"


def _piece_node(input: Any, value: Any, starts: Any, plan: Any) -> str:
    if not _is_whole(plan):
        return "CopySlices"
    # A single value for the whole is `fill_` in PyTorch.
    filled = input.shape and not getattr(value, "shape", ())
    return "FillBackward3" if filled else "CopyBackwards"


@op(
    grad_fn=_piece_node,
    saves=(),
    differentiable=("input", "value"),
    part=lambda input, value, starts, plan: not _is_whole(plan),
    layout=dense_layout,
    inplace=True,
    method=False,
    namespaces=(),
)
def put_piece(input: Array, value: Operand, starts: Indices, plan: Any) -> Array:
    """The input with a piece (see `basic_index`) replaced by a value, broadcast."""
    shape = piece_shape(input.shape, plan)
    new = scalar_for(value, input.dtype)
    while new.ndim and new.shape[0] == 1 and new.ndim > len(shape):
        new = new[0]
    return write_piece(input, spread(new, shape), starts, plan)


@op(
    differentiable=False,
    saves=(),
    out="nonzero_static: Expected out tensor to have scalar type {want.scalar_name} "
    "but got scalar type{have.scalar_name}",
)
def nonzero_static(input: Array, *, size: int, fill_value: int = -1) -> Array:
    """`nonzero` with a fixed number of rows: cut off, or filled with a value."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if not input.ndim:
        return jnp.zeros((size, 0), jnp.int64)
    if not input.size:
        return jnp.full((size, input.ndim), fill_value, jnp.int64)
    found = jnp.nonzero(input, size=size, fill_value=fill_value)
    return jnp.stack(found, axis=-1).astype(jnp.int64)
