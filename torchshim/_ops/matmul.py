"""Products of matrices."""

from __future__ import annotations

import jax.numpy as jnp

from torchshim._core.op import Array, op


@op(grad_fn="MmBackward0", saves={"input": ("other",), "other": ("input",)})
def matmul(input: Array, other: Array) -> Array:
    """Matrix product."""
    return jnp.matmul(input, other)
