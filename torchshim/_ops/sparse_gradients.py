"""Sparse gradients: the places that were looked up, and what arrived there.

Each takes the gradient of an operator's result, the shape of its first operand, and
its other arguments (`op(sparse_grad=)`). It gives indices and values. What is left out
has an index beyond the shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from torchshim._core.op import Array, op
from torchshim._ops.embedding import bags_of, ends
from torchshim._ops.view_geometry import wrap_dim

_FREQUENCIES = (
    "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
)


def _maker(grad_fn: str) -> Callable[..., Any]:
    return op(
        grad_fn=grad_fn,
        saves=(),
        curved=False,
        differentiable=("grad",),
        namespaces=(),
        method=False,
        out=False,
    )


def _rows(grad: Array, indices: Array, rows: int, padding_idx: int) -> Any:
    places = indices.reshape(-1).astype(jnp.int64)
    if padding_idx >= 0:
        if not indices.ndim:
            raise IndexError("too many indices for tensor of dimension 0 (got 1)")
        left_out = places == padding_idx
        places = jnp.where(left_out, rows, places)
        # Who looks for values that are not finite need not look at the places.
        grad = jnp.where(left_out.reshape(*indices.shape, 1), 0, grad)
    return places[None], grad.reshape(places.shape[0], grad.shape[-1])


@_maker("SparseCooTensorWithDimsAndTensorsBackward0")
def embedding_rows(
    grad: Array,
    shape: tuple[int, ...],
    indices: Array,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> tuple[Array, Array]:
    """The rows of an embedding's table that get gradients, and these."""
    if scale_grad_by_freq:
        raise RuntimeError(_FREQUENCIES)
    return _rows(grad, indices, shape[0], padding_idx)


@_maker("EmbeddingBagBackwardBackward0")
def embedding_bag_rows(
    grad: Array,
    shape: tuple[int, ...],
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool,
    mode: str,
    per_sample_weights: Array | None,
    include_last_offset: bool,
    padding_idx: int,
    sparse: bool,
) -> tuple[Array, Array]:
    """The rows that went into bags, and the gradients of their bags."""
    if scale_grad_by_freq:
        raise RuntimeError(_FREQUENCIES)
    ended = ends(grad.dtype, padding_idx)
    bag, bags = bags_of(indices, offsets, include_last_offset, padding_idx, ended)
    if mode == "mean":
        sizes = jnp.zeros(bags + 1, jnp.int64).at[bag].add(1)[:bags]
        grad = grad / jnp.maximum(sizes, 1).astype(grad.dtype)[:, None]
    values = grad.at[bag].get(mode="fill", fill_value=0)
    if per_sample_weights is not None:
        values = values * per_sample_weights[:, None]
    return _rows(values, indices, shape[0], padding_idx)


@_maker("SparseCooTensorWithDimsAndTensorsBackward0")
def gather_places(
    grad: Array, shape: tuple[int, ...], dim: int, index: Array, sparse_grad: bool
) -> tuple[Array, Array]:
    """The places that elements were gathered from, and their gradients."""
    values = grad.reshape(-1)
    if not shape:
        return jnp.zeros((0, values.shape[0]), jnp.int64), values
    index = index.reshape(index.shape or (1,)).astype(jnp.int64)
    places = list(jnp.indices(index.shape, dtype=jnp.int64))
    places[wrap_dim(dim, len(shape))] = index
    return jnp.stack([place.reshape(-1) for place in places]), values
