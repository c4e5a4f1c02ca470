"""Samples of the operators in `_ops/cholesky.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    complexes,
    doubles,
    floats,
    ints,
    sample,
    samples,
)

SQUARE = doubles(3, 3) + 3 * np.eye(3)
COMPLEX = complexes(3, 3, dtype="complex128") + 3 * np.eye(3)
REAL_DIAGONAL = COMPLEX - 1j * np.diag(COMPLEX.diagonal().imag)
POSITIVE = SQUARE @ SQUARE.T
HERMITIAN = COMPLEX @ COMPLEX.conj().T
PAIR = np.stack([POSITIVE, 2 * POSITIVE])
# Only one triangle is that of a positive matrix.
HALF = np.tril(POSITIVE) + np.triu(doubles(3, 3), 1)


@samples("linalg_cholesky", "cholesky_ex")
def positive() -> Iterator[Sample]:
    yield sample(POSITIVE).twice()
    yield sample(POSITIVE, upper=True)
    yield sample(HALF)
    yield sample(HERMITIAN)
    yield sample(HERMITIAN, upper=True).twice()
    yield sample(PAIR)
    yield sample(np.zeros((0, 0)))
    yield sample(floats(2, 3)).raises()
    yield sample(floats(2, 2).astype("float16")).raises()
    yield sample(ints(2, 2)).raises()


@samples("cholesky_solve")
def cholesky_solve() -> Iterator[Sample]:
    yield sample(doubles(3, 2), SQUARE).twice()
    yield sample(doubles(3, 2), SQUARE, True).twice()
    yield sample(complexes(3, 2, dtype="complex128"), COMPLEX).twice()
    yield sample(doubles(3, 1), PAIR)
    yield sample(floats(3), floats(3, 3)).raises()
    yield sample(floats(2, 2), floats(3, 3)).raises()


@samples("cholesky_inverse")
def cholesky_inverse() -> Iterator[Sample]:
    yield sample(SQUARE).twice()
    yield sample(REAL_DIAGONAL, upper=True).twice()
    yield sample(PAIR)
    yield sample(floats(2, 3)).raises()
