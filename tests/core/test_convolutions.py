"""Convolutions of functions that stay functions, in XLA's order of dimensions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import torchshim as torch
from torchshim._core import convolutions, program
from torchshim._core.convolutions import in_fast_layout, in_windows

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


@pytest.fixture
def rewritten(monkeypatch):
    """The convolutions that were written in another way."""
    usual, found, within = convolutions.windowed, [], []

    def noted(*given):
        within.append(given)
        out = usual(*given)
        within.pop()
        if not within:
            found.append(out is not None)
        return out

    monkeypatch.setattr(convolutions, "windowed", noted)
    return found


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


def compare(function, others, *args, rtol=1e-3, atol=1e-4):
    """All in one program, compiled fast."""

    def each(*args):
        return [fn(*args) for fn in (function, *others)]

    wanted, *found = jax.jit(each, compiler_options=program.fast_options())(*args)
    for made in found:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=atol),
            made,
            wanted,
        )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    ("how", "left"),
    [
        ({}, (3, 2, 2)),
        ({"window_strides": 2}, (3, 3, 3)),
        ({"rhs_dilation": 2}, (3, 3, 3)),
        ({"lhs_dilation": 2}, (3, 3, 3)),
        ({"padding": (2, 1)}, (2, 2, 2)),
    ],
)
def test_values_and_gradients_stay(n, how, left):
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

    found = list(numbers_of(jax.make_jaxpr(in_fast_layout(both))(x, w).jaxpr))
    # Gradients of weights are products where results are larger than images.
    assert len(found) == left[n - 1]
    assert all(map(in_order, found))
    compare(both, (in_fast_layout(both),), x, w, rtol=1e-4, atol=1e-5)


def grouped(n, groups, **how):
    """A convolution in groups, and its gradients."""
    letters = SPATIAL[n]
    params = {k: (v,) * n for k, v in how.items()}
    params = {"window_strides": (1,) * n, "padding": ((0, 0),) * n} | params

    def convolution(x, w):
        return lax.conv_general_dilated(
            x,
            w,
            dimension_numbers=(f"NC{letters}", f"OI{letters}", f"NC{letters}"),
            feature_group_count=groups,
            **params,
        )

    def both(x, w):
        out, pull = jax.vjp(convolution, x, w)
        return {"out": out, "gradients": pull(jnp.sin(out))}

    return both


def operands_of(n, groups, channels, outputs, kernel):
    keys = jax.random.split(jax.random.key(0), 2)
    x = jax.random.normal(keys[0], (3, groups * channels, *(11, 10, 9)[:n]))
    w = jax.random.normal(keys[1], (groups * outputs, channels, *kernel[:n]))
    return x, w


# How many of the three convolutions (forward, both gradients) stay XLA's.
@pytest.mark.parametrize(
    ("n", "how", "groups", "channels", "outputs", "kernel", "left"),
    [
        (1, {"lhs_dilation": 2, "padding": (-1, 3)}, 4, 1, 1, (3,), 0),
        (2, {}, 2, 1, 2, (3, 2), 0),
        (2, {"window_strides": 2, "padding": (2, 1)}, 2, 3, 2, (3, 2), 0),
        (2, {"rhs_dilation": 2, "padding": (9, 9)}, 2, 1, 1, (9, 8), 0),
        (2, {}, 2, 24, 2, (3, 2), 1),
        (2, {}, 2, 24, 24, (3, 2), 2),
        (3, {"window_strides": 2}, 2, 2, 1, (3, 2, 2), 0),
        (2, {}, 1, 4, 5, (3, 2), 3),
        (1, {}, 1, 4, 5, (11,), 1),
    ],
)
def test_sums_of_windows(n, how, groups, channels, outputs, kernel, left):
    both = grouped(n, groups, **how)
    x, w = operands_of(n, groups, channels, outputs, kernel)
    rewritten = in_windows(both)
    assert len(list(numbers_of(jax.make_jaxpr(rewritten)(x, w).jaxpr))) == left
    compare(both, (rewritten, in_fast_layout(both)), x, w)


@pytest.mark.parametrize(
    ("n", "how", "kernel", "others"),
    [
        (1, {"lhs_dilation": 3, "padding": (2, 4)}, (4,), [False, True, False]),
        (2, {"lhs_dilation": 2, "padding": (0, 1)}, (3, 2), [False, True, False]),
        (3, {"lhs_dilation": 2, "padding": (-1, 2)}, (3, 2, 2), [True] * 3),
        (3, {"lhs_dilation": 3, "padding": (3, 1)}, (2, 4, 1), [True] * 3),
        (3, {"lhs_dilation": 2, "rhs_dilation": 2}, (3, 2, 2), [True] * 3),
        (3, {"window_strides": 2, "rhs_dilation": 2}, (3, 2, 1), [True] * 3),
        (3, {"window_strides": 2, "padding": (1, 0)}, (3, 2, 1), [True] * 3),
        (1, {"lhs_dilation": 3}, (25,), [True, False, True]),
        (2, {"lhs_dilation": 2, "rhs_dilation": 2}, (2, 3), [False, True, False]),
        (1, {}, (4,), [False, False, False]),
    ],
)
def test_made_of_other_convolutions(n, how, kernel, others, rewritten):
    both = grouped(n, 1, **how)
    x, w = operands_of(n, 1, 4, 5, kernel)
    compare(both, (in_windows(both),), x, w)
    assert rewritten == others


def test_nothing_to_sum():
    both = grouped(1, 2)
    for x, w in (((0, 2, 5), (2, 1, 3)), ((1, 2, 3), (2, 1, 3))):
        x, w = jnp.ones(x), jnp.ones(w)
        jax.tree.map(np.testing.assert_array_equal, in_windows(both)(x, w), both(x, w))


def test_other_backends_have_their_own(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    both = grouped(1, 2)
    assert in_windows(both) is both
    assert in_fast_layout(both) is both


@pytest.mark.parametrize("transposed", [False, True])
def test_programs_with_groups(rewritten, transposed):
    kind = torch.nn.ConvTranspose1d if transposed else torch.nn.Conv1d
    layer = kind(4, 4, 3, groups=4)
    x = torch.ones(2, 4, 7, requires_grad=True)
    layer(x).sum().backward()
    assert torch.isfinite(x.grad).all()
    assert rewritten == [True] * 3


def test_a_single_place_is_one_product(rewritten):
    layer = torch.nn.Conv1d(70, 4, 1)
    layer(torch.ones(5, 70, 8)).sum().backward()
    assert torch.isfinite(layer.weight.grad).all()
    assert rewritten == [False, True]


def test_gradients_per_sample(rewritten):
    """A convolution mapped over its weights, or their gradients, is one in groups."""
    samples, weight = torch.randn(3, 2, 30, 8), torch.randn(5, 30, 3)

    def loss(weight, x):
        return torch.nn.functional.conv1d(x, weight).square().sum()

    slope = torch.func.grad(loss)
    found = torch.vmap(slope, in_dims=(None, 0))(weight, samples)
    each = torch.stack([slope(weight, x) for x in samples])
    torch.testing.assert_close(found, each, rtol=1e-4, atol=1e-3)
    assert True in rewritten


def test_functions_without_any_stay_functions():
    inner = jax.jit(lambda x: x + 1)
    traced = jax.make_jaxpr(in_fast_layout(lambda x: inner(x) * x))(2.0)
    assert [e.primitive.name for e in traced.jaxpr.eqns] == ["jit", "mul"]
