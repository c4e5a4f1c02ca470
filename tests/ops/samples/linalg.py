"""Samples of the operators in `_ops/linalg.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    complexes,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

SQUARE = doubles(3, 3) + 3 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.T


@samples("det", "linalg_det", "logdet", "slogdet", "linalg_inv", "matrix_exp", "pinv")
def squares() -> Iterator[Sample]:
    yield sample(SQUARE).twice().without("keywords")
    yield sample(np.stack([SQUARE, SQUARE.T])).without("keywords")
    yield sample(floats(3)).raises()


@samples("solve")
def equations() -> Iterator[Sample]:
    yield sample(SQUARE, doubles(3, 2)).twice()
    yield sample(SQUARE, doubles(3))
    yield sample(SQUARE, doubles(2, 3), left=False)
    yield sample(np.zeros((2, 2), np.float32), floats(2)).raises()
    yield sample(floats(3, 3), floats(4)).raises()


@samples("solve_triangular")
def triangles() -> Iterator[Sample]:
    yield sample(SQUARE, doubles(3, 2), upper=True).without("keywords", "out")
    yield sample(SQUARE, doubles(2, 3), upper=False, left=False).without("keywords")


@samples("cholesky")
def positive() -> Iterator[Sample]:
    yield sample(POSITIVE).twice()
    yield sample(POSITIVE, upper=True)
    yield sample(f32([[1, 2], [2, 1]])).raises()
    yield sample(floats(2, 3)).raises()


@samples("qr")
def orthogonal() -> Iterator[Sample]:
    yield sample(doubles(3, 2))
    yield sample(floats(3, 2), "foo").raises()


@samples("svdvals", "eigvalsh")
def values() -> Iterator[Sample]:
    yield sample(POSITIVE)
    yield sample(floats(3)).raises()


@samples("matrix_norm")
def norms() -> Iterator[Sample]:
    yield sample(doubles(2, 3)).twice()
    for order in ("nuc", 1, -1, 2, -2, float("inf"), float("-inf")):
        yield sample(doubles(2, 3), order)
    yield sample(doubles(2, 3, 2), 1, (0, 2), True)
    yield sample(complexes(2, 2))
    yield sample(ints(2, 2)).raises()
    yield sample(floats(2, 2), 3).raises()


@samples("eigh", "svd")
def vectors() -> Iterator[Sample]:
    # Vectors have a sign that libraries choose: `svdvals` and `eigvalsh` show values.
    yield sample(floats(3)).raises()
    yield sample(ints(2, 2)).raises()
