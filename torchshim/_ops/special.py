"""Error functions, gamma functions and Bessel functions."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.dtypes import bool_
from torchshim._core.op import Array, Operand, op
from torchshim._core.promotion import DEFAULT, INT_TO_FLOAT
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    INT,
    no_half_result,
    real_only,
    refuse,
    rounded,
    wants_grad,
)
from torchshim._ops.transcendental import node_by_numbers

_SPECIAL = ("torch", "special")


def _unary(name: str, kernel: str, *saves: str, **fields: Any) -> Any:
    """An operator of one real operand; `kernel` is named where it is complex."""

    def declare(fn: Any) -> Any:
        options = {"grad_fn": f"{name}Backward0", "inplace": True, **fields}
        op(promote=INT_TO_FLOAT, saves=saves, **options)(real_only(fn, kernel))
        return fn

    return declare


_only_special = {"namespaces": ("special",), "method": False, "inplace": False}

# Error functions ----------------------------------------------------------------------


@_unary("Erf", "erf_vml_cpu", "input", namespaces=_SPECIAL)
def erf(input: Array) -> Array:
    """The error function."""
    return rounded(lax.erf, input)


@_unary("Erfc", "erfc_vml_cpu", "input", namespaces=_SPECIAL)
def erfc(input: Array) -> Array:
    """One minus the error function."""
    return rounded(lax.erfc, input)


@jax.custom_jvp
def _erfinv(x: Array) -> Array:
    return rounded(lax.erf_inv, x)


@_erfinv.defjvp
def _erfinv_jvp(primals: Any, tangents: Any) -> Any:
    # By the result, as PyTorch has it.
    (x,), (dx,) = primals, tangents
    result = _erfinv(x)
    half = np.asarray(np.sqrt(np.pi) / 2, x.dtype)
    return result, dx * (half * jnp.exp(result * result))


@_unary("Erfinv", "erfinv_vml_cpu", "input", namespaces=_SPECIAL)
def erfinv(input: Array) -> Array:
    """The inverse of the error function."""
    return _erfinv(input)


# (1 + 2x) erfcx(x) for x >= 0: Chebyshev coefficients over (x - 4) / (x + 4).
_ERFCX = (
    1.1774832005374487,
    -0.007260796620301901,
    -0.081265123236185,
    0.06009212804122225,
    -0.02875393558027666,
    0.01059566336347286,
    -0.003136927294554264,
    0.0007456494372536184,
    -0.0001369696503010054,
    1.7183861600300937e-05,
    -7.158364623450346e-07,
    -2.4261399442449534e-07,
    5.5765709395703566e-08,
    -2.1057869513809494e-09,
    -1.1717889351884957e-09,
    1.9098355172456688e-10,
    1.408871764208813e-11,
    -6.901108320480815e-12,
    9.167958364111294e-14,
    2.1454508286554553e-13,
    -1.4716575027010623e-14,
    -6.668675118770408e-15,
    7.504598509880083e-16,
    2.22009300666632e-16,
)


@_unary(
    "SpecialErfcx",
    "erfcx_cpu",
    "input",
    "result",
    typecheck=no_half_result("erfcx_cpu"),
    **_only_special,
)
def erfcx(input: Array) -> Array:
    """`exp(input ** 2) * erfc(input)`."""
    return _erfcx(input)


@jax.custom_jvp
def _erfcx(x: Array) -> Array:
    size = jnp.abs(x)
    t = 1 - 8 / (size + 4)
    first = second = jnp.zeros_like(t)
    for coefficient in reversed(_ERFCX[1:]):  # Clenshaw's summation
        first, second = 2 * t * first - second + coefficient, first
    value = (t * first - second + _ERFCX[0]) / (1 + 2 * size)
    return jnp.where(x < 0, 2 * jnp.exp(x * x) - value, value)


@_erfcx.defjvp
def _erfcx_jvp(primals: Any, tangents: Any) -> Any:
    # By the result, as PyTorch has it.
    (x,), (dx,) = primals, tangents
    result = _erfcx(x)
    return result, dx * (2 * x * result - np.asarray(2 / np.sqrt(np.pi), x.dtype))


@_unary("Mul", "erf_vml_cpu", "intermediate", grad_fn="MulBackward1", **_only_special)
def ndtr(input: Array) -> Array:
    """The share of a standard normal distribution below each element."""
    return lax.erfc(-input * np.asarray(np.sqrt(0.5), input.dtype)) * 0.5


@_unary(
    "SpecialNdtri",
    "ndtri_cpu",
    "result",
    typecheck=no_half_result("ndtri_cpu"),
    **_only_special,
)
def ndtri(input: Array) -> Array:
    """The inverse of `ndtr`."""
    return _ndtri(input)


@jax.custom_jvp
def _ndtri(p: Array) -> Array:
    from jax.scipy.special import ndtri  # only where it is used: imports are slow

    return ndtri(p)


@_ndtri.defjvp
def _ndtri_jvp(primals: Any, tangents: Any) -> Any:
    # By the result, as PyTorch has it.
    (p,), (dp,) = primals, tangents
    result = _ndtri(p)
    root = np.asarray(np.sqrt(2 * np.pi), p.dtype)
    return result, dp * (root * jnp.exp(result * result / 2))


@_unary(
    "SpecialLogNdtr",
    "log_ndtr_cpu",
    "input",
    "result",
    typecheck=no_half_result("log_ndtr_cpu"),
    **_only_special,
)
def log_ndtr(input: Array) -> Array:
    """The logarithm of `ndtr`."""
    from jax.scipy.special import log_ndtr as compute

    return rounded(compute, input)


@_unary("SpecialEntr", "entr_cpu", "input", **_only_special)
def entr(input: Array) -> Array:
    """`-input * log(input)`: 0 at zero, -inf below."""
    return _entr(input)


@jax.custom_jvp
def _entr(x: Array) -> Array:
    value = -x * jnp.log(x)
    value = jnp.where(x < 0, -jnp.inf, jnp.where(x == 0, 0, value))
    return jnp.where(jnp.isnan(x), x, value)


@_entr.defjvp
def _entr_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch's at the ends: inf at 0, NaN below.
    (x,), (dx,) = primals, tangents
    return _entr(x), dx * (-jnp.log(x) - 1)


@op(
    promote=INT_TO_FLOAT,
    grad_fn=node_by_numbers("SpecialXlog1Py"),
    saves=("input", "other"),
    namespaces=("special",),
    method=False,
)
def xlog1py(input: Operand, other: Operand) -> Array:
    """`input * log1p(other)`, which is 0 where `input` is."""
    refuse("xlog1py_cpu", input, COMPLEX)
    return _xlog1py(input, other)


@jax.custom_jvp
def _xlog1py(x: Array, y: Array) -> Array:
    return jnp.where(jnp.isnan(y), y, jnp.where(x == 0, 0, x * jnp.log1p(y)))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    # As for xlogy.
    (x, y), (dx, dy) = primals, tangents
    to_x = jnp.where((x == 0) & (y <= -1), 0, jnp.log1p(y))
    return _xlog1py(x, y), dx * to_x + dy * (x / (y + 1))


# Gamma functions ----------------------------------------------------------------------


@_unary("Lgamma", "lgamma_vml_cpu", "input")
def lgamma(input: Array) -> Array:
    """The logarithm of the gamma function's absolute value."""
    return _lgamma(input)


@jax.custom_jvp
def _lgamma(x: Array) -> Array:
    # XLA's is not quite 0 there.
    return jnp.where((x == 1) | (x == 2), 0, rounded(lax.lgamma, x))


@_lgamma.defjvp
def _lgamma_jvp(primals: Any, tangents: Any) -> Any:
    # With PyTorch's digamma at the poles.
    (x,), (dx,) = primals, tangents
    return _lgamma(x), dx * _digamma(x)


@_unary("Digamma", "digamma", "input", namespaces=_SPECIAL)
def digamma(input: Array) -> Array:
    """The derivative of `lgamma`."""
    return _digamma(input)


@jax.custom_jvp
def _digamma(x: Array) -> Array:
    # By the reflection below zero, of the distance to the nearest pole: XLA's own loses
    # all digits there, and has NaN at zero for PyTorch's infinity.
    low = x < 0
    pi = np.asarray(np.pi, x.dtype)
    value = rounded(lax.digamma, jnp.where(low, 1 - x, x))
    reflected = value - pi / jnp.tan(pi * (x - jnp.round(x)))
    reflected = jnp.where(x == jnp.floor(x), jnp.nan, reflected)
    value = jnp.where(low, reflected, value)
    return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), value)


@_digamma.defjvp
def _digamma_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _digamma(x), dx * _polygamma_of(1)(x)


def _trigamma(x: Array) -> Array:
    # By the reflection that PyTorch uses below 1/2: a large number at the poles.
    low = x < 0.5
    safe = jnp.where(low, 1 - x, x)
    value = rounded(lambda x: lax.polygamma(jnp.ones((), x.dtype), x), safe)
    pi = np.asarray(np.pi, x.dtype)
    offset = x - jnp.round(x)
    sine = jnp.sin(pi * jnp.where(offset == 0, x, offset))
    reflected = np.asarray(np.pi**2, x.dtype) / (sine * sine) - value
    value = jnp.where(x > 1 / np.finfo(x.dtype).eps, 1 / x, value)
    return jnp.where(low, reflected, value)


def _polygamma(n: int, x: Array) -> Array:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return _digamma(x)
    if n == 1:
        return _trigamma(x)
    # n! zeta(n + 1, x), with alternating signs.
    factorial = math.exp(math.lgamma(n + 1)) if n < 171 else math.inf
    order = jnp.full_like(x, n + 1)
    with np.errstate(over="ignore"):
        factor = np.asarray(factorial if n % 2 else -factorial, x.dtype)
    return _zeta(order, x) * factor


@op(
    promote=INT_TO_FLOAT,
    grad_fn="PolygammaBackward0",
    saves=("input",),
    namespaces=_SPECIAL,
    overload=True,
)
def polygamma(n: int, input: Array) -> Array:
    """The n-th derivative of `digamma`."""
    refuse({0: "digamma", 1: "trigamma"}.get(n, "polygamma"), input, COMPLEX)
    return _polygamma_of(n)(input)


@op(
    name="polygamma.method",
    public="polygamma",
    promote=INT_TO_FLOAT,
    grad_fn="PolygammaBackward0",
    saves=("input",),
    namespaces=(),
    inplace={"grad_fn": "PolygammaBackward1"},
    overload=True,
)
def polygamma_method(input: Array, n: int) -> Array:
    """The n-th derivative of `digamma`."""
    return polygamma(n, input)


def _polygamma_of(n: int) -> Any:
    # Each derivative is the next polygamma; XLA's zeta has none by its argument.
    value = jax.custom_jvp(lambda x: _polygamma(n, x))

    def jvp(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        return value(x), dx * _polygamma_of(n + 1)(x)

    value.defjvp(jvp)
    return value


def _check_multigamma(input: Any, p: int) -> None:
    if input.dtype is bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype.is_complex:
        name = input.dtype.scalar_name
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{name}'")


# It shows the operand's dtype, whatever is written to.
_UNCASTABLE_GAMMA = (
    "mvlgamma: result type {} can't be cast to the desired output type "
    "{{want.scalar_name}}"
)


@op(
    promote=INT_TO_FLOAT,
    grad_fn="MvlgammaBackward0",
    saves=("input",),
    inplace={"castable": _UNCASTABLE_GAMMA.format("{have.scalar_name}")},
    typecheck=_check_multigamma,
    layout=lambda shape, operands: None,
    whole=("input",),
    castable=lambda input, p: _UNCASTABLE_GAMMA.format(input.dtype.scalar_name),
)
def mvlgamma(input: Array, p: int) -> Array:
    """The logarithm of the multivariate gamma function of dimension p."""
    total = _lgamma(input)
    for shift in np.arange(1, p) / 2:
        total = total + _lgamma(input - np.asarray(shift, input.dtype))
    constant = p * (p - 1) / 4 * np.log(np.pi)
    return total + np.asarray(constant, input.dtype)


def _incomplete(name: str, fn: Any, sign: float) -> Any:
    """An incomplete gamma function: PyTorch differentiates by the second operand."""
    value = jax.custom_jvp(fn)

    def jvp(primals: Any, tangents: Any) -> Any:
        (a, x), (da, dx) = primals, tangents
        if not isinstance(da, jax.custom_derivatives.SymbolicZero):
            raise NotImplementedError(
                f"the derivative for '{name}: input' is not implemented."
            )
        if isinstance(dx, jax.custom_derivatives.SymbolicZero):
            return value(a, x), jnp.zeros_like(x)
        slope = jnp.exp((a - 1) * jnp.log(x) - x - _lgamma(a))
        return value(a, x), dx * (sign * slope)

    value.defjvp(jvp, symbolic_zeros=True)
    return value


def _gamma_part_of_large(a: Array, x: Array, below: int) -> Array:
    """Temme's uniform expansion of the incomplete gamma functions, its first terms."""
    part = x / a - 1
    root = jnp.sign(part) * jnp.sqrt(2 * jnp.maximum(part - jnp.log1p(part), 0))
    near = jnp.abs(part) < 1e-4
    safe, slope = jnp.where(near, 1, part), jnp.where(near, 1, root)
    term = jnp.where(near, part / 12 - 1 / 3, 1 / safe - 1 / slope)
    rest = term * jnp.exp(-a * root**2 / 2) / jnp.sqrt(2 * np.pi * a)
    sign = -1 if below else 1
    return lax.erfc(sign * root * jnp.sqrt(a / 2)) / 2 + sign * rest


def _gamma_part(fn: Any, all_below: int) -> Any:
    """An incomplete gamma function with PyTorch's limits: `all_below` where a = 0."""

    def value(a: Array, x: Array) -> Array:
        wide = jnp.promote_types(a.dtype, jnp.float64)  # XLA's series is not PyTorch's
        kind, a, x = a.dtype, a.astype(wide), x.astype(wide)
        large = a > 1e6  # where XLA's series may take for ever
        found = fn(jnp.where(large, 1, a), jnp.where(large, 1, x))
        found = jnp.where(large, _gamma_part_of_large(a, x, all_below), found)
        found = found.astype(kind)
        # In PyTorch's order, which decides where the other operand is NaN.
        none_below, nan = 1 - all_below, jnp.nan
        found = jnp.where(x == jnp.inf, all_below, found)
        found = jnp.where(a == jnp.inf, jnp.where(x == a, nan, none_below), found)
        found = jnp.where(x == 0, none_below, found)
        found = jnp.where(a == 0, jnp.where(x > 0, all_below, nan), found)
        return jnp.where((a < 0) | (x < 0), nan, found)

    return value


_igamma = _incomplete("igamma", _gamma_part(lax.igamma, 1), 1.0)
_igammac = _incomplete("igammac", _gamma_part(lax.igammac, 0), -1.0)


@op(
    promote=DEFAULT,
    grad_fn="IgammaBackward0",
    saves=("input", "other"),
    inplace=True,
)
def igamma(input: Array, other: Array) -> Array:
    """The regularised lower incomplete gamma function."""
    refuse("igamma_cpu", input, BOOL + INT + COMPLEX)
    return _igamma(*jnp.broadcast_arrays(input, other))


@op(
    promote=DEFAULT,
    grad_fn="IgammacBackward0",
    saves=("input", "other"),
    inplace=True,
)
def igammac(input: Array, other: Array) -> Array:
    """The regularised upper incomplete gamma function."""
    refuse("igammac_cpu", input, BOOL + INT + COMPLEX)
    return _igammac(*jnp.broadcast_arrays(input, other))


def _check_zeta(input: Any, other: Any) -> None:
    if wants_grad(input):
        raise NotImplementedError("the derivative for 'zeta' is not implemented.")
    _check_zeta_dtype(input, other)


_check_zeta_dtype = no_half_result("zeta_cpu")


@op(
    promote=INT_TO_FLOAT,
    grad_fn=node_by_numbers("SpecialZeta"),
    saves=("input", "other"),
    namespaces=("special",),
    method=False,
    differentiable=("other",),
    typecheck=_check_zeta,
)
def zeta(input: Operand, other: Operand) -> Array:
    """The Hurwitz zeta function."""
    refuse("zeta_cpu", input, COMPLEX)
    return _zeta(*jnp.broadcast_arrays(input, other))


@jax.custom_jvp
def _zeta(x: Array, q: Array) -> Array:
    kind, x, q = x.dtype, x.astype(jnp.float64), q.astype(jnp.float64)
    # Below 0 the sum of (q + k) ** -x has finitely many negative terms: a difference
    # of two sums of positive ones, by the sign of whole powers.
    low = (q < 0) & jnp.isfinite(q)
    part = jnp.where(low, jnp.ceil(q) - q, 0.5)
    odd = jnp.where(x % 2 == 1, -1.0, 1.0)
    below = _positive_zeta(x, 1 - part) + odd * _positive_zeta(x, part)
    below -= odd * _positive_zeta(x, jnp.where(low, 1 - q, 1))
    below = jnp.where(x == jnp.floor(x), below, jnp.nan)
    above = jnp.where(low, 1, q)
    # Where PyTorch's sum is 0 its correction is NaN: a product overflows.
    lost = (x > 2.5e13) & (above > 1) & jnp.isfinite(x) & (above**-x == 0)
    value = jnp.where(lost & (q < jnp.inf), jnp.nan, _positive_zeta(x, above))
    value = jnp.where(low, below, value)
    # What PyTorch has at the poles and at the ends.
    pole = (q <= 0) & (q == jnp.floor(q)) & ~(x < 1) | (x == 1)
    limit = (x == jnp.inf) & (q <= 1)
    value = jnp.where(pole | limit & (q < 1), jnp.inf, jnp.where(limit, 1, value))
    return jnp.where(x < 1, jnp.nan, value).astype(kind)


def _positive_zeta(x: Array, q: Array) -> Array:
    """XLA's, which is for q above 0, with what it makes NaN or loses."""
    value = lax.zeta(x, q)
    # XLA's underflows before this does.
    far = (q > 8 / np.finfo(x.dtype).eps) & (q < jnp.inf)
    value = jnp.where(far, jnp.where(far, q, 1) ** (1 - x) / (x - 1), value)
    # Of so high an order the first term is all there is, and where it is infinite.
    first = jnp.where(q > 0, q, 1) ** -x
    steep = (x > 1000) & (x < jnp.inf) & (q > 0) & (q < jnp.inf)
    return jnp.where(steep | jnp.isinf(first), first, value)


@_zeta.defjvp
def _zeta_jvp(primals: Any, tangents: Any) -> Any:
    # JAX refuses by the second argument in some versions; this is the textbook's.
    (x, q), (_, dq) = primals, tangents
    return _zeta(x, q), dq * (-x * _zeta(x + 1, q))


# Bessel functions ---------------------------------------------------------------------


@jax.custom_jvp
def _i0(x: Array) -> Array:
    return jnp.exp(jnp.abs(x)) * lax.bessel_i0e(x)


@_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> Any:
    # The derivative of the product loses digits to cancellation.
    (x,), (dx,) = primals, tangents
    return _i0(x), dx * _i1(x)


@jax.custom_jvp
def _i1(x: Array) -> Array:
    return jnp.exp(jnp.abs(x)) * lax.bessel_i1e(x)


@_i1.defjvp
def _i1_jvp(primals: Any, tangents: Any) -> Any:
    # 1/2 at zero, where the quotient has no value.
    (x,), (dx,) = primals, tangents
    large = jnp.abs(x) > jnp.finfo(x.dtype).eps
    slope = _i0(x) - _i1(x) / jnp.where(large, x, 1)
    return _i1(x), dx * jnp.where(large, slope, 0.5)


@jax.custom_jvp
def _i1e(x: Array) -> Array:
    return lax.bessel_i1e(x)


@_i1e.defjvp
def _i1e_jvp(primals: Any, tangents: Any) -> Any:
    # As for i1.
    (x,), (dx,) = primals, tangents
    result = _i1e(x)
    large = jnp.abs(x) > jnp.finfo(x.dtype).eps
    slope = lax.bessel_i0e(x) - result * (jnp.sign(x) + 1 / jnp.where(large, x, 1))
    return result, dx * jnp.where(large, slope, 0.5)


@_unary("I0", "i0_vml_cpu", "input", namespaces=_SPECIAL)
def i0(input: Array) -> Array:
    """The modified Bessel function of order 0."""
    return _i0(input)


@_unary("SpecialI0E", "i0e_cpu", "input", "result", **_only_special)
def i0e(input: Array) -> Array:
    """`exp(-abs(input)) * i0(input)`."""
    return lax.bessel_i0e(input)


@_unary("SpecialI1", "i1_cpu", "input", "result", **_only_special)
def i1(input: Array) -> Array:
    """The modified Bessel function of order 1."""
    return _i1(input)


@_unary("SpecialI1E", "i1e_cpu", "input", "result", **_only_special)
def i1e(input: Array) -> Array:
    """`exp(-abs(input)) * i1(input)`."""
    return _i1e(input)
