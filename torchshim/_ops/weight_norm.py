"""Weights split into their lengths and directions."""

from __future__ import annotations

import jax.numpy as jnp

from torchshim._core.op import Array, op


@op(
    grad_fn="WeightNormInterfaceBackward0",
    saves=("v", "g", "result"),
    namespaces=(),
    method=False,
    out=False,
)
def weight_norm_interface(v: Array, g: Array, dim: int) -> Array:
    """`v` scaled to the lengths `g`, one for each index of the first or last `dim`."""
    wide = jnp.promote_types(v.dtype, jnp.float32)
    axes = tuple(range(1, v.ndim)) if dim == 0 else tuple(range(v.ndim - 1))
    direction = v.astype(wide)
    length = jnp.sqrt(jnp.sum(direction * direction, axis=axes, keepdims=True))
    return (direction * (g.astype(wide) / length)).astype(v.dtype)
