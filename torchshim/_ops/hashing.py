"""`hash_tensor`: the exclusive or of all bits."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.op import Array, op
from torchshim._ops._common import is_complex, is_integral
from torchshim._ops._reducing import Dims, axes_of, squeezed


@op(
    differentiable=False,
    saves=(),
    out="Expected result to be of dtype uint64, but got {have.scalar_name}",
)
def hash_tensor(
    input: Array, dim: Dims = None, *, keepdim: bool = False, mode: int = 0
) -> Array:
    """The elements as 64 bits each, combined by exclusive or, as uint64."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if is_complex(input):
        raise NotImplementedError("hash_tensor: complex tensors are not supported")
    if not input.size and dim in (None, ()):
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == "
            "0. Specify the reduction dim with the 'dim' argument."
        )
    axes = axes_of(dim, input.ndim)
    for axis in axes:
        if not input.shape[axis]:
            raise IndexError(
                f"hash_tensor: Expected reduction dim {axis} to have non-zero size."
            )
    wide = input.astype(jnp.int64 if is_integral(input) else jnp.float64)
    bits = lax.bitcast_convert_type(wide, jnp.uint64)
    out = lax.reduce(bits, np.uint64(0), lax.bitwise_xor, axes)
    return squeezed(jnp.expand_dims(out, axes), axes, keepdim)
