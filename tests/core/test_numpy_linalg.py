"""Factorizations computed by NumPy: what XLA gives, to the bit, as both call LAPACK."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from torchshim._core import interpret
from torchshim._core.numpy_rules import NoRule

# Matrices, batches of them, and such as LAPACK works on in blocks.
SQUARE = [(1, 1), (2, 3, 4, 4), (70, 70)]
OBLONG = [*SQUARE, (2, 6, 3), (3, 6), (90, 40), (40, 90)]
DTYPES = [np.float32, np.float64]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def some(shape, dtype):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def positive(shape, dtype):
    x = some(shape, dtype)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1], dtype=dtype)


def same(function, *arrays):
    with jax.enable_x64(True):
        expected = jax.tree.leaves(jax.jit(function)(*arrays))
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    with np.errstate(all="ignore"):
        got = interpret.plan(function, avals)(*arrays)
    assert len(got) == len(expected)
    for mine, its in zip(got, expected, strict=True):
        assert (mine.shape, mine.dtype) == (its.shape, its.dtype)
        np.testing.assert_array_equal(mine, np.asarray(its))


@each_dtype
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize(
    "function",
    [
        jnp.linalg.cholesky,
        lambda x: jnp.linalg.cholesky(-x),
        lambda x: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(x), True), x),
        lax.linalg.lu,
        jnp.linalg.inv,
        lambda x: jnp.linalg.inv(x * 0),
        lambda x: jnp.linalg.solve(x, x[..., :1]),
        jnp.linalg.eigh,
        lambda x: jnp.linalg.eigh(x, UPLO="U"),
    ],
)
def test_square(function, shape, dtype):
    same(function, positive(shape, dtype))


@each_dtype
@pytest.mark.parametrize("shape", OBLONG)
@pytest.mark.parametrize(
    "function",
    [
        lax.linalg.lu,
        lambda x: lax.linalg.qr(x, full_matrices=False),
        lambda x: lax.linalg.qr(x, full_matrices=True),
        lambda x: jnp.linalg.svd(x, full_matrices=False),
        lambda x: jnp.linalg.svd(x, full_matrices=True),
        lambda x: jnp.linalg.svd(x, compute_uv=False),
    ],
)
def test_oblong(function, shape, dtype):
    same(function, some(shape, dtype))


@each_dtype
@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose_a", [True, False])
def test_triangular(dtype, left_side, lower, transpose_a):
    for unit in True, False:
        for shape, other in ((2, 4, 4), (2, 4, 4)), ((4, 4), (4, 2)):
            if not left_side:
                other = (*other[:-2], other[-1], other[-2])
            same(
                lambda a, b, unit=unit: lax.linalg.triangular_solve(
                    a,
                    b,
                    left_side=left_side,
                    lower=lower,
                    transpose_a=transpose_a,
                    unit_diagonal=unit,
                ),
                positive(shape, dtype),
                some(other, dtype),
            )


@each_dtype
def test_determinants(dtype):
    for shape in (2, 2), (3, 3), (6, 6), (2, 4, 4):
        x = some(shape, dtype)
        avals = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
        [found] = interpret.plan(jnp.linalg.det, avals)(x)
        np.testing.assert_allclose(found, np.linalg.det(x), 1e-4)


@each_dtype
@pytest.mark.parametrize("function", [jnp.linalg.cholesky, jnp.linalg.svd])
def test_what_is_no_number(function, dtype):
    same(function, np.full((3, 3), np.nan, dtype))


@pytest.mark.parametrize("k", [0, 1, 5, 11])
def test_largest(k):
    edges = [0.0, -0.0, np.nan, -np.nan, np.inf, 1, 1, -np.inf, -1, -0.0, 0.0]
    for dtype in DTYPES:
        same(lambda x: lax.top_k(x, k), np.array(edges, dtype))
    random = np.random.default_rng(0)
    for dtype in "int8 int16 int32 int64 uint8 uint32 uint64 float32".split():
        x = random.integers(0, 5, (3, 2, 12)).astype(dtype)
        x = x - x.dtype.type(2)  # of unsigned integers some are very large then
        same(lambda x: lax.top_k(x, k), x)
        same(lambda x: lax.top_k(x, 2, axis=0), x)


def test_not_by_these():
    x = jax.ShapeDtypeStruct((3, 3), np.float32)
    for function in (
        lambda x: lax.linalg.qr(x, pivoting=True),
        lambda x: lax.linalg.eigh(x, subset_by_index=(0, 1)),
        lambda x: lax.linalg.svd(x, algorithm=lax.linalg.SvdAlgorithm.QR),
        lambda x: jnp.linalg.cholesky(x + 1j),
        lambda x: jnp.linalg.eig(x),
    ):
        with pytest.raises(NoRule):
            interpret.plan(function, [x])
