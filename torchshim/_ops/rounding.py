"""Absolute values, signs, rounding, and the parts that numbers are made of."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes
from torchshim._core.op import Array, Operand, Scalar, op
from torchshim._core.promotion import (
    COMPLEX_TO_FLOAT,
    DEFAULT,
    INT_TO_FLOAT,
    NO_OPMATH,
)
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    by_second,
    category,
    is_complex,
    is_integral,
    kind,
    quotient,
    refuse,
    without_derivative,
)

# Sizes and signs ----------------------------------------------------------------------


@op(
    promote=COMPLEX_TO_FLOAT,
    grad_fn="AbsBackward0",
    saves=("input",),
    inplace=True,
    aliases=("absolute",),
    out=lambda input: True if input.dtype.is_complex else "same",
)
def abs(input: Array) -> Array:
    """The absolute value; the modulus of complex numbers."""
    refuse("abs_cpu", input, BOOL)
    return modulus(input) if is_complex(input) else _abs(input)


@jax.custom_jvp
def _abs(x: Array) -> Array:
    return jnp.abs(x)


@_abs.defjvp
def _abs_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch: no gradient at 0 and NaN; JAX's is 1 and -1 there.
    (x,), (dx,) = primals, tangents
    return _abs(x), dx * _sign(x)


@jax.custom_jvp
def modulus(z: Array) -> Array:
    # Not by `jnp.abs`: XLA takes that for cheap and computes it once for each use, in
    # another rounding, so that an extreme is equal to none of the elements.
    a, b = jnp.abs(z.real), jnp.abs(z.imag)
    high, low = jnp.maximum(a, b), jnp.minimum(a, b)
    ratio = low / jnp.where(high == 0, 1, high)
    infinite = jnp.isinf(a) | jnp.isinf(b)
    return jnp.where(infinite, jnp.inf, high * jnp.sqrt(1 + ratio * ratio))


@modulus.defjvp
def _modulus_jvp(primals: Any, tangents: Any) -> Any:
    # By the direction, which is 0 at 0, of every order.
    (z,), (dz,) = primals, tangents
    return modulus(z), jnp.real(jnp.conj(direction(z)) * dz)


@jax.custom_jvp
def direction(z: Array) -> Array:
    at_zero = z == 0
    safe = jnp.where(at_zero, 1, z)
    return jnp.where(at_zero, 0, safe / jnp.abs(safe))


@direction.defjvp
def _direction_jvp(primals: Any, tangents: Any) -> Any:
    # What is left of the change across the direction; PyTorch: 0 at 0.
    (z,), (dz,) = primals, tangents
    out, size = direction(z), modulus(z)
    across = dz - jnp.real(jnp.conj(out) * dz) * out
    return out, jnp.where(size == 0, 0, across / jnp.where(size == 0, 1, size))


def _real_only(name: str) -> Any:
    def check(input: Any, *_: Any) -> None:
        if category(input) == dtypes.COMPLEX:
            raise NotImplementedError(f"{name} is not supported for complex inputs")

    return check


def _check_sign(input: Any) -> None:
    if category(input) == dtypes.COMPLEX:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. "
            "Please use torch.sgn instead."
        )


def _sign(x: Array) -> Array:
    if kind(x) == BOOL:
        return x
    if is_integral(x):
        return jnp.sign(x)
    # PyTorch's sign of NaN is 0.
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


@op(
    promote=DEFAULT,
    grad_fn="SignBackward0",
    saves=(),
    inplace=True,
    typecheck=_check_sign,
    out="same",
)
def sign(input: Array) -> Array:
    """-1, 0 or 1."""
    return _sign(input)


@op(
    promote=DEFAULT,
    grad_fn="SgnBackward0",
    saves=("input", "result"),
    inplace=True,
    out="same",
)
def sgn(input: Array) -> Array:
    """The sign; complex numbers are divided by their modulus."""
    return direction(input) if is_complex(input) else _sign(input)


@op(grad_fn="AngleBackward0", saves=("input",), layout="preserve")
def angle(input: Array) -> Array:
    """The argument of complex numbers: 0 or pi for real ones."""
    if is_complex(input):
        return _argument(input)
    if is_integral(input):
        input = input.astype(dtypes.get_default_dtype().np)
    input = jax.lax.stop_gradient(input)
    flat = jnp.where(input < 0, np.pi, 0).astype(input.dtype)
    return jnp.where(jnp.isnan(input), input, flat)


@jax.custom_jvp
def _argument(z: Array) -> Array:
    return jnp.arctan2(z.imag, z.real)


@_argument.defjvp
def _argument_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch: no gradient at 0, where JAX's is NaN.
    (z,), (dz,) = primals, tangents
    square = z.real * z.real + z.imag * z.imag
    safe = jnp.where(square == 0, 1, square)
    slope = (z.real * dz.imag - z.imag * dz.real) / safe
    return _argument(z), jnp.where(square == 0, 0, slope)


@op(
    promote=INT_TO_FLOAT,
    grad_fn=by_second("Copysign", 0, 1),
    saves={"input": ("input", "result"), "other": ()},
    inplace=True,
)
def copysign(input: Array, other: Operand) -> Array:
    """The size of `input` with the sign of `other`."""
    refuse("copysign_cpu", input, COMPLEX)
    return _copysign(input, other)


@jax.custom_jvp
def _copysign(a: Array, b: Array) -> Array:
    return jnp.copysign(a, b)


@_copysign.defjvp
def _copysign_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch: result / input, and 0 at 0.
    (a, b), (da, db) = primals, tangents
    result = _copysign(a, b)
    ratio = jnp.where(a == 0, 0, jax.lax.stop_gradient(result / a))
    return result, da * ratio + 0 * db


def _check_signbit(input: Any) -> None:
    if category(input) == dtypes.COMPLEX:
        raise NotImplementedError("signbit is not implemented for complex tensors.")


@op(
    differentiable=False,
    layout="preserve",
    typecheck=_check_signbit,
    out="signbit does not support non-boolean outputs.",
)
def signbit(input: Array) -> Array:
    """Whether the sign bit is set: true of -0.0 as well."""
    if is_integral(input):
        return input < 0 if kind(input) == "i" else jnp.zeros(input.shape, bool)
    return jnp.signbit(input)


@op(
    promote=DEFAULT,
    grad_fn="NotImplemented",
    saves=(),
    inplace=True,
    typecheck=lambda input, values: _check_heaviside(input, values),
    out="heaviside is not yet implemented for tensors with different dtypes.",
    unfollowed=True,
)
@without_derivative("aten::heaviside")
def heaviside(input: Array, values: Array) -> Array:
    """0 below zero, 1 above it, `values` at zero."""
    zero, one = jnp.zeros((), input.dtype), jnp.ones((), input.dtype)
    return jnp.where(input == 0, values, jnp.where(input > 0, one, zero))


def _check_heaviside(input: Any, values: Any) -> None:
    if dtypes.COMPLEX in (category(input), category(values)):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes."
        )


# Rounding -----------------------------------------------------------------------------


def _rounded(name: str, input: Array, rounded: Any) -> Array:
    refuse(f"{name}_vml_cpu", input, BOOL + COMPLEX)
    return input if is_integral(input) else rounded(input)


@op(
    promote=DEFAULT,
    grad_fn="FloorBackward0",
    saves=(),
    inplace=True,
    typecheck=_real_only("floor"),
    out="same",
)
def floor(input: Array) -> Array:
    """The largest integer not above."""
    return _rounded("floor", input, jnp.floor)


@op(
    promote=DEFAULT,
    grad_fn="CeilBackward0",
    saves=(),
    inplace=True,
    typecheck=_real_only("ceil"),
    out="same",
)
def ceil(input: Array) -> Array:
    """The smallest integer not below."""
    return _rounded("ceil", input, jnp.ceil)


@op(
    promote=DEFAULT,
    grad_fn="TruncBackward0",
    saves=(),
    inplace=True,
    aliases=("fix",),
    typecheck=_real_only("trunc"),
    out="same",
)
def trunc(input: Array) -> Array:
    """The integer part: rounded towards zero."""
    return _rounded("trunc", input, jnp.trunc)


@op(
    promote=DEFAULT,
    grad_fn="RoundBackward0",
    saves=(),
    inplace=True,
    overload=True,
    out="same",
)
def round(input: Array) -> Array:
    """The nearest integer, ties to even."""
    return _rounded("round", input, jnp.round)


@op(
    name="round.decimals",
    public="round",
    promote=DEFAULT,
    grad_fn="RoundBackward1",
    saves=(),
    inplace=True,
    overload=True,
    out="same",
)
def round_decimals(input: Array, *, decimals: int) -> Array:
    """Floats rounded to so many decimals, ties to even."""
    if not decimals:
        refuse("round_vml_cpu", input, BOOL + INT + COMPLEX)
        return jnp.round(input)
    refuse("round_cpu", input, BOOL + INT + COMPLEX)
    places = decimals if decimals > 0 else -decimals
    # A power beyond float64 is infinite, of which NaN comes.
    scale = np.asarray(10.0**places if places < 309 else np.inf, input.dtype)
    if decimals > 0:
        return quotient(jnp.round(input * scale), scale)
    return jnp.round(quotient(input, scale)) * scale


@op(
    name="special_round",
    public="round",
    promote=DEFAULT,
    grad_fn="RoundBackward1",
    namespaces=("special",),
    saves=(),
    method=False,
)
def special_round(input: Array, *, decimals: int = 0) -> Array:
    """As `round` with `decimals`."""
    return round_decimals(input, decimals=decimals)


@op(promote=DEFAULT, grad_fn="FracBackward0", saves=(), inplace=True, out="same")
def frac(input: Array) -> Array:
    """What `trunc` leaves."""
    refuse("frac_cpu", input, BOOL + INT + COMPLEX)
    return input - jnp.trunc(input)


# Special values -----------------------------------------------------------------------


@op(
    promote=NO_OPMATH,
    grad_fn="NanToNumBackward0",
    saves=("input",),
    inplace=True,
    real_gradients="nan_to_num",
    curved=False,
    out=(
        "nan_to_num: dtype of out: {have.scalar_name} should be same as "
        "input: {want.scalar_name}"
    ),
)
def nan_to_num(
    input: Array,
    nan: Scalar | None = None,
    posinf: Scalar | None = None,
    neginf: Scalar | None = None,
) -> Array:
    """Replaces NaN by 0 and infinities by the largest finite numbers, or by these."""
    if is_integral(input):
        return input
    if is_complex(input):
        chosen = [v if v is None else jnp.real(v) for v in (nan, posinf, neginf)]
        return jax.lax.complex(
            _finite(input.real, *chosen), _finite(input.imag, *chosen)
        )
    return _finite(input, nan, posinf, neginf)


def _finite(x: Array, nan: Any, posinf: Any, neginf: Any) -> Array:
    info = jnp.finfo(x.dtype)
    low = info.min if neginf is None else neginf
    high = info.max if posinf is None else posinf
    x = jnp.where(x == -jnp.inf, jnp.asarray(low, x.dtype), x)
    x = jnp.where(x == jnp.inf, jnp.asarray(high, x.dtype), x)
    instead = 0.0 if nan is None else nan
    return jnp.where(jnp.isnan(x), jnp.asarray(instead, x.dtype), x)


@op(
    promote=NO_OPMATH,
    grad_fn="NextafterBackward0",
    saves=("input", "other"),
    inplace=True,
)
def nextafter(input: Array, other: Array) -> Array:
    """The next number that the dtype holds, going from `input` towards `other`."""
    refuse("nextafter_cpu", input, BOOL + INT + COMPLEX)
    return _nextafter(input, other)


@jax.custom_jvp
def _nextafter(a: Array, b: Array) -> Array:
    return jnp.nextafter(a, b)


@_nextafter.defjvp
def _nextafter_jvp(primals: Any, tangents: Any) -> Any:
    # JAX has none; PyTorch has none where the two are equal.
    (a, b), (da, db) = primals, tangents
    return _nextafter(a, b), jnp.where(a == b, 0, da) + 0 * db


def _check_exponent(input: Any, other: Any) -> None:
    if category(input) == dtypes.FLOATING and category(other) == dtypes.BOOL:
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")


@op(
    promote=INT_TO_FLOAT,
    typecheck=_check_exponent,
    grad_fn="LdexpBackward0",
    saves={"input": ("other", "result"), "other": ("result",)},
    inplace=True,
    castable="ldexp can't be cast to the desired output type {have.scalar_name}",
)
def ldexp(input: Array, other: Array) -> Array:
    """`input * 2 ** other`."""
    return input * jnp.power(jnp.asarray(2, other.dtype), other)


@op(
    grad_fn="FrexpBackward0",
    saves=("result1",),
    named_result=("mantissa", "exponent"),
    layout="preserve",
    out=(
        "torch.frexp() expects mantissa to have dtype {want.cpp_name} but got "
        "{have.cpp_name}",
        "torch.frexp() expects exponent to have int dtype but got {have.cpp_name}",
    ),
)
def frexp(input: Array) -> tuple[Array, Array]:
    """Mantissas in [0.5, 1) and exponents: `mantissa * 2 ** exponent` is the input."""
    if kind(input) != FLOAT:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    wide = input if input.dtype.itemsize >= 4 else input.astype(jnp.float32)
    mantissa, exponent = _frexp(wide)
    return mantissa.astype(input.dtype), exponent


@jax.custom_jvp
def _frexp(x: Array) -> tuple[Array, Array]:
    mantissa, exponent = jnp.frexp(x)
    finite = jnp.isfinite(x)
    return jnp.where(finite, mantissa, x), jnp.where(finite, exponent, 0).astype(
        jnp.int32
    )


@_frexp.defjvp
def _frexp_jvp(primals: Any, tangents: Any) -> Any:
    # The mantissa is linear in the input wherever the exponent stays the same.
    (x,), (dx,) = primals, tangents
    mantissa, exponent = _frexp(x)
    scale = jnp.power(jnp.asarray(2, x.dtype), -exponent.astype(x.dtype))
    nothing = np.zeros(exponent.shape, jax.dtypes.float0)
    return (mantissa, exponent), (dx * jax.lax.stop_gradient(scale), nothing)


# Divisors of integers -----------------------------------------------------------------


def _divisor(a: Array, b: Array) -> Array:
    """By Euclid's algorithm; `jnp.gcd` does not end at the least of all integers."""

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = state
        zero = a == 0
        rest = jax.lax.rem(b, jnp.where(zero, 1, a))
        return jnp.where(zero, a, rest), jnp.where(zero, b, a)

    def goes_on(state: tuple[Array, Array]) -> Array:
        return (state[0] != 0).any()

    a, b = jnp.broadcast_arrays(jnp.abs(a), jnp.abs(b))
    return jax.lax.while_loop(goes_on, step, (a, b))[1]


@op(promote=DEFAULT, differentiable=False, inplace=True)
def gcd(input: Array, other: Array) -> Array:
    """The greatest common divisor."""
    refuse("gcd_cpu", input, BOOL + FLOAT + COMPLEX)
    return _divisor(input, other)


@op(promote=DEFAULT, differentiable=False, inplace=True)
def lcm(input: Array, other: Array) -> Array:
    """The least common multiple."""
    refuse("lcm_cpu", input, BOOL + FLOAT + COMPLEX)
    divisor = _divisor(input, other)
    safe = jnp.where(divisor == 0, 1, divisor)
    kind = input.dtype
    if kind.itemsize < 4:  # C computes in int, and cuts the result
        input, other, safe = (x.astype(np.int32) for x in (input, other, safe))
    return jnp.where(divisor == 0, 0, jnp.abs(input // safe * other)).astype(kind)
