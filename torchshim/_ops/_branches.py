"""Roots and inverse functions of complex numbers, on the branch that C takes.

On a cut the sign of a zero says which side is meant; XLA takes one side for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.op import Array
from torchshim._ops import _trigonometric
from torchshim._ops._common import is_complex, quotient


def _branched(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes what corrects the complex results of a function of JAX's a function.

    Of real numbers it is that function, and its derivative is that one's.
    """

    def decorate(corrected: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
        @jax.custom_jvp
        def of_complex(x: Array) -> Array:
            return corrected(x, plain(x))

        @of_complex.defjvp
        def _derivative(primals: Any, tangents: Any) -> Any:
            return of_complex(*primals), jax.jvp(plain, primals, tangents)[1]

        return lambda x: of_complex(x) if is_complex(x) else plain(x)

    return decorate


def signed(value: Array, real: Array, imag: Array) -> Array:
    """Complex numbers whose parts have the signs of others."""
    return lax.complex(jnp.copysign(value.real, real), jnp.copysign(value.imag, imag))


@_branched(jnp.sqrt)
def sqrt(x: Array, root: Array) -> Array:
    """The root with the sign of the imaginary part; infinite where a part is."""
    high, low = (x.real == jnp.inf), (x.real == -jnp.inf)
    infinite, unknown = jnp.isinf(x.imag), jnp.isnan(x.imag)
    real = jnp.where(infinite | high & unknown, jnp.inf, root.real)
    imag = jnp.where(infinite | low & unknown, jnp.inf, root.imag)
    return lax.complex(real, jnp.copysign(imag, x.imag))


def reciprocal_root(x: Array) -> Array:
    """The reciprocal of the root; it has no value where that has no finite part."""
    root = sqrt(x)
    found = quotient(1, root)
    if not is_complex(x):
        return found
    endless = ~jnp.isfinite(root.real) & ~jnp.isfinite(root.imag)
    return jnp.where(endless, lax.complex(jnp.nan, jnp.nan).astype(x.dtype), found)


@_branched(_trigonometric.arcsin)
def arcsin(x: Array, angle: Array) -> Array:
    """The inverse sine, odd in both parts."""
    return signed(angle, x.real, x.imag)


@_branched(_trigonometric.arccos)
def arccos(x: Array, angle: Array) -> Array:
    """The inverse cosine, from 0 to pi."""
    return lax.complex(angle.real, jnp.copysign(angle.imag, -x.imag))


@_branched(jnp.arcsinh)
def arcsinh(x: Array, value: Array) -> Array:
    """The inverse hyperbolic sine, odd in both parts."""
    return signed(value, x.real, x.imag)


@_branched(jnp.arccosh)
def arccosh(x: Array, value: Array) -> Array:
    """The inverse hyperbolic cosine, with the sign of the imaginary part."""
    return lax.complex(value.real, jnp.copysign(value.imag, x.imag))


@_branched(jnp.exp)
def exp(x: Array, value: Array) -> Array:
    """The exponential, also where a part is infinite."""
    endless = ~jnp.isfinite(x.imag)
    none, all_of_it = endless & (x.real == -jnp.inf), endless & (x.real == jnp.inf)
    real = jnp.where(none, 0, jnp.where(all_of_it, jnp.inf, value.real))
    imag = jnp.where(x.imag == 0, x.imag, jnp.where(none, 0, value.imag))
    return lax.complex(real, imag)


@_branched(jnp.log)
def log(x: Array, value: Array) -> Array:
    """The logarithm, infinite where a part is."""
    infinite = jnp.isinf(x.real) | jnp.isinf(x.imag)
    return lax.complex(jnp.where(infinite, jnp.inf, value.real), value.imag)
