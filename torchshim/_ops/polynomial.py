"""Orthogonal polynomials, by their recurrences; PyTorch has no derivatives of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.op import Array, Operand, op
from torchshim._core.promotion import INT_TO_FLOAT
from torchshim._ops._common import COMPLEX, no_half_result, refuse

# r(k, x, q, p): the polynomial of degree k, after q and p, those before it.
Recurrence = Callable[[Array, Array, Array, Array], Array]


def _polynomial(fn: Any) -> Any:
    """Declares an operator of real operands without a derivative."""
    kernel = f"{fn.__name__}_cpu"

    def checked(x: Operand, n: Operand) -> Array:
        refuse(kernel, x, COMPLEX)
        # In PyTorch what is no int64 becomes its least one; below 0 there are none.
        n = jnp.where(jnp.abs(n) < 2.0**63, jnp.trunc(n), -1.0)
        return fn(*jnp.broadcast_arrays(x, n))

    checked.__name__, checked.__doc__ = fn.__name__, fn.__doc__
    checked.__module__ = fn.__module__
    op(
        promote=INT_TO_FLOAT,
        namespaces=("special",),
        method=False,
        differentiable=False,
        typecheck=no_half_result(kernel),
    )(checked)
    return fn


def _evaluated(
    x: Array, n: Array, first: Array, recurrence: Recurrence, known: Array | None = None
) -> Array:
    """The polynomials of degree n: 1, `first`, and on; `known` need no recurrence."""
    one = jnp.ones_like(x)
    degree = n if known is None else jnp.where(known, 0, n)

    def more(state: tuple[Array, Array, Array]) -> Array:
        k, q, _ = state
        return ((k <= degree) & ~jnp.isnan(q)).any()

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, q, p = state
        wanted = (k <= degree) & ~jnp.isnan(q)
        r = recurrence(k, x, q, p)
        return k + 1, jnp.where(wanted, r, q), jnp.where(wanted, q, p)

    _, last, _ = lax.while_loop(more, step, (jnp.asarray(2, x.dtype), first, one))
    return jnp.where(n < 0, 0, jnp.where(n == 0, 1, last))


def _parity(n: Array) -> Array:
    return jnp.where(n % 2 == 0, 1, -1).astype(n.dtype)


def _chebyshev(
    x: Array,
    n: Array,
    first: Array,
    direct: int,
    by_angle: Callable[[Array], Array],
    ends: tuple[Array, Array],
) -> Array:
    """Chebyshev polynomials: above degree `direct`, for x in (-1, 1), by its angle.

    `ends`: the values at 1 and at -1.
    """
    at_end = jnp.abs(x) == 1
    inside = (n > direct) & (jnp.abs(x) < 1)

    def recurrence(k: Array, x: Array, q: Array, p: Array) -> Array:
        return 2 * x * q - p

    value = _evaluated(x, n, first, recurrence, at_end | inside)
    value = jnp.where(inside, by_angle(jnp.arccos(jnp.where(inside, x, 0))), value)
    value = jnp.where(at_end, jnp.where(x > 0, *ends), value)
    return jnp.where(n < 0, 0, value)


def _first_kind(x: Array, n: Array, direct: int = 6) -> Array:
    ends = jnp.ones_like(n), _parity(n)
    return _chebyshev(x, n, x, direct, lambda a: jnp.cos(n * a), ends)


def _second_kind(x: Array, n: Array, direct: int = 8) -> Array:
    ends = n + 1, _parity(n) * (n + 1)

    def by_angle(a: Array) -> Array:
        return jnp.sin((n + 1) * a) / jnp.sin(a)

    return _chebyshev(x, n, 2 * x, direct, by_angle, ends)


def _third_kind(x: Array, n: Array, direct: int = 8) -> Array:
    ends = jnp.ones_like(n), _parity(n) * (2 * n + 1)

    def by_angle(a: Array) -> Array:
        return jnp.cos((n + 0.5) * a) / jnp.cos(a / 2)

    return _chebyshev(x, n, 2 * x - 1, direct, by_angle, ends)


def _fourth_kind(x: Array, n: Array, direct: int = 8) -> Array:
    ends = 2 * n + 1, _parity(n)

    def by_angle(a: Array) -> Array:
        return jnp.sin((n + 0.5) * a) / jnp.sin(a / 2)

    return _chebyshev(x, n, 2 * x + 1, direct, by_angle, ends)


@_polynomial
def chebyshev_polynomial_t(x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the first kind."""
    return _first_kind(x, n)


@_polynomial
def chebyshev_polynomial_u(x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the second kind."""
    return _second_kind(x, n)


@_polynomial
def chebyshev_polynomial_v(x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the third kind."""
    return _third_kind(x, n)


@_polynomial
def chebyshev_polynomial_w(x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the fourth kind."""
    return _fourth_kind(x, n)


@_polynomial
def shifted_chebyshev_polynomial_t(x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the first kind of 2x - 1."""
    return _first_kind(2 * x - 1, n, 6)


@_polynomial
def shifted_chebyshev_polynomial_u(x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the second kind of 2x - 1."""
    return _second_kind(2 * x - 1, n, 6)


@_polynomial
def shifted_chebyshev_polynomial_v(x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the third kind of 2x - 1."""
    return _third_kind(2 * x - 1, n, 6)


@_polynomial
def shifted_chebyshev_polynomial_w(x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the fourth kind of 2x - 1."""
    return _fourth_kind(2 * x - 1, n, 4)


def _hermite(x: Array, n: Array, factor: int) -> Array:
    # PyTorch's degrees end here, where the values have long overflowed.
    limit = 128 if x.dtype == jnp.float32 else 512

    def recurrence(k: Array, x: Array, q: Array, p: Array) -> Array:
        return factor * (x * q - (k - 1) * p)

    value = _evaluated(x, n, factor * x, recurrence, n > limit)
    return jnp.where(n > limit, jnp.nan, value)


@_polynomial
def hermite_polynomial_h(x: Array, n: Array) -> Array:
    """Hermite polynomials as physicists have them."""
    return _hermite(x, n, 2)


@_polynomial
def hermite_polynomial_he(x: Array, n: Array) -> Array:
    """Hermite polynomials as statisticians have them."""
    return _hermite(x, n, 1)


@_polynomial
def laguerre_polynomial_l(x: Array, n: Array) -> Array:
    """Laguerre polynomials."""

    def recurrence(k: Array, x: Array, q: Array, p: Array) -> Array:
        return ((2 * k - 1 - x) * q - (k - 1) * p) / k

    zero = x == 0
    value = _evaluated(x, n, 1 - x, recurrence, zero)
    return jnp.where(zero & (n >= 0), 1, value)


@_polynomial
def legendre_polynomial_p(x: Array, n: Array) -> Array:
    """Legendre polynomials."""

    def recurrence(k: Array, x: Array, q: Array, p: Array) -> Array:
        return ((2 * k - 1) * x * q - (k - 1) * p) / k

    end = jnp.abs(x) == 1
    value = _evaluated(x, n, x, recurrence, end)
    ends = jnp.where(x > 0, 1, _parity(n))
    return jnp.where(end & (n >= 0), ends, value)
