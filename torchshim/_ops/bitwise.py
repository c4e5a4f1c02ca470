"""Logical operators and operators on the bits of integers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.op import Array, Operand, op
from torchshim._core.promotion import ALWAYS_BOOL, DEFAULT
from torchshim._ops._common import BOOL, COMPLEX, FLOAT, kind, needs_tensor, refuse
from torchshim._ops.comparison import check_truth

_logical: dict[str, Any] = {
    "promote": ALWAYS_BOOL,
    "differentiable": False,
    "inplace": {"typecheck": check_truth},
}
_bits = {"promote": DEFAULT, "differentiable": False, "inplace": True}


@op(**_logical)
def logical_and(input: Array, other: Array) -> Array:
    """Whether both are nonzero."""
    return (input != 0) & (other != 0)


@op(**_logical)
def logical_or(input: Array, other: Array) -> Array:
    """Whether at least one is nonzero."""
    return (input != 0) | (other != 0)


@op(**_logical)
def logical_xor(input: Array, other: Array) -> Array:
    """Whether exactly one is nonzero."""
    return (input != 0) ^ (other != 0)


@op(promote=ALWAYS_BOOL, differentiable=False, inplace=True)
def logical_not(input: Array) -> Array:
    """Whether it is zero."""
    return input == 0


@op(**_bits, out="same")
def bitwise_not(input: Array) -> Array:
    """Every bit turned over; the negation of bools."""
    refuse("bitwise_not_cpu", input, FLOAT + COMPLEX)
    return ~input


@op(**_bits, typecheck=needs_tensor("bitwise_and", out=False))
def bitwise_and(input: Operand, other: Operand) -> Array:
    """Bits set in both; the conjunction of bools."""
    refuse("bitwise_and_cpu", input, FLOAT + COMPLEX)
    return input & other


@op(**_bits, typecheck=needs_tensor("bitwise_or", out=False))
def bitwise_or(input: Operand, other: Operand) -> Array:
    """Bits set in at least one; the disjunction of bools."""
    refuse("bitwise_or_cpu", input, FLOAT + COMPLEX)
    return jnp.bitwise_or(input, other)


@op(**_bits, typecheck=needs_tensor("bitwise_xor", out=False))
def bitwise_xor(input: Operand, other: Operand) -> Array:
    """Bits set in exactly one; the difference of bools."""
    refuse("bitwise_xor_cpu", input, FLOAT + COMPLEX)
    return input ^ other


@op(**_bits, typecheck=needs_tensor("bitwise_left_shift", out=False))
def bitwise_left_shift(input: Operand, other: Operand) -> Array:
    """Bits moved up; 0 where the count is negative or not below the width."""
    refuse("lshift_cpu", input, BOOL + FLOAT + COMPLEX)
    width = input.dtype.itemsize * 8
    fits = (other >= 0) & (other < width)
    count = jnp.where(fits, other, jnp.zeros((), other.dtype))
    shifted = jax.lax.shift_left(*jnp.broadcast_arrays(input, count))
    return jnp.where(fits, shifted, jnp.zeros((), input.dtype))


@op(**_bits, typecheck=needs_tensor("bitwise_right_shift", out=False))
def bitwise_right_shift(input: Operand, other: Operand) -> Array:
    """Bits moved down, the sign kept; all of them where the count is out of range."""
    refuse("rshift_cpu", input, BOOL + FLOAT + COMPLEX)
    width = input.dtype.itemsize * 8
    fits = (other >= 0) & (other < width)
    signed = kind(input) == "i"
    last = jnp.asarray(width - 1, other.dtype)
    count = jnp.where(fits, other, last)
    shift = jax.lax.shift_right_arithmetic if signed else jax.lax.shift_right_logical
    shifted = shift(*jnp.broadcast_arrays(input, count))
    if signed:
        return shifted
    return jnp.where(fits, shifted, jnp.zeros((), input.dtype))
