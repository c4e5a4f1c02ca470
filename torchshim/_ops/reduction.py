"""Sums and other reductions."""

from __future__ import annotations

import jax.numpy as jnp

from torchshim._core.op import Array, op


@op(grad_fn="SumBackward0", saves=())
def sum(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The sum of elements."""
    return jnp.sum(input, axis=dim, keepdims=keepdim)


@op(grad_fn="TanhBackward0", saves=("result",))
def tanh(input: Array) -> Array:
    """tanh."""
    return jnp.tanh(input)
