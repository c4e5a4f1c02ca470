"""Products of integers by those of float64, against NumPy's, which wrap around."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import torchshim as torch
from torchshim._ops import _integer_products

DTYPES = ["int8", "uint8", "int16", "int64"]
# The operands' shapes, and what is contracted and shared.
SHAPES = [
    ((3, 5), (5, 4), (((1,), (0,)), ((), ()))),
    ((7,), (7,), (((0,), (0,)), ((), ()))),
    ((2, 3, 5), (2, 4, 5), (((2,), (2,)), ((0,), (0,)))),
    ((3, 2, 5), (5, 4, 3), (((0, 2), (2, 0)), ((), ()))),
    ((1, 700), (700, 2), (((1,), (0,)), ((), ()))),
]


def _integers(shape, dtype, kind, seed):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    if kind == "extreme":
        return rng.choice([info.min, info.min + 1, info.max, 0], shape).astype(dtype)
    low, high = (max(info.min, -3), 4) if kind == "small" else (info.min, info.max)
    return rng.integers(low, high, shape, dtype)


def _expected(a, b, dims):
    (left, right), (batch, _) = dims
    with np.errstate(over="ignore"):
        if batch:
            return np.stack([x @ y.T for x, y in zip(a, b, strict=True)])
        return np.tensordot(a, b, (left, right))


_product = jax.jit(_integer_products.product, static_argnums=2)


@pytest.mark.parametrize("kind", ["small", "large", "extreme"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype, kind):
    for left, right, dims in SHAPES:
        a, b = _integers(left, dtype, kind, 0), _integers(right, dtype, kind, 1)
        with jax.enable_x64(True):
            found = _product(a, b, dims)
        assert found.dtype == dtype
        assert np.array_equal(found, _expected(a, b, dims)), (left, right)


def test_one_large_operand():
    a, b = _integers((4, 6), "int64", "small", 0), _integers((6, 3), "int64", "", 1)
    dims = (((1,), (0,)), ((), ()))
    for x, y in ((a, b), (b.T, a.T)):
        with jax.enable_x64(True):
            found = np.asarray(_integer_products.product(x, y, dims))
        assert np.array_equal(found, x @ y)


def test_pieces_are_exact_for_any_number_of_terms():
    for terms in (1, 2, 3, 500, 512, 513, 1 << 20, 1 << 21):
        bits = _integer_products._piece_bits(terms)
        assert terms * ((1 << bits) - 1) ** 2 < 1 << 53
        assert bits >= _integer_products._SHORTEST


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_operators_multiply(dtype):
    """From so many products on they are made so; the results are PyTorch's."""
    assert 90**3 >= _integer_products._MANY
    a, b = _integers((90, 90), dtype, "large", 0), _integers((90, 90), dtype, "", 1)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    expected = a @ b
    for found in (x @ y, torch.mm(x, y), torch.tensordot(x, y, 1), x.addmm(x, y) - x):
        assert found.dtype == x.dtype
        assert np.array_equal(found.numpy(), expected)
    assert np.array_equal(torch.stack([x, y]).bmm(torch.stack([y, x]))[0], expected)
    mapped = torch.func.vmap(torch.mv, (None, 1), 1)(x, y)
    assert np.array_equal(mapped.numpy(), expected)
