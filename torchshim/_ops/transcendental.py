"""Exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.op import POSITIVE, Array, Operand, op
from torchshim._core.promotion import DEFAULT, INT_TO_FLOAT
from torchshim._ops import _branches, _trigonometric
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    INT,
    is_complex,
    is_known,
    is_tensor,
    needs_tensor,
    refuse,
    rounded,
)


def _unary(name: str, saves: str, inplace: Any = True, **fields: Any) -> Any:
    """An operator of one operand that computes integers in the default dtype."""
    return op(
        promote=INT_TO_FLOAT,
        grad_fn=f"{name}Backward0",
        saves=(saves,) if saves else (),
        inplace=inplace,
        **fields,
    )


def _without(name: str) -> dict[str, Any]:
    """An in-place form whose gradient PyTorch lacks."""

    def check(input: Any) -> None:
        raise NotImplementedError(
            f"the derivative for 'inplace version of {name}' is not implemented."
        )

    node = f"{name.capitalize()}Backward1"
    return {"grad_fn": node, "inplace_gradient_check": check}


_SPECIAL = ("torch", "special")

# Exponentials and logarithms ----------------------------------------------------------


@_unary("Exp", "result")
def exp(input: Array) -> Array:
    """e raised to each element."""
    return _exp(input)


@jax.custom_jvp
def _exp(x: Array) -> Array:
    return rounded(_branches.exp, x)


@_exp.defjvp
def _exp_jvp(primals: Any, tangents: Any) -> Any:
    # By the result, which is infinite where a wider one is not yet.
    (x,), (dx,) = primals, tangents
    result = _exp(x)
    return result, dx * result


@_unary("Exp2", "result", namespaces=_SPECIAL)
def exp2(input: Array) -> Array:
    """2 raised to each element."""
    if is_complex(input):
        scale = np.log(2).astype(input.real.dtype)
        return _branches.exp(lax.complex(input.real * scale, input.imag * scale))
    return _exp2(input)


def _power_of_two(n: Array, dtype: Any) -> Array:
    """2 ** n for an integer n within the range of normal numbers, from its bits."""
    info = jnp.finfo(dtype)
    bits = (n - info.minexp + 1) << info.nmant
    return jax.lax.bitcast_convert_type(bits, dtype)


@jax.custom_jvp
def _exp2(x: Array) -> Array:
    # XLA takes exp(x * log(2)), which loses digits where x is large.
    info = jnp.finfo(x.dtype)
    bound = np.asarray(2 * info.maxexp, x.dtype)
    clipped = jnp.where(jnp.isnan(x), 0, jnp.clip(x, -bound, bound))
    whole = jnp.round(clipped)
    part = jnp.exp((clipped - whole) * np.asarray(np.log(2), x.dtype))
    n = whole.astype(jnp.int32 if info.bits == 32 else jnp.int64)
    half = n >> 1
    last = info.maxexp - 1
    scale = _power_of_two(jnp.clip(half, 1 - last, last), x.dtype)
    rest = _power_of_two(jnp.clip(n - half, 1 - last, last), x.dtype)
    return jnp.where(jnp.isnan(x), x, part * scale * rest)


@_exp2.defjvp
def _exp2_jvp(primals: Any, tangents: Any) -> Any:
    # By the result; the bits have no derivative.
    (x,), (dx,) = primals, tangents
    result = _exp2(x)
    return result, dx * (result * np.asarray(np.log(2), x.dtype))


@_unary("Expm1", "result", namespaces=_SPECIAL)
def expm1(input: Array) -> Array:
    """`exp(input) - 1`, exact near zero."""
    return _expm1(input)


@jax.custom_jvp
def _expm1(x: Array) -> Array:
    return rounded(jnp.expm1, x)


@_expm1.defjvp
def _expm1_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    result = _expm1(x)
    return result, dx * (result + 1)


@_unary("Log", "input")
def log(input: Array) -> Array:
    """The natural logarithm."""
    return _branches.log(input)


@_unary("Log2", "input")
def log2(input: Array) -> Array:
    """The logarithm to base 2."""
    return rounded(jnp.log2, input)


@_unary("Log10", "input")
def log10(input: Array) -> Array:
    """The logarithm to base 10."""
    return rounded(jnp.log10, input)


@_unary("Log1P", "input", namespaces=_SPECIAL)
def log1p(input: Array) -> Array:
    """`log(1 + input)`, exact near zero."""
    return rounded(jnp.log1p, input)


def _logaddexp(a: Array, b: Array, base: float) -> Array:
    high, low = jnp.maximum(a, b), jnp.minimum(a, b)
    scale = np.asarray(np.log(base), a.dtype)
    same = jnp.isinf(a) & (a == b)
    gap = jnp.where(same, 0, low - high)
    return jnp.where(same, a, high + jnp.log1p(jnp.exp(gap * scale)) / scale)


def _complex_logaddexp(a: Array, b: Array) -> Array:
    """Imaginary parts are near that of the larger operand, also beyond pi."""
    first = a.real < b.real
    low, high = jnp.where(first, a, b), jnp.where(first, b, a)
    infinite = (low.real == high.real) & ~jnp.isfinite(low.real)
    gap = jnp.where(infinite, 0, low - high)
    both = jnp.where(low.real < 0, low, jnp.log(jnp.exp(low) + jnp.exp(high)))
    found = jnp.where(infinite, both, high + jnp.log1p(jnp.exp(gap)))
    nan = np.asarray(complex(np.nan, np.nan), a.dtype)
    return jnp.where(jnp.isnan(a) | jnp.isnan(b), nan, found)


def _log_sum(base: float) -> Any:
    @jax.custom_jvp
    def value(a: Array, b: Array) -> Array:
        return _complex_logaddexp(a, b) if is_complex(a) else _logaddexp(a, b, base)

    def jvp(primals: Any, tangents: Any) -> Any:
        # JAX's is finite at equal infinities; PyTorch's is NaN there.
        (a, b), (da, db) = primals, tangents
        scale = np.asarray(np.log(base), a.dtype)
        to_a = 1 / (1 + jnp.exp((b - a) * scale))
        to_b = 1 / (1 + jnp.exp((a - b) * scale))
        return value(a, b), da * to_a + db * to_b

    value.defjvp(jvp)
    return value


_logaddexp_e, _logaddexp_2 = _log_sum(float(np.e)), _log_sum(2.0)


@op(promote=DEFAULT, grad_fn="LogaddexpBackward0", saves=("input", "other"))
def logaddexp(input: Array, other: Array) -> Array:
    """`log(exp(input) + exp(other))` without overflow."""
    refuse("logaddexp_cpu", input, BOOL + INT)
    return _logaddexp_e(input, other)


@op(promote=DEFAULT, grad_fn="Logaddexp2Backward0", saves=("input", "other"))
def logaddexp2(input: Array, other: Array) -> Array:
    """`log2(2 ** input + 2 ** other)` without overflow."""
    refuse("logaddexp2_cpu", input, BOOL + INT + COMPLEX)
    return _logaddexp_2(input, other)


def node_by_numbers(name: str) -> Any:
    """A node name whose number tells which operand is a number: none, first, second."""

    def node(input: Any, other: Any) -> str:
        if not is_tensor(input):
            return f"{name}Backward1"
        return f"{name}Backward{0 if is_tensor(other) else 2}"

    return node


@jax.custom_jvp
def _xlogy(x: Array, y: Array) -> Array:
    return jnp.where(jnp.isnan(y), y, jnp.where(x == 0, 0, x * jnp.log(y)))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch: no gradient to x where x is 0 and the logarithm has no finite value.
    (x, y), (dx, dy) = primals, tangents
    to_x = jnp.where((x == 0) & (y <= 0), 0, jnp.log(y))
    return _xlogy(x, y), dx * to_x + dy * (x / y)


@op(
    promote=INT_TO_FLOAT,
    grad_fn=node_by_numbers("Xlogy"),
    saves=("input", "other"),
    inplace=True,
    namespaces=_SPECIAL,
    typecheck=needs_tensor("xlogy"),
)
def xlogy(input: Operand, other: Operand) -> Array:
    """`input * log(other)`, which is 0 where `input` is."""
    refuse("xlogy_cpu", input, COMPLEX)
    return _xlogy(input, other)


@_unary("Sigmoid", "result")
def sigmoid(input: Array) -> Array:
    """`1 / (1 + exp(-input))`."""
    return jax.lax.logistic(input)


@jax.custom_jvp
def _logit(x: Array) -> Array:
    return jnp.log(x / (1 - x))


@_logit.defjvp
def _logit_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch: NaN outside of [0, 1].
    (x,), (dx,) = primals, tangents
    outside = (x < 0) | (x > 1)
    return _logit(x), dx * jnp.where(outside, jnp.nan, 1 / (x * (1 - x)))


@op(
    promote=INT_TO_FLOAT,
    grad_fn="LogitBackward0",
    saves=("input",),
    inplace=True,
    namespaces=_SPECIAL,
    varies={"eps": POSITIVE},
)
def logit(input: Array, eps: float | None = None) -> Array:
    """`log(input / (1 - input))`, of elements moved into [eps, 1 - eps]."""
    refuse("logit_cpu", input, COMPLEX)
    if eps is None or (is_known(eps) and eps < 0):
        return _logit(input)
    low = (np if is_known(eps) else jnp).asarray(eps, input.dtype)
    high = (1 - low).astype(input.dtype)
    return _moved_logit(input, low, high)


@jax.custom_jvp
def _moved_logit(x: Array, low: Any, high: Any) -> Array:
    moved = jnp.where(x < low, low, jnp.where(x > high, high, x))
    return jnp.log(moved / (1 - moved))


@_moved_logit.defjvp
def _moved_logit_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch: 0 where the element was moved.
    x, low, high = primals
    outside = (x < low) | (x > high)
    kept = jnp.where(outside, 0.5, x)
    slope = jnp.where(outside, 0, 1 / (kept * (1 - kept)))
    return _moved_logit(x, low, high), tangents[0] * slope


# Trigonometric functions --------------------------------------------------------------


@_unary("Sin", "input")
def sin(input: Array) -> Array:
    """The sine."""
    return _trigonometric.sin(input)


@_unary("Cos", "input")
def cos(input: Array) -> Array:
    """The cosine."""
    return _trigonometric.cos(input)


@_unary("Tan", "result")
def tan(input: Array) -> Array:
    """The tangent."""
    return rounded(_trigonometric.tan, input)


@_unary("Asin", "input", aliases=("arcsin",))
def asin(input: Array) -> Array:
    """The inverse of the sine."""
    return _branches.arcsin(input)


@_unary("Acos", "input", aliases=("arccos",))
def acos(input: Array) -> Array:
    """The inverse of the cosine."""
    return _branches.arccos(input)


@_unary("Atan", "input", aliases=("arctan",))
def atan(input: Array) -> Array:
    """The inverse of the tangent."""
    return _atan(input)


@jax.custom_jvp
def _atan(x: Array) -> Array:
    if not is_complex(x):
        return _trigonometric.arctan(x)
    real, imag = _beside_nan(x.imag, x.real)
    return _branches.signed(_or_nan(jnp.arctan, x, imag, real), x.real, x.imag)


def _or_nan(fn: Any, x: Array, real: Array, imag: Array) -> Array:
    """A complex function, with these parts where one of `x`'s is NaN."""
    known = jnp.where(jnp.isnan(x.real) | jnp.isnan(x.imag), 0, x)
    return jnp.where(known == x, fn(known), lax.complex(real, imag))


def _beside_nan(x: Array, y: Array) -> tuple[Array, Array]:
    """The parts of `atanh(x + iy)` where one of them is NaN, as C has them."""
    zero = jnp.copysign(0.0, x)
    right = jnp.copysign(jnp.where(jnp.isinf(y), np.pi / 2, jnp.nan), y)
    kept = (x == 0) | jnp.isinf(x) | jnp.isnan(x) & jnp.isinf(y)
    return jnp.where(kept, zero, jnp.nan).astype(x.dtype), right.astype(x.dtype)


@_atan.defjvp
def _atan_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _atan(x), dx / (1 + x * x)


@jax.custom_jvp
def _atan2(y: Array, x: Array) -> Array:
    return _trigonometric.arctan2(y, x)


@_atan2.defjvp
def _atan2_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch: no gradient at the origin, where JAX's is NaN.
    (y, x), (dy, dx) = primals, tangents
    square = y * y + x * x
    inverse = jnp.where(square == 0, 0, 1 / jnp.where(square == 0, 1, square))
    return _atan2(y, x), dy * (x * inverse) - dx * (y * inverse)


@op(
    promote=INT_TO_FLOAT,
    grad_fn="Atan2Backward0",
    saves=("input", "other"),
    inplace=True,
    aliases=("arctan2",),
)
def atan2(input: Array, other: Array) -> Array:
    """The angle of the point (other, input)."""
    refuse("atan2_cpu", input, COMPLEX)
    return _atan2(input, other)


@jax.custom_jvp
def _hypot(a: Array, b: Array) -> Array:
    return rounded(jnp.hypot, a, b)


@_hypot.defjvp
def _hypot_jvp(primals: Any, tangents: Any) -> Any:
    # By the result, as PyTorch has it: NaN at the origin.
    (a, b), (da, db) = primals, tangents
    result = _hypot(a, b)
    return result, da * (a / result) + db * (b / result)


@op(
    promote=DEFAULT,
    grad_fn="HypotBackward0",
    saves={"input": ("input", "result"), "other": ("other", "result")},
    inplace=True,
)
def hypot(input: Array, other: Array) -> Array:
    """The length of (input, other)."""
    refuse("hypot_cpu", input, BOOL + INT + COMPLEX)
    return _hypot(input, other)


@op(
    promote=INT_TO_FLOAT,
    grad_fn="SincBackward0",
    saves=("input",),
    inplace=True,
    namespaces=_SPECIAL,
)
def sinc(input: Array) -> Array:
    """`sin(pi * input) / (pi * input)`, 1 at zero."""
    return _sinc(input)


@jax.custom_jvp
def _sinc(x: Array) -> Array:
    at_zero = x == 0
    angle = np.asarray(np.pi, x.dtype) * jnp.where(at_zero, 1, x)
    return jnp.where(at_zero, 1, _trigonometric.sin(angle) / angle)


@_sinc.defjvp
def _sinc_jvp(primals: Any, tangents: Any) -> Any:
    # No quotient by a square, which is 0 for more numbers than zero.
    (x,), (dx,) = primals, tangents
    result = _sinc(x)
    at_zero = x * x == 0
    cosine = _trigonometric.cos(np.asarray(np.pi, x.dtype) * x)
    slope = (cosine - result) / jnp.where(at_zero, 1, x)
    return result, dx * jnp.where(at_zero, 0, slope)


@_unary("Deg2Rad", "")
def deg2rad(input: Array) -> Array:
    """Degrees in radians."""
    _refuse_complex("deg2rad", input)
    return input * np.asarray(np.pi / 180, input.dtype)


@_unary("Rad2Deg", "")
def rad2deg(input: Array) -> Array:
    """Radians in degrees."""
    _refuse_complex("rad2deg", input)
    return input * np.asarray(180 / np.pi, input.dtype)


def _refuse_complex(name: str, input: Array) -> None:
    if is_complex(input):
        raise RuntimeError(f"{name} is not supported for complex tensors.")


# Hyperbolic functions -----------------------------------------------------------------


def _halved_exp(x: Array) -> Array:
    """exp(x) / 2 for large x, without overflow before the result has one."""
    root = jnp.exp(x / 2)
    return root * 0.5 * root


@jax.custom_jvp
def _sinh(x: Array) -> Array:
    # XLA takes exp(x + log(1/2)), which loses digits where x is large.
    def of(x: Array) -> Array:
        size = jnp.abs(x)
        grown = jnp.expm1(jnp.minimum(size, 40))
        small = (grown + grown / (grown + 1)) / 2
        return jnp.copysign(jnp.where(size > 40, _halved_exp(size), small), x)

    return rounded(of, x)


@_sinh.defjvp
def _sinh_jvp(primals: Any, tangents: Any) -> Any:
    # JAX would differentiate through the branches.
    (x,), (dx,) = primals, tangents
    return _sinh(x), dx * _cosh(x)


@jax.custom_jvp
def _cosh(x: Array) -> Array:
    def of(x: Array) -> Array:
        size = jnp.abs(x)
        grown = jnp.exp(jnp.minimum(size, 40))
        return jnp.where(size > 40, _halved_exp(size), (grown + 1 / grown) / 2)

    return rounded(of, x)


@_cosh.defjvp
def _cosh_jvp(primals: Any, tangents: Any) -> Any:
    # As for the sine.
    (x,), (dx,) = primals, tangents
    return _cosh(x), dx * _sinh(x)


@_unary("Sinh", "input")
def sinh(input: Array) -> Array:
    """The hyperbolic sine."""
    return jnp.sinh(input) if is_complex(input) else _sinh(input)


@_unary("Cosh", "input")
def cosh(input: Array) -> Array:
    """The hyperbolic cosine."""
    return jnp.cosh(input) if is_complex(input) else _cosh(input)


@jax.custom_jvp
def _tanh(x: Array) -> Array:
    return rounded(jnp.tanh, x)


@_tanh.defjvp
def _tanh_jvp(primals: Any, tangents: Any) -> Any:
    # Of the rounded result, as PyTorch's: zero where that is 1.
    (x,), (dx,) = primals, tangents
    y = _tanh(x)
    return y, dx * (1 - y * y)


@_unary("Tanh", "result")
def tanh(input: Array) -> Array:
    """The hyperbolic tangent."""
    return _tanh(input)


@_unary("Asinh", "input", aliases=("arcsinh",), inplace=_without("asinh"))
def asinh(input: Array) -> Array:
    """The inverse of the hyperbolic sine."""
    return rounded(_branches.arcsinh, input)


@jax.custom_jvp
def _acosh(x: Array) -> Array:
    return rounded(_branches.arccosh, x)


@_acosh.defjvp
def _acosh_jvp(primals: Any, tangents: Any) -> Any:
    # JAX's has the wrong sign left of the imaginary axis.
    (x,), (dx,) = primals, tangents
    if is_complex(x):
        return _acosh(x), dx / (jnp.sqrt(x - 1) * jnp.sqrt(x + 1))
    return _acosh(x), dx / jnp.sqrt(x * x - 1)


@_unary("Acosh", "input", aliases=("arccosh",), inplace=_without("acosh"))
def acosh(input: Array) -> Array:
    """The inverse of the hyperbolic cosine."""
    return _acosh(input)


@_unary("Atanh", "input", aliases=("arctanh",), inplace=_without("atanh"))
def atanh(input: Array) -> Array:
    """The inverse of the hyperbolic tangent."""
    return _atanh(input)


@jax.custom_jvp
def _atanh(x: Array) -> Array:
    if not is_complex(x):
        return rounded(jnp.arctanh, x)
    found = _or_nan(jnp.arctanh, x, *_beside_nan(x.real, x.imag))
    return _branches.signed(found, x.real, x.imag)


@_atanh.defjvp
def _atanh_jvp(primals: Any, tangents: Any) -> Any:
    # As PyTorch has it: at the poles JAX's second derivative is NaN.
    (x,), (dx,) = primals, tangents
    return _atanh(x), dx / (1 - x * x)
