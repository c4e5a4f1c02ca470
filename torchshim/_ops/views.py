"""Views: other ways to look at the same memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from torchshim._core.op import Array, Index, View, op

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the end made positive; PyTorch's error outside."""
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, "
            f"{bound - 1}], but got {dim})"
        )
    return dim % bound


def _same(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Geometry:
    return shape, strides, offset


@op(
    view=View(_same, lambda base, new: new, detached=True),
    differentiable=False,
    saves=(),
)
def detach(input: Array) -> Array:
    """The same memory without the history."""
    return input


def _transposed(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int, d0: int, d1: int
) -> Geometry:
    a, b = wrap_dim(d0, len(shape)), wrap_dim(d1, len(shape))
    size, step = list(shape), list(strides)
    if size:
        size[a], size[b] = size[b], size[a]
        step[a], step[b] = step[b], step[a]
    return tuple(size), tuple(step), offset


@op(
    view=View(_transposed, lambda base, new, d0, d1: transpose(new, d0, d1)),
    grad_fn="TransposeBackward0",
    saves=(),
)
def transpose(input: Array, dim0: int, dim1: int) -> Array:
    """Two dimensions swapped."""
    a, b = wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim)
    return jnp.swapaxes(input, a, b) if input.ndim else input


def _selected(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dim: int,
    index: int,
) -> Geometry:
    dim = wrap_dim(dim, len(shape))
    start = index + shape[dim] if index < 0 else index
    return (
        shape[:dim] + shape[dim + 1 :],
        strides[:dim] + strides[dim + 1 :],
        offset + start * strides[dim],
    )


def _write_selected(base: Array, new: Array, dim: int, index: Array) -> Array:
    dim = wrap_dim(dim, base.ndim)
    return jax.lax.dynamic_update_index_in_dim(base, new, index, dim)


@op(
    view=View(_selected, _write_selected),
    grad_fn="SelectBackward0",
    saves=(),
)
def select(input: Array, dim: int, index: Index) -> Array:
    """One slice along a dimension."""
    dim = wrap_dim(dim, input.ndim)
    if isinstance(index, int):
        size = input.shape[dim]
        if not -size <= index < size:
            raise IndexError(
                f"select(): index {index} out of range for tensor of size "
                f"{list(input.shape)} at dimension {dim}"
            )
        return jax.lax.index_in_dim(input, index, dim, keepdims=False)
    return jax.lax.dynamic_index_in_dim(input, index, dim, keepdims=False)
