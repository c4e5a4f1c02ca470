"""Views that repeat memory, skip through it or read it as something else."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.naming import tensor_type
from torchshim._core.op import Array, Shape, View, op
from torchshim._ops import view_geometry as geometry
from torchshim._ops._reducing import spread, wide
from torchshim._ops.view_geometry import (
    Geometry,
    Ints,
    diagonal_dims,
    diagonal_length,
    expanded_shape,
    windows,
)

# -- repeated memory ---------------------------------------------------------------


def _changed(new: Array, old: Array) -> Array:
    return (new != old) & ~((new != new) & (old != old))


def _write_places(base: Array, new: Array, index: np.ndarray) -> Array:
    """Puts elements into places of the last dimension, several maybe into one.

    Of those the last that differs from the base counts, as in `_write_expanded`: the
    others are what a write to another part of the view left.
    """
    if np.unique(index).size == index.size:
        places = base.at[..., index]
        return places.set(new, mode="promise_in_bounds", unique_indices=True)
    order = np.arange(index.size)
    ranks = jnp.where(_changed(new, base[..., index]), order + index.size, order)
    chosen = jnp.zeros(base.shape, ranks.dtype).at[..., index].max(ranks)
    picked = jnp.take_along_axis(new, chosen % index.size, axis=-1)
    written = np.isin(np.arange(base.shape[-1]), index)
    return jnp.where(written, picked, base)


def _write_expanded(base: Array, new: Array, *args: Any) -> Array:
    """The last copy that differs from the base: all copies are one memory."""
    lead = new.ndim - base.ndim
    repeated = tuple(
        d for d in range(new.ndim) if d < lead or base.shape[d - lead] != new.shape[d]
    )
    if not repeated or new.size == 0:
        return new.reshape(base.shape) if new.size else base
    kept = tuple(d for d in range(new.ndim) if d not in repeated)
    copies = new.transpose((*repeated, *kept)).reshape(
        -1, *(new.shape[d] for d in kept)
    )
    old = base.reshape(copies.shape[1:])
    changed = _changed(copies, old)
    order = jnp.arange(1, copies.shape[0] + 1).reshape((-1,) + (1,) * len(kept))
    last = jnp.argmax(jnp.where(changed, order, 0), axis=0)
    chosen = jnp.take_along_axis(copies, last[None], axis=0)[0]
    return chosen.reshape(base.shape)


def _check_expand(input: Any, size: Ints) -> None:
    expanded_shape(tuple(input.shape), size, tensor_type(input.dtype))


def _expanded(x: Array, size: Shape) -> Array:
    return spread(x, expanded_shape(x.shape, size))


_EXPAND = View(geometry.expanded, _write_expanded)


@op(
    view=_EXPAND,
    grad_fn="ExpandBackward0",
    saves=(),
    passes=("input",),
    namespaces=(),
    typecheck=_check_expand,
)
def expand(input: Array, size: Shape) -> Array:
    """Dimensions of size 1 repeated without copying."""
    return _expanded(input, size)


@op(
    view=_EXPAND,
    grad_fn="ExpandBackward0",
    saves=(),
    passes=("input",),
    typecheck=_check_expand,
)
def broadcast_to(input: Array, size: Shape) -> Array:
    """`expand` as a function."""
    return _expanded(input, size)


# -- pieces ------------------------------------------------------------------------


def _diagonal(
    shape: Ints,
    strides: Ints,
    at: int,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
) -> Geometry:
    return geometry.diagonal_geometry(shape, strides, at, offset, dim1, dim2)


def _write_diagonal(
    base: Array, new: Array, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Array:
    a, b = diagonal_dims(base.ndim, dim1, dim2)
    length = diagonal_length(base.shape[a], base.shape[b], offset)
    rows = np.arange(length) + max(-offset, 0)
    columns = np.arange(length) + max(offset, 0)
    moved_base = jnp.moveaxis(base, (a, b), (-2, -1))
    written = moved_base.at[..., rows, columns].set(
        new, unique_indices=True, mode="promise_in_bounds"
    )
    return jnp.moveaxis(written, (-2, -1), (a, b))


@op(
    view=View(_diagonal, _write_diagonal),
    grad_fn="DiagonalBackward0",
    saves=(),
)
def diagonal(input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """The diagonal of two dimensions, as the last dimension."""
    a, b = diagonal_dims(input.ndim, dim1, dim2)
    matrix = jnp.moveaxis(input, (a, b), (-2, -1))
    *lead, rows, columns = matrix.shape
    length = diagonal_length(rows, columns, offset)
    if not length:
        return matrix[..., 0, :0] if rows else jnp.zeros((*lead, 0), input.dtype)
    # Every (columns + 1)-th element: a slice, whose gradient is a padding.
    start = offset if offset >= 0 else -offset * columns
    flat = matrix.reshape(*lead, rows * columns)
    end = start + (length - 1) * (columns + 1) + 1
    return lax.slice_in_dim(flat, start, end, columns + 1, axis=flat.ndim - 1)


def window_index(count: int, size: int, step: int) -> np.ndarray:
    """Where the elements of windows are, a row each."""
    return np.arange(count)[:, None] * step + np.arange(size)


def _write_unfolded(
    base: Array, new: Array, dimension: int, size: int, step: int
) -> Array:
    if not base.ndim:
        return new.reshape(()) if size else base
    dim, count = windows(base.shape, dimension, size, step)
    index = window_index(count, size, step)
    front = jnp.moveaxis(base, dim, -1)
    pieces = jnp.moveaxis(new, dim, -2)
    flat = pieces.reshape(*front.shape[:-1], index.size)
    return jnp.moveaxis(_write_places(front, flat, index.reshape(-1)), -1, dim)


@op(
    view=View(geometry.unfolded, _write_unfolded),
    grad_fn="UnfoldBackward0",
    saves=(),
    namespaces=(),
)
def unfold(input: Array, dimension: int, size: int, step: int) -> Array:
    """Windows of a dimension; the elements of a window make a new last dimension."""
    dim, count = windows(input.shape, dimension, size, step)
    if not input.ndim:
        return jnp.broadcast_to(input, (size,))
    front = jnp.moveaxis(input, dim, -1)
    if size <= 16 and size:
        # A slice for each place in the window: no gather, no scatter in the gradient.
        last = (count - 1) * step + 1
        axis = front.ndim - 1
        places = [
            lax.slice_in_dim(front, i, i + last, step, axis=axis) for i in range(size)
        ]
        pieces = jnp.stack(places, axis=-1)
    else:
        index = window_index(count, size, step)
        pieces = front[..., index]
    return jnp.moveaxis(pieces, -2, dim)


# -- memory ------------------------------------------------------------------------


def _addresses(shape: Ints, strides: Ints, offset: int) -> np.ndarray:
    """The place in memory of every element."""
    places = np.full(shape, offset, np.int64)
    for d, step in enumerate(strides):
        along = np.arange(shape[d]) * step
        places += along.reshape((-1,) + (1,) * (len(shape) - d - 1))
    return places


def positions(
    source: tuple[Ints, Ints, int], target: tuple[Ints, Ints, int]
) -> np.ndarray | None:
    """For every element of `target`, which element of `source` lies there.

    None where the source does not reach all of the target's memory.
    """
    have, want = _addresses(*source), _addresses(*target)
    top = max(have.max(initial=-1), want.max(initial=-1)) + 1
    table = np.full(top, -1, np.int64)
    table[have.reshape(-1)] = np.arange(have.size)
    found = table[want]
    return None if (found < 0).any() else found


def _strided_geometry(
    shape: Ints,
    strides: Ints,
    offset: int,
    size: Ints,
    stride: Ints,
    storage_offset: int,
    source: Any,
) -> Geometry:
    return size, stride, storage_offset


def _write_strided(
    base: Array,
    new: Array,
    size: Ints,
    stride: Ints,
    storage_offset: int,
    source: Any,
) -> Array:
    index = positions((base.shape, *source), (size, stride, storage_offset))
    assert index is not None
    flat = _write_places(base.reshape(-1), new.reshape(-1), index.reshape(-1))
    return flat.reshape(base.shape)


@op(
    name="strided_view",
    view=View(_strided_geometry, _write_strided),
    grad_fn="AsStridedBackward0",
    saves=(),
    method=False,
    namespaces=(),
)
def strided_view(
    input: Array, size: Any, stride: Any, storage_offset: int, source: Any
) -> Array:
    """Any geometry on the input's memory; `source`: the input's strides and offset."""
    index = positions((input.shape, *source), (size, stride, storage_offset))
    assert index is not None
    return _gathered(input.reshape(-1), index)


def _gathered(flat: Array, index: np.ndarray) -> Array:
    # PyTorch spreads the gradient of memory that the input shows several times over
    # those elements; here the one that was read gets it: the same sum.
    if not flat.size:
        return jnp.zeros(index.shape, flat.dtype)
    return wide(flat)[index].astype(flat.dtype)


def _retyped_shape(shape: Ints, old: int, new: int) -> Ints:
    if old == new or not shape:
        return shape
    return (*shape[:-1], shape[-1] * old // new)


def _retyped(
    shape: Ints, strides: Ints, offset: int, dtype: Any, source: Any
) -> Geometry:
    old, new = source.itemsize, dtype.itemsize
    names = f"to view {source.scalar_name} as {dtype.scalar_name}"
    why = "(different element sizes)"
    if old == new:
        return shape, strides, offset
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {names} {why}")
    if old > new:
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 {names} {why}, but got {strides[-1]}"
            )
        ratio = old // new
        steps = (*(s * ratio for s in strides[:-1]), 1)
        return _retyped_shape(shape, old, new), steps, offset * ratio
    ratio = new // old
    if shape[-1] % ratio:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {ratio} {names} {why}, but got "
            f"{shape[-1]}"
        )
    if strides[-1] != 1:
        raise RuntimeError(
            f"self.stride(-1) must be 1 {names} {why}, but got {strides[-1]}"
        )
    for d, s in enumerate(strides[:-1]):
        if s % ratio:
            raise RuntimeError(
                f"self.stride({d}) must be divisible by {ratio} {names} {why}, but "
                f"got {s}"
            )
    steps = (*(s // ratio for s in strides[:-1]), 1)
    return _retyped_shape(shape, old, new), steps, offset // ratio


def bitcast(value: Array, dtype: Any) -> Array:
    """The same bytes as another dtype; other sizes change the last dimension."""
    old, new = np.dtype(value.dtype), np.dtype(dtype)
    if old == new:
        return value
    # XLA casts no complex and no bool: those go by way of their bytes.
    if old.kind == "c":
        value = jnp.stack([value.real, value.imag], axis=-1)
        value = value.reshape(*value.shape[:-2], -1)
    elif old.kind == "b":
        value = value.astype(np.uint8)
    target = np.dtype(np.uint8) if new.kind == "b" else new
    if new.kind == "c":
        target = np.dtype(np.float32 if new.itemsize == 8 else np.float64)
    value = _bitcast_last(value, target)
    if new.kind == "b":
        return value != 0
    if new.kind == "c":
        pairs = value.reshape(*value.shape[:-1], -1, 2)
        return lax.complex(pairs[..., 0], pairs[..., 1])
    return value


def _bitcast_last(value: Array, target: np.dtype[Any]) -> Array:
    have, want = np.dtype(value.dtype).itemsize, target.itemsize
    if have < want:
        value = value.reshape(*value.shape[:-1], -1, want // have)
    out = lax.bitcast_convert_type(value, target)
    if have > want:
        out = out.reshape(*out.shape[:-2], -1)
    return out


def _write_retyped(base: Array, new: Array, dtype: Any, source: Any) -> Array:
    return bitcast(new, base.dtype).reshape(base.shape) if base.size else base


@op(
    name="view_dtype",
    view=View(_retyped, _write_retyped, detached=True, retyped=True),
    differentiable=False,
    saves=(),
    method=False,
    namespaces=(),
)
def view_dtype(input: Array, dtype: Any, source: Any) -> Array:
    """The same memory read as another dtype; `source` is the dtype it has."""
    # Sizes that do not fit are refused by the geometry, which knows the strides.
    _retyped(tuple(input.shape), _dense(input.shape), 0, dtype, source)
    shape = _retyped_shape(tuple(input.shape), source.itemsize, dtype.itemsize)
    if not input.size:
        return jnp.zeros(shape, dtype.np)
    return bitcast(input, dtype.np).reshape(shape)


def _dense(shape: Ints) -> Ints:
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * max(n, 1))
    return tuple(reversed(steps))[: len(shape)]
