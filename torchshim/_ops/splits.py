"""Operators that give several views of one tensor."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.op import Array, View, op
from torchshim._ops.view_geometry import KEEP, PICK, Geometry, Ints, wrap_dim


def _pieces(
    shape: Ints, strides: Ints, offset: int, sizes: Ints, dim: int
) -> list[Geometry]:
    dim = wrap_dim(dim, len(shape))
    found: list[Geometry] = []
    for n in sizes:
        size = (*shape[:dim], n, *shape[dim + 1 :])
        found.append((size, strides, offset))
        offset += n * strides[dim]
    return found


def _write_piece(base: Array, new: Array, sizes: Ints, dim: int, part: int) -> Array:
    dim = wrap_dim(dim, base.ndim)
    start = sum(sizes[:part])
    return lax.dynamic_update_slice_in_dim(base, new, start, dim)


def _split(input: Array, sizes: Ints, dim: int) -> tuple[Array, ...]:
    dim = wrap_dim(dim, input.ndim)
    found, start = [], 0
    for n in sizes:
        found.append(lax.slice_in_dim(input, start, start + n, axis=dim))
        start += n
    return tuple(found)


def even_sizes(n: int, size: int) -> Ints:
    """The sizes of the pieces of `split(size)`: the last may be smaller."""
    if size == 0:
        return (0,)
    pieces = max(-(-n // size), 1)
    return (size,) * (pieces - 1) + (n - size * (pieces - 1),)


def _piece_alone(sizes: Ints, dim: int, part: int) -> tuple[str, tuple[Any, ...]]:
    plan = (KEEP,) * dim + ((sizes[part], 1),)
    return "basic_index", ((sum(sizes[:part]),), plan)


_SPLIT = View(_pieces, _write_piece, alone=_piece_alone)


def _stack_of_pieces(input: Array, sizes: Any, dim: int) -> Array:
    axis = wrap_dim(dim, input.ndim)
    shape = input.shape
    rows = input.reshape(*shape[:axis], len(sizes), sizes[0], *shape[axis + 1 :])
    return jnp.moveaxis(rows, axis, 0)


@op(
    name="split_pieces",
    view=_SPLIT,
    grad_fn="SplitBackward0",
    saves=(),
    method=False,
    namespaces=(),
    on_stack=_stack_of_pieces,
)
def split_pieces(input: Array, sizes: Any, dim: int) -> tuple[Array, ...]:
    """Pieces of one size along a dimension."""
    return _split(input, sizes, dim)


@op(
    name="split_sizes",
    view=_SPLIT,
    grad_fn="SplitWithSizesBackward0",
    saves=(),
    method=False,
    namespaces=(),
    on_stack=_stack_of_pieces,
)
def split_sizes(input: Array, sizes: Any, dim: int) -> tuple[Array, ...]:
    """Pieces of given sizes along a dimension."""
    return _split(input, sizes, dim)


@op(
    name="unsafe_pieces",
    view=_SPLIT,
    grad_fn="UnsafeSplitBackward0",
    saves=(),
    method=False,
    namespaces=(),
    on_stack=_stack_of_pieces,
)
def unsafe_pieces(input: Array, sizes: Any, dim: int) -> tuple[Array, ...]:
    """`split_pieces` for `unsafe_split`, under its node's name."""
    return _split(input, sizes, dim)


@op(
    name="unsafe_sizes",
    view=_SPLIT,
    grad_fn="UnsafeSplitWithSizesBackward0",
    saves=(),
    method=False,
    namespaces=(),
    on_stack=_stack_of_pieces,
)
def unsafe_sizes(input: Array, sizes: Any, dim: int) -> tuple[Array, ...]:
    """`split_sizes` for `unsafe_split_with_sizes`, under its node's name."""
    return _split(input, sizes, dim)


def _rows(shape: Ints, strides: Ints, offset: int, dim: int) -> list[Geometry]:
    dim = wrap_dim(dim, len(shape))
    size = (*shape[:dim], *shape[dim + 1 :])
    steps = (*strides[:dim], *strides[dim + 1 :])
    return [(size, steps, offset + i * strides[dim]) for i in range(shape[dim])]


def _write_row(base: Array, new: Array, dim: int, part: int) -> Array:
    dim = wrap_dim(dim, base.ndim)
    return lax.dynamic_update_slice_in_dim(base, jnp.expand_dims(new, dim), part, dim)


def _row_alone(dim: int, part: int) -> tuple[str, tuple[Any, ...]]:
    return "basic_index", ((part,), (KEEP,) * dim + (PICK,))


@op(
    name="unbind_rows",
    view=View(_rows, _write_row, alone=_row_alone),
    grad_fn="UnbindBackward0",
    saves=(),
    method=False,
    namespaces=(),
    on_stack=lambda input, dim: jnp.moveaxis(input, wrap_dim(dim, input.ndim), 0),
)
def unbind_rows(input: Array, dim: int) -> tuple[Array, ...]:
    """All slices along a dimension."""
    dim = wrap_dim(dim, input.ndim)
    return tuple(
        lax.index_in_dim(input, i, dim, keepdims=False) for i in range(input.shape[dim])
    )
