"""Which operands results are computed from."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.dependence import reached


def found(function, count):
    jaxpr = jax.make_jaxpr(function)(*[jnp.zeros(2)] * count).jaxpr
    return [sorted(each) for each in reached(jaxpr, [{i} for i in range(count)])]


def test_only_what_a_result_is_computed_from():
    assert found(lambda x, y: (x * y, y + 1, 0.0), 2) == [[0, 1], [1], []]
    inner = jax.jit(lambda x, y: (y, x))
    assert found(lambda x, y: inner(x, y), 2) == [[1], [0]]


def test_what_turns_of_a_loop_hand_on():
    def turn(carried, given):
        a, b, c, d = carried
        return (b, c, given, d), a

    def loop(a, b, c, d, given):
        return lax.scan(turn, (a, b, c, d), jnp.stack([given] * 3))

    (a, b, c, d), each = found_tree(loop, 5)
    assert (a, b, c, d) == ([0, 1, 2, 4], [1, 2, 4], [2, 4], [3])
    assert each == [0, 1, 2, 4]


def found_tree(function, count):
    shape = jax.eval_shape(function, *[jnp.zeros(2)] * count)
    return jax.tree.unflatten(jax.tree.structure(shape), found(function, count))
