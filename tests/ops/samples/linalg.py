"""Samples of the operators in `_ops/linalg.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    complexes,
    constant,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

SQUARE = doubles(3, 3) + 3 * np.eye(3)
COMPLEX = complexes(3, 3, dtype="complex128") + 3 * np.eye(3)
PAIR = np.stack([SQUARE, SQUARE.T])
# The second of two matrices has no inverse.
ONE_BAD = np.stack([np.eye(3), np.diag([1.0, 0.0, 1.0])])


@samples("det", "linalg_det", "logdet", "slogdet", "linalg_slogdet")
def determinants() -> Iterator[Sample]:
    yield sample(SQUARE).twice().without("keywords")
    yield sample(PAIR).without("keywords")
    yield sample(COMPLEX).without("keywords")
    yield sample(np.zeros((0, 0)))
    # Determinants beyond their dtype: of some, PyTorch's gradients are 0 or NaN.
    yield sample(f32([[1e30, 1], [1, 1e30]])).without("grad", "keywords")
    yield sample(f32([[[0, 1e-30], [1e-30, 0]], PAIR[0, :2, :2]])).without("keywords")
    yield sample(np.eye(2) * 1e300).without("grad", "keywords")
    yield sample(floats(3)).raises()
    yield sample(floats(2, 3)).raises()


@samples("matrix_exp")
def matrix_exp() -> Iterator[Sample]:
    yield sample(SQUARE).twice().without("keywords")
    yield sample(COMPLEX).without("keywords")
    yield sample(np.zeros((0, 3, 3)))
    yield sample(ints(3, 3)).raises()


@samples("linalg_inv", "inv_ex")
def inverses() -> Iterator[Sample]:
    yield sample(SQUARE).twice()
    yield sample(PAIR)
    yield sample(COMPLEX)
    yield sample(np.zeros((2, 0, 0)))
    yield sample(floats(3)).raises()
    yield sample(floats(2, 3)).raises()
    yield sample(ints(2, 2)).raises()
    yield sample(floats(2, 2).astype("float16")).raises()


@samples("solve", "solve_ex")
def equations() -> Iterator[Sample]:
    yield sample(SQUARE, doubles(3, 2)).twice()
    yield sample(SQUARE, doubles(3))
    yield sample(PAIR, doubles(2, 3))
    yield sample(PAIR, doubles(3, 2))
    yield sample(SQUARE, doubles(2, 3), left=False)
    yield sample(COMPLEX, complexes(3, 2, dtype="complex128"))
    yield sample(np.zeros((0, 0)), np.zeros((0, 2)))
    yield sample(floats(3, 3), floats(4)).raises()
    yield sample(floats(3, 3), doubles(3)).raises()
    yield sample(ints(3, 3), ints(3)).raises()


@samples("solve_triangular")
def triangles() -> Iterator[Sample]:
    yield sample(SQUARE, doubles(3, 2), upper=True).twice().without("keywords", "out")
    yield sample(SQUARE, doubles(2, 3), upper=False, left=False).without("keywords")
    yield sample(PAIR, doubles(3, 2), upper=False, unitriangular=True)
    yield sample(COMPLEX, complexes(3, 2, dtype="complex128"), upper=True)
    yield sample(floats(3, 3), floats(3), upper=True).raises()
    yield sample(floats(3, 3), floats(4, 2), upper=True).raises()


@samples("matrix_norm")
def norms() -> Iterator[Sample]:
    yield sample(doubles(2, 3)).twice()
    for order in ("nuc", 1, -1, 2, -2, float("inf"), float("-inf")):
        yield sample(doubles(2, 3), order)
    yield sample(doubles(2, 3, 2), 1, (0, 2), True)
    yield sample(complexes(2, 2))
    yield sample(np.zeros((2, 3))).twice()
    for order in ("fro", "nuc", 1, 2, float("inf")):
        yield sample(constant(np.zeros((0, 0))), order)
    yield sample(ints(2, 2)).raises()
    yield sample(floats(2, 2), 3).raises()
    for order in (-1, -2, float("-inf")):
        yield sample(np.zeros((2, 0, 0)), order).raises()
    yield sample(np.full((2, 2, 2), np.nan), "nuc", (0, 1)).raises()


@samples("linalg_cross")
def cross() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(2, 3) - 1).twice()
    yield sample(doubles(3, 2), doubles(3, 1), dim=0)
    yield sample(complexes(3), complexes(3) + 1)
    yield sample(ints(2, 3), ints(1, 3) + 1)
    yield sample(floats(2, 3), floats(3)).raises()
    yield sample(floats(2, 2), floats(2, 2)).raises()
