"""Random masks made within programs, out of bits or a key drawn on the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from torchshim._core.op import Array, Scalar, op

_LAST_53 = 2**53 - 1


@op(name="_bits_below", namespaces=(), method=False, differentiable=False, saves=())
def bits_below(bits: Array, chance: Scalar) -> Array:
    """Which numbers in [0, 1), made of the last 53 of 64 bits, lie below `chance`.

    The same as PyTorch's comparison in double, in integers.
    """
    limit = jnp.ceil(jnp.asarray(chance, jnp.float64) * 2.0**53)
    return (bits & jnp.uint64(_LAST_53)) < limit.astype(jnp.uint64)


@op(name="_counter_mask", namespaces=(), method=False, differentiable=False, saves=())
def counter_mask(key: Array, shape: tuple[int, ...], chance: Scalar) -> Array:
    """Trues with the probability `chance`, from a key of two 32-bit words.

    By JAX's counter-based generator, which accelerators compute in parallel.
    """
    wrapped = jax.random.wrap_key_data(key, impl="threefry2x32")
    return jax.random.bernoulli(wrapped, jnp.asarray(chance, jnp.float32), shape)
