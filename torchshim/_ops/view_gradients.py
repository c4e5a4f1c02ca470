"""Gradients of views by the names that PyTorch's dispatcher has for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from torchshim._core.op import REGISTRY, Array, op
from torchshim._ops._common import broadcast_shapes
from torchshim._ops._reducing import wide
from torchshim._ops.view_geometry import diagonal_dims, diagonal_length, wrap_dim
from torchshim._ops.view_memory import window_index

_ATEN = ("ops.aten",)


def _filling(grad: Array, shape: Sequence[int]) -> Array:
    """The gradient as what is written to a view of this shape."""
    if tuple(grad.shape) == tuple(shape):
        return grad
    common = broadcast_shapes(shape, grad.shape)
    if common != tuple(shape):
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape "
            f"{list(common)}"
        )
    return jnp.broadcast_to(grad, shape)


@op(
    grad_fn="UnfoldBackwardBackward0",
    saves=(),
    namespaces=_ATEN,
    method=False,
    out=False,
)
def unfold_backward(
    grad_in: Array, input_sizes: Any, dim: int, size: int, step: int
) -> Array:
    """The gradient of `unfold`: windows added where they came from."""
    if step <= 0:
        raise ValueError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    shape = tuple(input_sizes)
    if not shape:
        return _filling(grad_in, (size,)).sum(dtype=grad_in.dtype)
    axis = wrap_dim(dim, len(shape))
    count = grad_in.shape[axis]
    rest = (*shape[:axis], *shape[axis + 1 :])
    windows = jnp.moveaxis(wide(grad_in), axis, -2)
    windows = _filling(windows, (*rest, count, size))
    # Windows may reach beyond what they are said to come from.
    index = window_index(count, size, step)
    zeros = jnp.zeros((*rest, shape[axis]), windows.dtype)
    gradient = zeros.at[..., index].add(windows, mode="drop")
    return jnp.moveaxis(gradient, -1, axis).astype(grad_in.dtype)


@op(
    grad_fn="SelectBackwardBackward0",
    saves=(),
    namespaces=_ATEN,
    method=False,
    out=False,
)
def select_backward(
    grad_output: Array, input_sizes: Any, dim: int, index: int
) -> Array:
    """The gradient of `select`: zeros but for the place that was taken."""
    shape = tuple(input_sizes)
    axis = wrap_dim(dim, len(shape))
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} "
            f"at dimension {dim}"
        )
    new = _filling(grad_output, shape[:axis] + shape[axis + 1 :])
    where = (slice(None),) * axis
    return jnp.zeros(shape, grad_output.dtype).at[(*where, index)].set(new)


@op(
    grad_fn="SliceBackwardBackward0",
    saves=(),
    namespaces=_ATEN,
    method=False,
    out=False,
)
def slice_backward(
    grad_output: Array, input_sizes: Any, dim: int, start: int, end: int, step: int
) -> Array:
    """The gradient of a slice: zeros but for the places that were taken."""
    shape = tuple(input_sizes)
    axis = wrap_dim(dim, len(shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    piece = slice(start, end, step)
    count = len(range(*piece.indices(shape[axis])))
    new = _filling(grad_output, (*shape[:axis], count, *shape[axis + 1 :]))
    where = (slice(None),) * axis
    return jnp.zeros(shape, grad_output.dtype).at[(*where, piece)].set(new)


@op(
    grad_fn="DiagonalBackwardBackward0",
    saves=(),
    namespaces=_ATEN,
    method=False,
    out=False,
)
def diagonal_backward(
    grad_output: Array, input_sizes: Any, offset: int, dim1: int, dim2: int
) -> Array:
    """The gradient of `diagonal`: zeros but for the diagonal."""
    shape = tuple(input_sizes)
    a, b = diagonal_dims(len(shape), dim1, dim2)
    length = diagonal_length(shape[a], shape[b], offset)
    rest = [shape[d] for d in range(len(shape)) if d not in (a, b)]
    new = _filling(grad_output, (*rest, length))
    view = REGISTRY["diagonal"].view
    assert view is not None
    zeros = jnp.zeros(shape, grad_output.dtype)
    return view.write(zeros, new, offset, dim1, dim2)
