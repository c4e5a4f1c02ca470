"""Tensors made from sizes and numbers."""

from __future__ import annotations

import jax.numpy as jnp

from torchshim._core.op import Array, op


@op(differentiable=False, method=False)
def ones_like(input: Array) -> Array:
    """Ones."""
    return jnp.ones_like(input)
