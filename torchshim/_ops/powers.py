"""Powers, element by element."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from torchshim._core import dtypes
from torchshim._core.op import Array, Operand, op
from torchshim._core.promotion import BOOL_TO_LONG, DEFAULT, holds, no_element
from torchshim._ops import _branches
from torchshim._ops._common import (
    category,
    is_complex,
    is_integral,
    is_tensor,
    kind,
    needs_tensor,
    no_floats,
)
from torchshim._ops.arithmetic import both

# Integers -----------------------------------------------------------------------------


def _by_squaring(base: Array, exponent: Array) -> Array:
    """`base ** exponent` of integers; `jnp.power` looks at 6 bits of the exponent."""

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        result, square, rest = state
        result = jnp.where((rest & 1) == 1, result * square, result)
        return result, square * square, rest >> 1

    state = jnp.ones_like(base), base, exponent
    return jax.lax.while_loop(lambda state: (state[2] > 0).any(), step, state)[0]


def _integer_power(base: Array, exponent: Array) -> Array:
    """Wraps around as C does; negative exponents leave 1 / base rounded to zero."""
    base, exponent = both(base, exponent)
    if kind(base) == "u":
        return _by_squaring(base, exponent)
    odd = (exponent & 1) == 1
    inverse = jnp.where(
        base == 1, 1, jnp.where(base == -1, jnp.where(odd, -1, 1), 0)
    ).astype(base.dtype)
    positive = _by_squaring(base, jnp.maximum(exponent, 0))
    return jnp.where(exponent < 0, inverse, positive)


# Complex numbers ----------------------------------------------------------------------


def _unit(x: Array) -> Array:
    """±1 for infinities, ±0 for all else."""
    return jnp.copysign(jnp.where(jnp.isinf(x), 1, 0).astype(x.dtype), x)


def _times(x: Array, y: Array) -> Array:
    """The product as C has it: infinite where a factor is, if need be."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    real, imag = a * c - b * d, a * d + b * c
    first, second = jnp.isinf(a) | jnp.isinf(b), jnp.isinf(c) | jnp.isinf(d)

    def boxed(part: Array, own: Array, other: Array) -> Array:
        part = jnp.where(own, _unit(part), part)
        return jnp.where(other & jnp.isnan(part), jnp.copysign(0, part), part)

    a, b = boxed(a, first, second), boxed(b, first, second)
    c, d = boxed(c, second, first), boxed(d, second, first)
    again = jnp.isnan(real) & jnp.isnan(imag) & (first | second)
    return jax.lax.complex(
        jnp.where(again, np.inf * (a * c - b * d), real),
        jnp.where(again, np.inf * (a * d + b * c), imag),
    )


def _exp(x: Array) -> Array:
    """As C has it where the real part is infinite, and where there is no imaginary."""
    real, imag = x.real, x.imag
    out = jnp.exp(x)
    real_part = jnp.where(jnp.isposinf(real) & ~jnp.isfinite(imag), np.inf, out.real)
    flat = (imag == 0) & ~jnp.isneginf(real)
    real_part = jnp.where(flat, jnp.exp(real), real_part)
    below = jnp.isneginf(real)
    return jax.lax.complex(
        jnp.where(below, 0, real_part),
        jnp.where(below, 0, jnp.where(flat, imag, out.imag)),
    )


# The exponents that PyTorch computes otherwise where they are numbers.
_BY_NUMBER: tuple[tuple[float, Any], ...] = (
    (0, jnp.ones_like),
    (0.5, _branches.sqrt),
    (1, lambda base: base),
    (2, lambda base: base * base),
    (3, lambda base: base * base * base),
    (-0.5, _branches.reciprocal_root),
    (-1, lambda base: 1 / base),
    (-2, lambda base: 1 / (base * base)),
)


def _complex_power(base: Array, exponent: Array) -> Array:
    if isinstance(exponent, np.ndarray) and exponent.ndim == 0:
        for number, function in _BY_NUMBER:
            if exponent == number:
                return function(base)
    out = _exp(_times(exponent, _branches.log(base)))
    if not exponent.ndim:
        for number, function in _BY_NUMBER:
            out = jnp.where(exponent == number, function(base), out)
    return out


# --------------------------------------------------------------------------------------


@jax.custom_jvp
def _power(base: Array, exponent: Array) -> Array:
    if is_complex(base):
        return _complex_power(base, exponent)
    if exponent.ndim:
        return jnp.power(base, exponent)
    # A number: products and roots, which differ at -inf and -0, too.
    if isinstance(exponent, np.ndarray):
        chosen = (f for number, f in _BY_NUMBER if exponent == number)
        return next(chosen, lambda base: jnp.power(base, exponent))(base)
    out = jnp.power(base, exponent)
    for number, function in _BY_NUMBER:
        out = jnp.where(exponent == number, function(base), out)
    return out


def _power_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch: no gradient to the base where the exponent is 0, not even of NaN, none to
    # the exponent where the base is 0 and the exponent is not negative.
    (base, exponent), (dbase, dexponent) = primals, tangents
    result = _power(base, exponent)
    parts = []
    if not isinstance(dbase, SymbolicZero):
        by_base = jnp.where(exponent == 0, 0, exponent * _power(base, exponent - 1))
        parts.append(jnp.where(exponent == 0, 0, dbase) * by_base)
    if not isinstance(dexponent, SymbolicZero):  # else NaN where the base is negative
        flat = (base == 0) & (exponent.real >= 0)
        parts.append(dexponent * jnp.where(flat, 0, result * jnp.log(base)))
    return result, sum(parts[1:], parts[0]) if parts else jnp.zeros_like(result)


_power.defjvp(_power_jvp, symbolic_zeros=True)


def _power_node(input: Any, exponent: Any) -> str:
    if not is_tensor(input):
        return "PowBackward2"
    return f"PowBackward{1 if is_tensor(exponent) else 0}"


_two_numbers = needs_tensor("pow", "exponent")


def _check_power(input: Any, exponent: Any) -> None:
    _two_numbers(input, exponent)
    if (
        not is_tensor(exponent)
        and isinstance(exponent, int)
        and exponent < 0
        and category(input) < dtypes.FLOATING
    ):
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if isinstance(exponent, int) and category(input) == dtypes.INTEGER:
        # PyTorch reads a number of 64 bits first, and then one of the elements' dtype.
        kind = dtypes.int64 if exponent >= 2**63 else input.dtype
        if not holds(kind, exponent):
            raise RuntimeError(no_element(kind.np))
    both = category(input) == category(exponent) == dtypes.BOOL
    if both and not isinstance(exponent, bool):
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")


_POWER_SAVES = {
    "input": ("input", "exponent"),
    "exponent": ("input", "exponent", "result"),
}


@op(
    promote=DEFAULT,
    grad_fn=_power_node,
    saves=_POWER_SAVES,
    inplace=True,
    typecheck=_check_power,
    static_for=no_floats,
    own_floats={"exponent": tuple(float(number) for number, _ in _BY_NUMBER)},
)
def pow(input: Operand, exponent: Operand) -> Array:
    """`input ** exponent`, broadcast."""
    if input.dtype == bool:  # and the exponent a number, see `_check_power`
        return jnp.logical_or(input, jnp.logical_not(exponent))
    if is_integral(input):
        return _integer_power(input, exponent)
    return _power(input, exponent)


@op(promote=BOOL_TO_LONG, grad_fn="PowBackward0", saves=("input",), inplace=True)
def square(input: Array) -> Array:
    """`input ** 2`."""
    return input * input
