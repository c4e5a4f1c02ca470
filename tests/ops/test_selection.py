"""Where elements stand in order, and that of a rank by bisection, as NumPy sorts."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import torchshim as torch
from torchshim._ops import _selection
from torchshim._ops.sorting import order, ordered_bits

DTYPES = [
    *("float16", "bfloat16", "float32", "float64"),
    *("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"),
]
EXTREMES = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45]


def _values(shape, dtype, kind, seed=0):
    rng = np.random.default_rng(seed)
    kind_of_dtype = jnp.dtype(dtype)
    if not jnp.issubdtype(kind_of_dtype, jnp.floating):
        info = jnp.iinfo(dtype)
        bounds = (info.min, min(info.min + 4, info.max)) if kind == "equal" else info
        low, high = bounds if kind == "equal" else (info.min, info.max)
        return rng.integers(low, high, shape, kind_of_dtype, endpoint=True)
    x = rng.normal(size=shape)
    if kind == "equal":
        x = np.round(x)
    if kind == "extreme":
        x = np.where(rng.random(shape) < 0.5, rng.choice(EXTREMES, shape), x)
    return x.astype(kind_of_dtype)


def _sorted_positions(x, axis):
    """NaN is the largest, and all zeros are one number; NumPy agrees."""
    wide = x.astype(np.float64) if x.dtype.itemsize < 4 and x.dtype.kind != "i" else x
    return np.argsort(wide, axis=axis, kind="stable")


@functools.partial(jax.jit, static_argnums=1)
def _each(x, axis, ranks):
    key = ordered_bits(x)
    return jax.vmap(lambda rank: _selection._bisected(key, axis, rank))(ranks)


@pytest.mark.parametrize("kind", ["distinct", "equal", "extreme"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_a_stable_sort(dtype, kind):
    for shape, axis in [((3, 8), 1), ((2, 5, 3), 1)]:
        x = _values(shape, dtype, kind)
        ranks = np.arange(shape[axis])
        with jax.enable_x64(True):
            found = np.asarray(_each(x, axis, ranks))
        assert found.dtype == np.int64
        wanted = np.moveaxis(_sorted_positions(x, axis), axis, 0)
        assert np.array_equal(found.squeeze(axis + 1), wanted), shape


@functools.partial(jax.jit, static_argnums=(1, 2))
def _ordered(x, axis, descending):
    return order(x, axis, descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_whole_order(dtype, descending):
    shape = (4, 9, 3)
    for axis, kind in itertools.product((1, 2), ["distinct", "equal", "extreme"]):
        x = _values(shape, dtype, kind)
        with jax.enable_x64(True):
            found = np.asarray(_ordered(x, axis, descending))
        wanted = _sorted_positions(np.flip(x, axis) if descending else x, axis)
        if descending:
            wanted = shape[axis] - 1 - np.flip(wanted, axis)
        assert found.dtype == np.int64
        assert np.array_equal(found, wanted), (axis, kind)


def test_a_rank_for_each_row():
    x = _values((6, 10), "float32", "equal")
    rank = np.arange(6)[:, None] + 2
    with jax.enable_x64(True):
        found = np.asarray(_each(x, 1, rank[None]))[0]
    assert np.array_equal(found, np.take_along_axis(_sorted_positions(x, 1), rank, 1))


@pytest.mark.parametrize("kind", ["distinct", "equal"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_many_elements(dtype, kind):
    """From so many elements on it is bisection; the results are those of sorting."""
    assert 130 * 131 >= _selection._MANY
    values = _values((130, 131), dtype, kind)
    x = torch.from_numpy(values)
    for dim in (0, 1):
        order = np.argsort(values, axis=dim, kind="stable")
        for k in (1, 66, 130):
            found = x.kthvalue(k, dim)
            wanted = order.take(k - 1, dim)
            assert found.indices.tolist() == wanted.tolist()
            assert torch.equal(found.values, x.sort(dim).values.select(dim, k - 1))
        at = (values.shape[dim] - 1) // 2
        assert x.median(dim).indices.tolist() == order.take(at, dim).tolist()
        if values.dtype.kind == "f":
            assert x.nanmedian(dim).indices.tolist() == order.take(at, dim).tolist()
    flat = np.sort(values.reshape(-1))
    assert x.median().item() == flat[(flat.size - 1) // 2]


def test_numbers_that_are_none():
    values = _values((130, 131), "float32", "distinct")
    values[3, 5:] = np.nan
    values[4, 7] = np.nan
    values[5] = np.nan
    x = torch.from_numpy(values)
    assert x.median(1).indices[3:6].tolist() == [5, 7, 0]
    assert x.nanmedian(1).indices[5].item() == 0
    kept = np.sort(values[3, :5])
    assert x.nanmedian(1).values[3].item() == kept[2]
    assert x.median().isnan()
    rest = np.sort(values[~np.isnan(values)])
    assert x.nanmedian().item() == rest[(rest.size - 1) // 2]


def test_gradients_of_many_elements():
    values = _values((130, 131), "float64", "distinct")
    x = torch.from_numpy(values).requires_grad_()
    weights = torch.arange(130.0, dtype=torch.float64)
    (x.median(1).values * weights).sum().backward()
    expected = np.zeros_like(values)
    expected[range(130), np.argsort(values, 1)[:, 65]] = np.arange(130.0)
    assert np.array_equal(x.grad.numpy(), expected)
    x.grad = None
    x.median().backward()
    assert x.grad.nonzero().tolist() == [
        list(np.unravel_index(np.argsort(values.reshape(-1))[8514], (130, 131)))
    ]


def test_mapped():
    values = _values((4, 5, 3300), "float32", "equal")
    x = torch.from_numpy(values)
    mapped = torch.func.vmap(lambda row: row.median(-1))(x)
    assert torch.equal(mapped.indices, x.median(-1).indices)
