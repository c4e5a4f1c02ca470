"""Sums, products, quotients and powers, element by element."""

from __future__ import annotations

import jax.numpy as jnp

from torchshim._core.op import Array, Operand, Scalar, op
from torchshim._core.promotion import DEFAULT, INT_TO_FLOAT


@op(promote=DEFAULT, grad_fn="AddBackward0", saves=(), inplace=True)
def add(input: Array, other: Operand, *, alpha: Scalar = 1) -> Array:
    """`input + alpha * other`, broadcast."""
    return input + _scaled(other, alpha)


@op(
    promote=DEFAULT,
    grad_fn="SubBackward0",
    saves=(),
    inplace=True,
    aliases=("subtract",),
)
def sub(input: Array, other: Operand, *, alpha: Scalar = 1) -> Array:
    """`input - alpha * other`, broadcast."""
    return input - _scaled(other, alpha)


@op(promote=DEFAULT, grad_fn="RsubBackward1", saves=())
def rsub(input: Array, other: Operand, *, alpha: Scalar = 1) -> Array:
    """`other - alpha * input`, broadcast."""
    return other - _scaled(input, alpha)


def _scaled(other: Array, alpha: Array) -> Array:
    # A static 1 is the usual case and leaves no trace in the program.
    return other if isinstance(alpha, int) and alpha == 1 else alpha * other


@op(
    promote=DEFAULT,
    grad_fn="MulBackward0",
    saves={"input": ("other",), "other": ("input",)},
    inplace=True,
    aliases=("multiply",),
)
def mul(input: Array, other: Operand) -> Array:
    """`input * other`, broadcast."""
    if input.dtype == jnp.bool_:
        return input & other
    return input * other


@op(
    promote=INT_TO_FLOAT,
    grad_fn="DivBackward0",
    saves={"input": ("other",), "other": ("input", "other")},
    inplace=True,
    aliases=("divide", "true_divide"),
)
def div(input: Array, other: Operand) -> Array:
    """`input / other`, broadcast."""
    return input / other


@op(promote=DEFAULT, grad_fn="NegBackward0", saves=(), inplace=True)
def neg(input: Array) -> Array:
    """`-input`."""
    return -input


def _pow_node(input: object, exponent: object) -> str:
    return "PowBackward1" if exponent == "tensor" else "PowBackward0"


@op(
    promote=DEFAULT,
    grad_fn=_pow_node,
    saves={"input": ("input", "exponent"), "exponent": ("input", "exponent", "result")},
    inplace=True,
)
def pow(input: Operand, exponent: Operand) -> Array:
    """`input ** exponent`, broadcast."""
    return jnp.power(input, exponent)
