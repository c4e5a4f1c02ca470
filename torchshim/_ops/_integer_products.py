"""Products of integers by products of floating-point numbers, exact to the bit.

XLA for the CPU multiplies matrices of int64 and of short integers in a plain loop, and
those of float64 by a library (of int32, too). A float64 holds integers of 53 bits:
integers are cut into pieces so short that sums of their products stay below that. What
runs over is lost as in PyTorch, modulo two to the power of the dtype's bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from torchshim._core.op import Array
from torchshim._core.placement import platform

Dimensions = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]

# Fewer products are made in less time than it takes to cut.
_MANY = 1 << 19
_DTYPES = (jnp.int8, jnp.uint8, jnp.int16, jnp.int64)
# The bits of integers that a float64 holds, and the shortest pieces.
_EXACT = 53
_SHORTEST = 16


def pays(a: Array, b: Array, dims: Dimensions) -> bool:
    """Whether to multiply these by `product`."""
    if a.dtype not in _DTYPES or platform() != "cpu":
        return False
    if not all(isinstance(n, int) for n in (*a.shape, *b.shape)):
        return False  # a symbol of `_core/polymorphic.py`
    (_, contracted), (_, batch) = dims
    left = [n for i, n in enumerate(b.shape) if i not in (*contracted, *batch)]
    number = math.prod((*a.shape, *left))
    return number >= _MANY and _piece_bits(_terms(a, dims)) >= _SHORTEST


def _terms(a: Array, dims: Dimensions) -> int:
    """How many products each element of the result is the sum of."""
    return math.prod(a.shape[i] for i in dims[0][0])


def _piece_bits(terms: int) -> int:
    """The bits of pieces of which so many products can be added exactly."""
    return (_EXACT - max(terms - 1, 1).bit_length()) // 2


def product(a: Array, b: Array, dims: Dimensions) -> Array:
    """`lax.dot_general` of integers of one dtype."""
    kind = a.dtype
    terms = _terms(a, dims)

    def multiplied(a: Array, b: Array) -> Array:
        found = jax.lax.dot_general(a, b, dims, precision=jax.lax.Precision.HIGHEST)
        return found.astype(jnp.int64)

    def whole(a: Array, b: Array) -> Array:
        return multiplied(a.astype(jnp.float64), b.astype(jnp.float64)).astype(kind)

    bits, width = _piece_bits(terms), kind.itemsize * 8
    if 2 * width + terms.bit_length() <= _EXACT:
        return whole(a, b)

    def in_pieces(a: Array, b: Array) -> Array:
        count = -(-width // bits)
        left, right = (_pieces(x, bits, count) for x in (a, b))
        total = jnp.zeros((), jnp.int64)
        for i in range(count):
            for j in range(count - i):
                part = multiplied(left[i], right[j])
                total = total + (part << bits * (i + j))
        return total.astype(kind)

    # Most integers are small: then they need not be cut.
    small = (1 << bits) - 1
    fits = [jnp.all(jnp.abs(x.astype(jnp.float64)) <= small) for x in (a, b)]
    return jax.lax.cond(fits[0] & fits[1], whole, in_pieces, a, b)


def _pieces(x: Array, bits: int, count: int) -> list[Array]:
    """Pieces of so many bits, the lowest first; the last has the sign."""
    wide = x.astype(jnp.int64)
    pieces = [(wide >> bits * i) & ((1 << bits) - 1) for i in range(count - 1)]
    return [p.astype(jnp.float64) for p in (*pieces, wide >> bits * (count - 1))]
