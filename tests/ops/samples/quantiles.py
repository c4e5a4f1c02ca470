"""Samples of the operators in `_ops/quantiles.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    constant,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")
X = floats(2, 3, 2)
TIES = f32([[1, 3, 3], [2, 2, 0]])
NANS = f32([[1, NAN, 3, 2], [NAN, 2, NAN, 5]])


@samples("quantile.scalar", "nanquantile.scalar")
def quantiles() -> Iterator[Sample]:
    yield sample(X, 0.3, 1)
    yield sample(X, 0.5)
    yield sample(doubles(2, 3), 1, 0, True)
    yield sample(X, 0.25, keepdim=True)
    for how in ("lower", "higher", "midpoint", "nearest"):
        yield sample(floats(2, 4), 0.4, 1, interpolation=how)
        yield sample(floats(2, 4), 0.5, 1, interpolation=how)
    yield sample(NANS, 0.3, 1)
    yield sample(f32([NAN, NAN]), 0.3)
    yield sample(f32([INF, 1, -INF]), 0.5)
    yield sample(f32(3.0), 0.5)
    yield sample(f32(3.0), 0.5, 0, True)
    yield sample(X, 1.5).raises()
    yield sample(X, 0.5, interpolation="abc").raises()
    yield sample(ints(3), 0.5).raises()
    yield sample(floats(3).astype("float16"), 0.5).raises()
    yield sample(floats(0), 0.5).raises()
    yield sample(X, 0.5, 3).raises()


@samples("quantile.tensor", "nanquantile.tensor")
def many_quantiles() -> Iterator[Sample]:
    q = constant(f32([0.1, 0.5, 1]))
    yield sample(X, q, 1)
    yield sample(X, q)
    yield sample(X, q, 0, keepdim=True)
    for how in ("linear", "midpoint", "higher"):
        yield sample(X, f32([0.1, 0.55]), 1, interpolation=how).twice()
    yield sample(X, constant(f32([0.1, 0.55]))).twice()
    yield sample(constant(X), f32([0.1, 0.55])).twice()
    yield sample(X, q, keepdim=True)
    yield sample(X, constant(f32(0.5)), 1)
    yield sample(NANS, q, 1)
    yield sample(f32(3.0), q)
    yield sample(f32(3.0), q, 0, True)
    yield sample(X, constant(f32([0.5, 1.5]))).raises()
    yield sample(X, constant(f32([[0.5]]))).raises()
    yield sample(X, constant(np.array([0.5]))).raises()
    yield sample(floats(0), q).raises()
