"""Trigonometric functions of float32 and 16-bit numbers, for XLA on the CPU in vectors.

XLA calls the C library there, element by element: 5 to 30 ns each. These compute in
double, and round once: at most 0.505 units in the last place off, in 0.5 to 1 ns.
They are primitives of JAX by the names of its own, so that what knows those (NumPy's
rules, derivatives) need not know these. Elsewhere they are JAX's.

Angles are reduced by Cody's and Waite's method, with pi in three parts (W. J. Cody and
W. Waite, Software Manual for the Elementary Functions, 1980). Coefficients interpolate
at Chebyshev's points.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import ad, batching, mlir

from torchshim._core.op import Array

# The class is `jax.extend.core`'s, which takes 20 ms to import.
_Primitive: Any = type(lax.sin_p)

# Where a dtype is another, JAX's functions compute.
_DTYPES = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(jnp.bfloat16))

# Parts of pi, multiples of which are exact in double up to so many half turns.
_PARTS = (3.1415926218032837, 3.1786509424591713e-08, 1.2246467991473532e-16)
_FAR = 2.0**26
# Arrays of up to so many elements are not worth the time to compile it, 30 ms.
_SMALL = 1 << 14
# (sin(x) - x) / x**3 for x**2 up to (pi / 2)**2, (atan(x) - x) / x**3 up to 1.
_SIN = (
    *(-0.16666666663878466, 0.008333332768305049, -0.00019841086452506194),
    *(2.753645532390914e-06, -2.407999973210464e-08),
)
_ATAN = (
    *(-0.33333333293301176, 0.19999990275947271, -0.14285317963907304),
    *(0.1110470678864422, -0.09036742342070782, 0.0741749696430051),
    *(-0.05760716083128117, 0.038327445983064846, -0.019261081322765883),
    *(0.00620725453378005, -0.0009362994719496015),
)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """`x` and its odd powers from the third on."""
    square = x * x
    value: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * square + coefficient
    return x + x * square * value


def _reduced(x: Array, shift: float) -> tuple[Array, Array]:
    """`x` as `k + shift` half turns, k an integer, and a rest of at most a quarter."""
    rest = x.astype(np.float64)
    turns = jnp.round(rest * (1 / np.pi) - shift) + shift
    for part in _PARTS:
        rest = rest - turns * part
    return turns - shift, rest


def _alternating(k: Array) -> Array:
    """(-1)**k for integers held as doubles."""
    half = 0.5 * k
    return 1 - 4 * (half - jnp.floor(half))


def _or_itself(x: Array, value: Array) -> Array:
    """Functions like x at 0 are x so near to it: -0, and what XLA takes for zero."""
    return jnp.where(jnp.abs(x) < np.asarray(2.0**-12, x.dtype), x, value)


def _sin(x: Array) -> Array:
    k, rest = _reduced(x, 0.0)
    value = _polynomial(_SIN, rest) * _alternating(k)
    return _or_itself(x, value.astype(x.dtype))


def _cos(x: Array) -> Array:
    k, rest = _reduced(x, 0.5)
    return (-_polynomial(_SIN, rest) * _alternating(k)).astype(x.dtype)


def _tan(x: Array) -> Array:
    _, rest = _reduced(x, 0.0)
    other = jnp.asarray(0.5 * _PARTS[0]) - jnp.abs(rest)
    other = other + 0.5 * _PARTS[1] + 0.5 * _PARTS[2]
    value = _polynomial(_SIN, rest) / _polynomial(_SIN, other)
    return _or_itself(x, value.astype(x.dtype))


def _angle(y: Array, x: Array) -> Array:
    """The angle of points whose parts are doubles."""
    across, along = jnp.abs(y), jnp.abs(x)
    high, low = jnp.maximum(across, along), jnp.minimum(across, along)
    slope = jnp.where(low == high, (high > 0).astype(np.float64), low / high)
    angle = _polynomial(_ATAN, slope)
    angle = jnp.where(across > along, np.pi / 2 - angle, angle)
    angle = jnp.where(jnp.signbit(x), np.pi - angle, angle)
    return jnp.copysign(angle, y)


def _beside(x: Array) -> Array:
    return jnp.sqrt((1 - x) * (1 + x))


def _asin(x: Array) -> Array:
    wide = x.astype(np.float64)
    return _or_itself(x, _angle(wide, _beside(wide)).astype(x.dtype))


def _acos(x: Array) -> Array:
    wide = x.astype(np.float64)
    return _angle(_beside(wide), wide).astype(x.dtype)


def _atan(x: Array) -> Array:
    wide = x.astype(np.float64)
    return _or_itself(x, _angle(wide, jnp.ones_like(wide)).astype(x.dtype))


def _atan2(y: Array, x: Array) -> Array:
    return _angle(y.astype(np.float64), x.astype(np.float64)).astype(x.dtype)


def _of_angle(
    near: Callable[[Array], Array], far: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """The C library's function for small arrays, and those with elements far from 0."""

    def compute(x: Array) -> Array:
        if x.size <= _SMALL:
            return far(x)
        distant = jnp.any(jnp.abs(x.astype(np.float32)) >= _FAR)
        return lax.cond(distant, far, near, x)

    return compute


def _primitive(
    name: str, compute: Callable[..., Array], plain: Callable[..., Array], *rules: Any
) -> Callable[..., Array]:
    """A primitive, and the function for all dtypes; `rules` give its derivatives.

    A rule takes a tangent, the result and the operands. Without any there is none.
    """
    primitive = _Primitive(name)
    primitive.def_impl(jax.jit(primitive.bind))
    primitive.def_abstract_eval(lambda *xs: xs[0].update(weak_type=False))
    batching.primitive_batchers[primitive] = functools.partial(_mapped, primitive)
    if rules:
        ad.defjvp2(primitive, *rules)

    def on_cpu(*xs: Array) -> Array:
        with jax.enable_x64(True):
            return compute(*xs)

    for platform, function in (("cpu", on_cpu), (None, plain)):
        lowering = mlir.lower_fun(function, multiple_results=False)
        mlir.register_lowering(primitive, lowering, platform=platform)

    def call(*xs: Array) -> Array:
        if all(x.dtype == xs[0].dtype and x.dtype in _DTYPES for x in xs):
            return primitive.bind(*jnp.broadcast_arrays(*xs))
        return plain(*xs)

    return call


def _mapped(primitive: Any, xs: Any, dims: Any) -> tuple[Array, int]:
    [size, *_] = (x.shape[d] for x, d in zip(xs, dims, strict=True) if d is not None)
    xs = (
        jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(xs, dims, strict=True)
    )
    return primitive.bind(*xs), 0


sin = _primitive("sin", _of_angle(_sin, jnp.sin), jnp.sin, lambda t, _, x: t * cos(x))
cos = _primitive(
    "cos", _of_angle(_cos, jnp.cos), jnp.cos, lambda t, _, x: -(t * sin(x))
)
tan = _primitive(
    "tan", _of_angle(_tan, jnp.tan), jnp.tan, lambda t, y, x: t + t * (y * y)
)
arcsin = _primitive("asin", _asin, jnp.arcsin, lambda t, _, x: t * lax.rsqrt(1 - x * x))
arccos = _primitive(
    "acos", _acos, jnp.arccos, lambda t, _, x: -(t * lax.rsqrt(1 - x * x))
)
# Differentiated by `transcendental`.
arctan = _primitive("atan", _atan, jnp.arctan)
arctan2 = _primitive("atan2", _atan2, jnp.arctan2)
