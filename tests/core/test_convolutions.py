"""Convolutions of functions that stay functions, in XLA's order of dimensions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from torchshim._core.convolutions import has_convolution, ordered

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def numbers_of(jaxpr):
    """The orders of all convolutions in a traced function."""
    for eqn in jaxpr.eqns:
        if eqn.primitive is lax.conv_general_dilated_p:
            yield eqn.params
        for inner in jax.tree.leaves(
            list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "jaxpr")
        ):
            if hasattr(inner, "jaxpr"):
                yield from numbers_of(inner.jaxpr)


def in_order(params):
    n = len(params["window_strides"])
    numbers = params["dimension_numbers"]
    data = (0, n + 1, *range(1, n + 1))
    return numbers.lhs_spec == numbers.out_spec == data and numbers.rhs_spec == (
        n + 1,
        n,
        *range(n),
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"window_strides": 2},
        {"rhs_dilation": 2},
        {"lhs_dilation": 2},
        {"padding": (2, 1)},
    ],
)
def test_values_and_gradients_stay(n, how):
    letters = SPATIAL[n]
    keys = jax.random.split(jax.random.key(0), 2)
    x = jax.random.normal(keys[0], (2, 3, *(7, 6, 5)[:n]))
    w = jax.random.normal(keys[1], (4, 3, *(3, 2, 2)[:n]))

    def convolution(x, w):
        params = {k: (v,) * n for k, v in how.items()}
        params = {"window_strides": (1,) * n, "padding": ((1, 1),) * n} | params
        return lax.conv_general_dilated(
            x,
            w,
            dimension_numbers=(f"NC{letters}", f"OI{letters}", f"NC{letters}"),
            **params,
        )

    def both(x, w):
        out, pull = jax.vjp(jax.jit(convolution), x, w)
        return {"out": out, "gradients": pull(jnp.sin(out))}

    found = list(numbers_of(jax.make_jaxpr(ordered(both))(x, w).jaxpr))
    assert len(found) == 3
    assert all(map(in_order, found))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
        ordered(both)(x, w),
        both(x, w),
    )


def test_grouped_ones_are_left_alone():
    x, w = jnp.ones((1, 4, 5, 5)), jnp.ones((4, 1, 3, 3))

    def grouped(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=4)

    (params,) = numbers_of(jax.make_jaxpr(ordered(grouped))(x, w).jaxpr)
    assert not in_order(params)
    np.testing.assert_allclose(ordered(grouped)(x, w), grouped(x, w))


def test_functions_without_any_stay_functions():
    inner = jax.jit(lambda x: x + 1)
    traced = jax.make_jaxpr(ordered(lambda x: inner(x) * x))(2.0)
    assert not has_convolution(traced)
    assert [e.primitive.name for e in traced.jaxpr.eqns] == ["jit", "mul"]
