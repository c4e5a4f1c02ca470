"""Functions of JAX computed by NumPy: what XLA gives, for each primitive there is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from torchshim._core import interpret
from torchshim._core.numpy_rules import RULES, NoRule, product

F, G = np.linspace(-2.5, 2.5, 12, dtype=np.float32).reshape(3, 4), np.arange(12.0)
I = np.arange(-6, 6).reshape(3, 4)  # noqa: E741
# (XLA takes numbers below 1e-38 for zeros; PyTorch does not, nor does NumPy.)
EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 3e38], np.float32)
WHOLE = np.array([-(2**31), -7, -1, 0, 1, 5, 2**31 - 1], np.int32)
EACH = np.array([[0, 3], [-1, 9], [2, -4]])


def agrees(function, *arrays, exact=False):
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    with np.errstate(all="ignore"):
        got = interpret.plan(function, avals)(*arrays)
    with jax.enable_x64(True):
        expected = jax.tree.leaves(jax.jit(function)(*arrays))
    assert len(got) == len(expected)
    for mine, its in zip(got, expected, strict=True):
        assert (np.shape(mine), mine.dtype) == (its.shape, its.dtype)
        its = np.asarray(its)
        if exact or its.dtype.kind in "biu":
            np.testing.assert_array_equal(mine, its)
        else:
            limits = 1e-5 if its.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(mine, its, limits, limits)


def dims(**named):
    return lax.GatherDimensionNumbers(**named)


def scattered(mode, function=lax.scatter_add, **named):
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0, 1),
    )
    return lambda x, i, u: function(x, i, u, numbers, mode=mode, **named)


CASES = {
    "reductions": (lambda x: (x.sum(0), x.prod(1), x.max(), x.min(1), x.sum()), F),
    "reductions of integers": (lambda x: (x.sum(0), x.prod(1), x.max(0)), I),
    "truths": (lambda x: (jnp.all(x > 0, 0), jnp.any(x > 0), (x > 0).sum()), F),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), F),
    "cumulative": (
        lambda x: (
            *(jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1)),
            *(lax.cummin(x, 0, reverse=True), lax.cumsum(x, 1, reverse=True)),
        ),
        F,
    ),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(-x, 1, stable=True)), F),
    "sort with what is no number": (lambda x: jnp.sort(x), EDGES),
    "places among what is sorted": (
        lambda x: (
            jnp.searchsorted(jnp.sort(x.ravel()), x),
            jnp.searchsorted(jnp.sort(x.ravel())[::3], x, side="right"),
        ),
        F,
    ),
    "places among edges": (
        lambda x: jnp.searchsorted(jnp.sort(x), jnp.append(x, -x)),
        EDGES,
    ),
    "places among integers": (lambda x: jnp.searchsorted(jnp.sort(x.ravel()), x), I),
    "edges": (
        lambda x: (
            *(jnp.sign(x), jnp.abs(x), -x, jnp.sqrt(x), lax.rsqrt(x), jnp.exp(x)),
            *(jnp.log(x), jnp.log1p(x), jnp.expm1(x), jnp.tanh(x), lax.logistic(x)),
            *(jnp.isfinite(x), jnp.floor(x), lax.square(x), jnp.clip(x, -1, 1)),
            *(x.astype(jnp.int32), x.astype(jnp.uint8), x.astype(jnp.bool_)),
            *(lax.erf(x), lax.erfc(x), lax.lgamma(x), lax.integer_pow(x, -3)),
            *(jnp.maximum(x, 0), jnp.minimum(x, 0), x == x, x < 0, lax.cbrt(x)),
        ),
        EDGES,
    ),
    "rounding": (
        lambda x: (
            lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
            lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
        ),
        np.array([0.5, -0.5, 1.5, 2.5, -2.5, np.inf, np.nan], np.float32),
    ),
    "rounding beside a half, and where there are no halves": (
        lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
        np.array([0.49999997, -0.49999997, 8388609.0, -8388609.0], np.float32),
    ),
    "whole quotients": (
        lambda x, y: (lax.div(x, y), lax.rem(x, y)),
        np.repeat(WHOLE, 7),
        np.tile(WHOLE, 7),
    ),
    "shifts": (
        lambda x, y: (
            lax.shift_left(x, y),
            lax.shift_right_logical(x, y),
            lax.shift_right_arithmetic(x, y),
        ),
        np.repeat(WHOLE, 4),
        np.tile(np.array([0, 3, 31, 40], np.int32), 7),
    ),
    "bits": (lambda x, y: (x & y, x | y, x ^ y, ~x), I, I[::-1].copy()),
    "bits as numbers": (lambda x: lax.bitcast_convert_type(x, jnp.int32), F),
    "bits of one number": (lambda x: lax.bitcast_convert_type(x, jnp.int32), F[0, 0]),
    "powers": (lambda x: (x**2.5, x**3, lax.integer_pow(x, 7)), np.abs(F)),
    "choices": (
        lambda x, i: (jnp.where(x > 0, x, 1.0), lax.select_n(i % 3, x, -x, 2 * x)),
        F,
        np.abs(I).astype(np.int32),
    ),
    "shapes": (
        lambda x: (
            *(x.T, x.reshape(2, 6), x[::-1, 1:], x[None].squeeze(0), x[::2, ::3]),
            *(jnp.concatenate([x, x], 1), jnp.stack([x, x], 1), jnp.tile(x, (2, 1))),
            *(lax.split(x, (1, 3), 1), jnp.broadcast_to(x[:1], (3, 4))),
            *(jnp.eye(3), jnp.arange(4), jnp.unstack(x)),
        ),
        F,
    ),
    "padding": (
        lambda x: (
            lax.pad(x, np.float32(7), [(1, 2, 0), (0, 1, 2)]),
            lax.pad(x, np.float32(7), [(-1, 0, 1), (-2, -1, 0)]),
            lax.pad(x, np.float32(7), [(-2, 4, 2), (3, -5, 1)]),
            lax.pad(x, np.float32(7), [(-3, -3, 2), (0, 0, 0)]),
        ),
        F,
    ),
    "products": (
        lambda x, y: (
            *(x @ x.T, jnp.einsum("ij,kj->ik", x, x), jnp.tensordot(x, x, 2)),
            *(jnp.einsum("bij,bkj->bik", y, y), jnp.einsum("bij,bij->bi", y, y)),
            jnp.einsum("bij,cj->cbi", y, y[0]),
        ),
        F,
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    ),
    "products of integers": (lambda x: x @ x.T, I),
    "pieces": (
        lambda x, i: (
            *(lax.dynamic_slice(x, (i, i), (2, 2)), x[i]),
            lax.dynamic_update_slice(x, x[:2, :2], (i, i)),
        ),
        F,
        np.array(5),
    ),
    "loops": (
        lambda x: (
            lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x)),
            lax.scan(lambda c, r: (c + r, c.sum()), x[0], x),
            lax.scan(lambda c, r: (c * r, r[:2]), x[0], x, reverse=True),
            lax.cond(x.sum() > 100, lambda v: v, lambda v: -v, x),
            lax.fori_loop(0, 4, lambda i, v: v + i, x),
            lax.switch(7, [jnp.sin, jnp.cos], x),
        ),
        F,
    ),
    "gradients": (jax.grad(lambda x: (jax.nn.gelu(x) * jax.nn.softmax(x)).sum()), F),
    "taken": (
        lambda x, i: (
            *(x[i], jnp.take(x, i, 1), jnp.take(x, i, 0, mode="clip")),
            jnp.take_along_axis(x, i[:, :1] % 3, 1),
        ),
        F,
        EACH,
    ),
    "windows taken": (
        lambda x, i: tuple(
            lax.gather(
                x,
                i,
                dims(
                    offset_dims=(0, 2),
                    collapsed_slice_dims=(),
                    start_index_map=(1, 0),
                ),
                (2, 3),
                mode=mode,
            )
            for mode in ("clip", "fill")
        ),
        F,
        EACH,
    ),
    **{
        f"{name} {mode}": (scattered(mode, function), F, EACH, F[:, :1].copy() + 5)
        for mode in ("clip", "drop")
        for name, function in {
            "scatter": lax.scatter,
            "scatter_add": lax.scatter_add,
            "scatter_sub": lax.scatter_sub,
            "scatter_mul": lax.scatter_mul,
            "scatter_min": lax.scatter_min,
            "scatter_max": lax.scatter_max,
        }.items()
    },
    "set": (lambda x, i: (x.at[i].set(0.0), x.at[:, 1].add(1.0)), F, EACH % 3),
    "set in nothing": (
        lambda x, i: tuple(x[:0].at[i].set(1.0, mode=m) for m in ("clip", "drop")),
        F,
        np.array([0, 2]),
    ),
    "nothing": (
        lambda x: (x.sum(), x[:0], jnp.sort(x[:0], 0), x[:0] @ x.T, x[:0].prod(0)),
        F,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_as_xla(name):
    function, *arrays = CASES[name]
    agrees(function, *arrays)


SIZES = [(64, 128, 512), (512, 64, 300), (3, 5000, 40), (1, 700, 90), (90, 300, 1)]


@pytest.mark.parametrize("size", [*SIZES, (70, 600, 80), (2, 3, 4), (0, 3, 4)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_in_pieces(size, batch):
    m, k, n = size
    random = np.random.default_rng(0)
    x, y = random.normal(size=(*batch, m, k)), random.normal(size=(*batch, n, k))
    y = np.swapaxes(y, -1, -2)
    np.testing.assert_allclose(product(x, y), x @ y, 1e-12, 1e-11)
    assert product(x.astype("f"), y.astype("f")).dtype == np.float32


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 4), st.integers(-3, 4), st.integers(0, 3))),
    st.integers(0, 5),
)
def test_padding(config, length):
    config = config[:2]
    shape = (length,) * len(config)
    if any(
        n + low + high + max(n - 1, 0) * i < 0
        for (low, high, i), n in zip(config, shape, strict=True)
    ):
        return
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    agrees(lambda x: lax.pad(x, np.float32(-1), config), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.fft.fft(x),
        lambda x: x.astype(jnp.bfloat16) + 1,
        lambda x: jax.vmap(
            lambda r: lax.while_loop(lambda v: v.sum() < 3, lambda v: v + 1, r)
        )(x),
        lambda x: jax.random.normal(jax.random.key(0), (2,)) + x[0, 0],
        lambda x: jax.pure_callback(np.sin, x, x),
    ],
)
def test_what_has_to_be_compiled(function):
    with pytest.raises(NoRule):
        interpret.plan(function, [jax.ShapeDtypeStruct(F.shape, F.dtype)])


def test_what_another_release_says_otherwise_is_compiled(monkeypatch):
    monkeypatch.setitem(RULES, "sin", lambda eqn: eqn.params["accuracy of old"])
    with pytest.raises(NoRule, match="accuracy of old"):
        interpret.plan(jnp.sin, [jax.ShapeDtypeStruct(F.shape, F.dtype)])


def test_a_plan_changes_nothing_that_it_is_given():
    x = F.copy()
    plan = interpret.plan(
        lambda x: (x.at[0].set(1.0), x.reshape(-1), jnp.sort(x, 0)),
        [jax.ShapeDtypeStruct(x.shape, x.dtype)],
    )
    for _ in range(2):
        put, flat, _ = plan(x)
        np.testing.assert_array_equal(x, F)
        np.testing.assert_array_equal(put[0], 1)
        np.testing.assert_array_equal(flat, F.reshape(-1))


def test_what_nothing_needs_is_not_computed():
    plan = interpret.plan(
        lambda x: (jnp.sin(x) @ x.T, x + 1)[1], [jax.ShapeDtypeStruct(F.shape, F.dtype)]
    )
    assert len(plan.steps) == 1
    assert "dot_general" in RULES


def seconds(function, *shapes):
    avals = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    return interpret.plan(function, avals).seconds


def test_what_a_plan_takes_is_estimated():
    small, large = (8, 8), (1000, 1000)
    assert seconds(jnp.exp, small) < 1e-5 < seconds(jnp.exp, large)
    # By what is multiplied, not only by what is read and written.
    product = seconds(lambda x: x @ x, large)
    assert product > 10 * seconds(lambda x: x + x, large)
    image, kernel = (1, 3, 32, 32), (16, 3, 5, 5)
    layer = seconds(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), image, kernel)
    assert layer > 4 * seconds(lambda x: x + x, (1, 16, 32, 32))
    pooled = seconds(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (9, 9), (1, 1), "SAME"), large
    )
    assert pooled > 10 * seconds(lambda x: x + x, large)
    assert seconds(jnp.sort, large) > 10 * seconds(jnp.exp, large)
    each = seconds(lambda x: jnp.linalg.eigh(x), small)
    assert seconds(lambda x: jnp.linalg.eigh(x), (100, *small)) > 10 * each
    assert seconds(lambda x: jnp.linalg.qr(x), large) > 0.1

    def loop(length):
        return lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, length)[0]

    assert seconds(loop(1000), small) > 50 * seconds(loop(10), small)
    grown = lambda x: lax.while_loop(lambda v: v[0, 0] < 9, lambda v: v + 1, x)  # noqa: E731
    assert seconds(grown, small) > 10 * seconds(lambda x: x + 1, small)

    def chosen(x):
        return lax.cond(x[0, 0] > 0, lambda v: v @ v, lambda v: v, x)

    assert seconds(chosen, large) > product
    solved = seconds(lambda x: jnp.linalg.solve(x, x), large)
    assert solved > seconds(lax.linalg.lu, large)
