"""Random numbers made within programs.

Out of bits or uniform numbers that the host drew (the CPU, where the numbers are
PyTorch's); or out of a seed and the number of the draw, by JAX's counter-based
generator, which accelerators compute in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core.checks import Check
from torchshim._core.op import Array, Operand, Scalar, op

_LAST_53 = 2**53 - 1
# What all have in common: nobody calls them, and gradients do not flow.
_NUMBERS: Any = {
    "namespaces": (),
    "method": False,
    "differentiable": False,
    "saves": (),
}


@op(name="_bits_below", **_NUMBERS)
def bits_below(bits: Array, chance: Scalar) -> Array:
    """Which numbers in [0, 1), made of the last 53 of 64 bits, lie below `chance`.

    The same as PyTorch's comparison in double, in integers.
    """
    limit = jnp.ceil(jnp.asarray(chance, jnp.float64) * 2.0**53)
    return (bits & jnp.uint64(_LAST_53)) < limit.astype(jnp.uint64)


# Parameters that are tensors ----------------------------------------------------------


def _chances(uniform: Array, chance: Array, dtype: Any) -> list[Check]:
    text = (
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
        "message be improved?  If so, please report an enhancement request to PyTorch.)"
    )
    return [Check(~((chance >= 0) & (chance <= 1)).all(), RuntimeError, text)]


@op(
    name="_draw_below",
    **_NUMBERS,
    layout="preserve",
    out=False,
    checks=_chances,
)
def draw_below(uniform: Array, chance: Array, dtype: Any) -> Array:
    """Ones where uniform numbers lie below the chances, zeros elsewhere."""
    return (uniform < chance.astype(uniform.dtype)).astype(dtype.np)


def _deviations(values: Array, std: Array, zero: Any) -> list[Check]:
    text = "normal expects all elements of std >= 0.0"
    return [Check(~(std >= 0).all(), RuntimeError, text)]


@op(
    name="_draw_scaled",
    **_NUMBERS,
    layout="preserve",
    out=False,
    checks=_deviations,
)
def draw_scaled(values: Array, std: Array, zero: Scalar) -> Array:
    """`values.mul_(std)`, rounded before anything is added.

    `zero` is 0, see `_apart`.
    """
    dtype, wide = values.dtype, _computed(values, std)
    return _apart((values.astype(wide) * std.astype(wide)).astype(dtype), zero)


def _computed(values: Array, other: Array) -> Any:
    """The dtype that an in-place product or sum is computed in."""
    wide = jnp.promote_types(values.dtype, jnp.float32)
    return jnp.promote_types(wide, other.dtype) if other.ndim else wide


def _apart(x: Array, zero: Any) -> Array:
    """A product rounded before anything is added to it, as PyTorch rounds it.

    XLA cannot know that `zero` is 0, so it makes no multiply-add of the two.
    """
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return jax.lax.complex(_apart(x.real, zero), _apart(x.imag, zero))
    kind = jnp.dtype(f"uint{8 * x.dtype.itemsize}")
    bits = jax.lax.bitcast_convert_type(x, kind)
    bits ^= jnp.asarray(zero, jnp.float64).astype(kind)
    return jax.lax.bitcast_convert_type(bits, x.dtype)


@op(
    name="_draw_shifted",
    **_NUMBERS,
    layout="preserve",
    out=False,
)
def draw_shifted(values: Array, mean: Operand, zero: Scalar) -> Array:
    """`values.add_(mean)`; a number is rounded to their dtype first."""
    if not isinstance(mean, jax.Array):
        mean = jnp.asarray(mean, values.dtype)
    mean = _apart(mean, zero)
    wide = _computed(values, mean)
    return (values.astype(wide) + mean.astype(wide)).astype(values.dtype)


def _weights(weights: Array, noise: Array, count: int) -> list[Check]:
    bad = ~((weights >= 0) & (weights < jnp.inf)).all()
    text = "probability tensor contains either `inf`, `nan` or element < 0"
    return [Check(bad, RuntimeError, text), _no_weight(weights)]


def _no_weight(weights: Array) -> Check:
    text = "invalid multinomial distribution (sum of probabilities <= 0)"
    return Check(~(weights > 0).any(-1).all(), RuntimeError, text)


@op(
    name="_draw_race",
    **_NUMBERS,
    out=False,
    checks=_weights,
)
def draw_race(weights: Array, noise: Array, count: int) -> Array:
    """The `count` winners of a race: weights divided by exponential numbers.

    Of equals the first wins.
    """
    wide = jnp.promote_types(weights.dtype, jnp.float32)
    scores = (weights.astype(wide) / noise.astype(wide)).astype(weights.dtype)
    if count == 1:
        return scores.argmax(-1, keepdims=True).astype(jnp.int64)
    return jnp.argsort(-scores, axis=-1, stable=True)[..., :count].astype(jnp.int64)


def _totals(weights: Array, uniform: Array, exact: bool) -> list[Check]:
    start = "invalid multinomial distribution (encountering probability entry "
    return [
        Check(~(weights >= 0).all(), RuntimeError, start + "< 0)"),
        Check(jnp.isinf(weights).any(), RuntimeError, start + "= infinity or NaN)"),
        _no_weight(weights),
    ]


@op(
    name="_draw_chosen",
    **_NUMBERS,
    out=False,
    checks=_totals,
)
def draw_chosen(weights: Array, uniform: Array, exact: bool) -> Array:
    """For each uniform number the index where the summed weights reach it.

    `exact`: sums are made one after the other, as on the CPU.
    """
    wide = jnp.promote_types(weights.dtype, jnp.float32)
    total = _summed(weights.astype(wide)) if exact else jnp.cumsum(weights, -1, wide)
    total = (total / total[..., -1:]).astype(jnp.float64)
    total = total.at[..., -1].set(1)
    count = weights.shape[-1]
    found = jax.vmap(jnp.searchsorted)(
        total.reshape(-1, count), uniform.reshape(-1, uniform.shape[-1])
    )
    return found.reshape(uniform.shape).astype(jnp.int64)


def _summed(weights: Array) -> Array:
    def step(total: Array, weight: Array) -> tuple[Array, Array]:
        total = total + weight
        return total, total

    columns = jnp.moveaxis(weights, -1, 0)
    return jnp.moveaxis(jax.lax.scan(step, columns[0] * 0, columns)[1], 0, -1)


# Out of a counter ---------------------------------------------------------------------


def _key(seed: Array, number: Any) -> Any:
    key = jax.random.wrap_key_data(seed, impl="threefry2x32")
    return jax.random.fold_in(key, jnp.asarray(number).astype(jnp.uint32))


def _wide(dtype: np.dtype) -> Any:
    """The type that numbers are made in: 16 bits are too few."""
    return jnp.float64 if dtype == np.float64 else jnp.float32


def _uniform(key: Any, shape: Any, dtype: np.dtype, low: Any, high: Any) -> Array:
    wide = _wide(dtype)
    low, high = jnp.asarray(low, wide), jnp.asarray(high, wide)
    values = jax.random.uniform(key, shape, wide) * (high - low) + low
    values = values.astype(dtype)
    # Rounding can reach the upper bound, which is excluded.
    return jnp.where(values == high.astype(dtype), low.astype(dtype), values)


def _normal(key: Any, shape: Any, dtype: np.dtype, mean: Any, std: Any) -> Array:
    wide = _wide(dtype)
    return jax.random.normal(key, shape, wide) * jnp.asarray(std, wide) + jnp.asarray(
        mean, wide
    )


def _log_normal(key: Any, shape: Any, dtype: np.dtype, mean: Any, std: Any) -> Array:
    return jnp.exp(_normal(key, shape, dtype, mean, std))


def _above_zero(key: Any, shape: Any, dtype: np.dtype) -> Array:
    return 1 - jax.random.uniform(key, shape, _wide(dtype))


def _exponential(key: Any, shape: Any, dtype: np.dtype, rate: Any, _: Any) -> Array:
    values = -jnp.log(_above_zero(key, shape, dtype))
    # Zero would win every race, see `draw_race`.
    values = jnp.maximum(values, jnp.finfo(values.dtype).eps / 2)
    return values / jnp.asarray(rate, values.dtype)


def _geometric(key: Any, shape: Any, dtype: np.dtype, p: Any, _: Any) -> Array:
    values = _above_zero(key, shape, np.dtype(np.float64))
    trials = jnp.ceil(jnp.log(values) / jnp.log1p(-jnp.asarray(p, jnp.float64)))
    return jnp.maximum(trials, 1)


def _cauchy(key: Any, shape: Any, dtype: np.dtype, median: Any, sigma: Any) -> Array:
    angles = math.pi * (jax.random.uniform(key, shape, _wide(dtype)) - 0.5)
    median, sigma = (jnp.asarray(x, angles.dtype) for x in (median, sigma))
    return median + sigma * jnp.tan(angles)


def _bernoulli(key: Any, shape: Any, dtype: np.dtype, p: Any, _: Any) -> Array:
    return jax.random.uniform(key, shape, jnp.float32) < jnp.asarray(p, jnp.float32)


def _integers(key: Any, shape: Any, dtype: np.dtype, low: Any, last: Any) -> Array:
    low, last = (jnp.asarray(x, jnp.int64).astype(jnp.uint64) for x in (low, last))
    span = last - low + jnp.uint64(1)
    bits = jax.random.bits(key, shape, jnp.uint64)
    # No span at all is that of all 64 bits.
    drawn = jnp.where(span == 0, bits, bits % jnp.maximum(span, jnp.uint64(1)))
    return (drawn + low).astype(jnp.int64)


def _permutation(key: Any, shape: Any, dtype: np.dtype, _: Any, __: Any) -> Array:
    return jnp.argsort(jax.random.bits(key, shape, jnp.uint64), axis=-1)


_MADE: dict[str, Callable[..., Array]] = {
    "uniform": _uniform,
    "normal": _normal,
    "log_normal": _log_normal,
    "exponential": _exponential,
    "geometric": _geometric,
    "cauchy": _cauchy,
    "bernoulli": _bernoulli,
    "integers": _integers,
    "permutation": _permutation,
}


@op(name="_counter_draw", **_NUMBERS)
def counter_draw(
    seed: Array,
    number: Scalar,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    first: Scalar,
    second: Scalar,
) -> Array:
    """Numbers of a distribution with two parameters (or fewer: the rest is 0)."""
    key, kind = _key(seed, number), dtype.np
    if kind.kind != "c":
        return _MADE[name](key, shape, kind, first, second).astype(kind)
    part = np.dtype(f"f{kind.itemsize // 2}")
    if name == "normal":
        second = second / math.sqrt(2)
    both = _MADE[name](key, (2, *shape), part, first, second)
    return jax.lax.complex(both[0], both[1])


# ... with tensors as parameters: floating, and drawn in at least 32 bits.


def _widened(x: Array) -> Array:
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _declare(name: str, count: int, checks: Any, draw: Callable[..., Array]) -> None:
    def counter_one(seed: Array, number: Scalar, input: Array) -> Array:
        made = draw(_key(seed, number), _widened(input))
        return made.astype(input.dtype)

    def counter_two(seed: Array, number: Scalar, input: Array, other: Array) -> Array:
        made = draw(_key(seed, number), _widened(input), _widened(other))
        return made.astype(input.dtype)

    chosen = (counter_one, counter_two)[count - 1]
    chosen.__doc__ = f"`{name}` with these parameters."
    op(
        name=f"_counter_{name}",
        namespaces=(),
        method=False,
        differentiable=False,
        saves=(),
        out=False,
        checks=checks,
    )(chosen)


def _rates(seed: Array, number: Any, input: Array) -> list[Check]:
    text = "invalid Poisson rate, expected rate to be non-negative"
    return [Check(~(input >= 0).all(), RuntimeError, text)]


def _gamma(key: Any, shape: Array) -> Array:
    made = jax.random.gamma(key, shape, dtype=shape.dtype)
    return jnp.maximum(made, jnp.finfo(shape.dtype).tiny)


def _dirichlet(key: Any, shape: Array) -> Array:
    # In logarithms: gamma numbers of small shapes underflow.
    made = jax.nn.softmax(jax.random.loggamma(key, shape, dtype=shape.dtype), axis=-1)
    limits = jnp.finfo(shape.dtype)
    return jnp.clip(made, limits.tiny, 1 - limits.epsneg)


def _binomial(key: Any, count: Array, chance: Array) -> Array:
    made = jax.random.binomial(key, count, chance, dtype=count.dtype)
    return jnp.where(jnp.isnan(count) | jnp.isnan(chance), jnp.nan, made)


_declare("standard_gamma", 1, None, _gamma)
_declare("dirichlet", 1, None, _dirichlet)
_declare("poisson", 1, _rates, lambda key, rate: jax.random.poisson(key, rate))
_declare("binomial", 2, None, _binomial)
