"""Convolutions and windows computed by NumPy: what XLA gives."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from tests.core.test_interpret import agrees
from torchshim._core import interpret
from torchshim._core.numpy_rules import NoRule


def numbers(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def drawn(draw, rank, low, high):
    return tuple(draw(st.integers(low, high)) for _ in range(rank))


def drawn_padding(draw, rank):
    return tuple(drawn(draw, 2, -1, 3) for _ in range(rank))


@st.composite
def convolutions(draw):
    rank = draw(st.integers(1, 3))
    groups, batches = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 3)]))
    channels, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    outputs *= groups * batches
    examples = draw(st.integers(1, 2)) * batches
    space, window = drawn(draw, rank, 3, 6), drawn(draw, rank, 1, 3)
    orders = [tuple(draw(st.permutations(range(rank + 2)))) for _ in range(3)]

    def shaped(order, *sizes):
        shape = [0] * len(order)
        for dim, size in zip(order, sizes, strict=True):
            shape[dim] = size
        return shape

    arrays = (
        numbers(shaped(orders[0], examples, channels * groups, *space)),
        numbers(shaped(orders[1], outputs, channels, *window), 1),
    )
    options = {
        "window_strides": drawn(draw, rank, 1, 3),
        "padding": drawn_padding(draw, rank),
        "lhs_dilation": drawn(draw, rank, 1, 2),
        "rhs_dilation": drawn(draw, rank, 1, 2),
        "dimension_numbers": lax.ConvDimensionNumbers(*orders),
        "feature_group_count": groups,
        "batch_group_count": batches,
    }
    return arrays, options


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_convolutions(drawn):
    arrays, options = drawn
    agrees(lambda x, k: lax.conv_general_dilated(x, k, **options), *arrays)


@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_convolutions(groups):
    def pulled(x, kernel, cotangent):
        def run(x, kernel):
            return lax.conv_general_dilated(
                x, kernel, (2, 1), ((1, 1), (2, 0)), feature_group_count=groups
            )

        return jax.vjp(run, x, kernel)[1](cotangent)

    shapes = (3, 4, 7, 6), (2, 4 // groups, 3, 2), (3, 2, 4, 7)
    agrees(pulled, *(numbers(shape).astype(np.float32) for shape in shapes))


def test_many_examples_are_convolved_in_turns(monkeypatch):
    monkeypatch.setattr("torchshim._core.numpy_windows._COPIED", 100)
    agrees(
        lambda x, k: lax.conv(x, k, (1, 1), "SAME"),
        numbers((5, 2, 4, 4)),
        numbers((3, 2, 3, 3)),
    )


@pytest.mark.parametrize("shape", [(0, 2, 4), (1, 0, 4), (1, 2, 1)])
def test_convolutions_of_nothing(shape):
    x, kernel = np.zeros(shape), np.ones((3, shape[1], 2))
    agrees(lambda x, k: lax.conv(x, k, (1,), "VALID"), x, kernel)


@st.composite
def windows(draw):
    rank = draw(st.integers(1, 3))
    window = drawn(draw, rank, 1, 3)
    options = {
        "window_dimensions": window,
        "window_strides": drawn(draw, rank, 1, 3),
        "padding": tuple((draw(st.integers(0, k - 1)), 0) for k in window),
    }
    return drawn(draw, rank, 3, 6), options


REDUCTIONS = {
    "sum": (lax.add, 0),
    "max": (lax.max, -np.inf),
    "min": (lax.min, np.inf),
}


@settings(max_examples=30, deadline=None)
@given(windows(), st.sampled_from(list(REDUCTIONS)), st.data())
def test_windows(drawn_windows, name, data):
    shape, options = drawn_windows
    combine, start = REDUCTIONS[name]
    for each in ("base_dilation", "window_dilation"):
        options[each] = drawn(data.draw, len(shape), 1, 2)
    agrees(lambda x: lax.reduce_window(x, start, combine, **options), numbers(shape))


def test_windows_of_integers():
    x = np.arange(12).reshape(3, 4)
    least = np.iinfo(np.int64).min
    agrees(
        lambda x: (
            lax.reduce_window(x, 0, lax.add, (2, 2), (1, 2), "VALID"),
            lax.reduce_window(x, least, lax.max, (2, 2), (1, 1), "SAME"),
        ),
        x,
    )


@settings(max_examples=30, deadline=None)
@given(windows())
def test_gradients_of_windows(drawn_windows):
    shape, options = drawn_windows

    def pulled(x):
        def pooled(x):
            return lax.reduce_window(x, -np.inf, lax.max, **options)

        cotangent = numbers(jax.eval_shape(pooled, x).shape, 2)
        return jax.vjp(pooled, x)[1](cotangent)

    x = np.round(numbers(shape))
    agrees(pulled, x)  # with ties
    x.flat[::7] = np.nan
    agrees(pulled, x)


def test_which_of_several_extremes_moves_is_decided_by_xla():
    def pooled(x):
        return lax.reduce_window(x, -np.inf, lax.max, (2,), (1,), "VALID")

    x = jax.ShapeDtypeStruct((3,), np.float64)
    with pytest.raises(NoRule):
        interpret.plan(lambda x: jax.jvp(pooled, (x,), (x,)), [x])


def test_other_precisions_are_compiled():
    given = [
        jax.ShapeDtypeStruct(shape, np.float32) for shape in [(1, 1, 4), (1, 1, 2)]
    ]
    with pytest.raises(NoRule):
        interpret.plan(
            lambda x, k: lax.conv_general_dilated(
                x, k, (1,), "VALID", preferred_element_type=np.float64
            ),
            given,
        )
