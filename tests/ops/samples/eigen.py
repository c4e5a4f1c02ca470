"""Samples of the operators in `_ops/eigen.py`.

Vectors have a sign or a phase that libraries choose: what does not depend on it is
compared in `tests/functions/test_linalg.py`.
"""

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

SQUARE = doubles(3, 3) + np.diag([1.0, 2.0, 4.0])
COMPLEX = complexes(3, 3, dtype="complex128") + np.diag([1.0, 2.0, 4.0])
NAN = float("nan")


def _wrong() -> Iterator[Sample]:
    yield sample(np.zeros((2, 0, 0)))
    yield sample(floats(3)).raises()
    yield sample(floats(2, 3)).raises()
    yield sample(ints(2, 2)).raises()


@samples("eigh")
def eigh() -> Iterator[Sample]:
    yield from _wrong()
    yield sample(floats(2, 2).astype("float16")).raises()
    yield sample(floats(2, 2), "X").raises()
    yield sample(np.full((3, 3), NAN)).raises()


@samples("eigvalsh")
def eigvalsh() -> Iterator[Sample]:
    yield sample(SQUARE).twice()
    yield sample(COMPLEX, UPLO="U")
    yield from _wrong()


@samples("eigvals")
def eigvals() -> Iterator[Sample]:
    yield sample(SQUARE).twice()
    yield sample(np.stack([SQUARE, SQUARE.T]))
    yield sample(COMPLEX)
    yield from _wrong()


@samples("eig")
def eig() -> Iterator[Sample]:
    yield from _wrong()
    yield sample(f32([[1, NAN], [0, 1]])).raises()


@samples("svd")
def svd() -> Iterator[Sample]:
    yield sample(np.zeros((2, 0, 3)))
    yield sample(np.zeros((3, 0)), full_matrices=False)
    yield sample(floats(3)).raises()
    yield sample(ints(2, 2)).raises()
    yield sample(floats(2, 2).astype("float16")).raises()
    yield sample(floats(2, 2), driver="gesvd").raises()
    yield sample(np.stack([np.eye(3), np.full((3, 3), NAN)])).raises()


@samples("svdvals")
def svdvals() -> Iterator[Sample]:
    yield sample(SQUARE).twice()
    yield sample(doubles(2, 4, 2))
    yield sample(complexes(2, 3, dtype="complex128"))
    yield sample(np.zeros((2, 0, 3)))
    yield sample(floats(3)).raises()
    yield sample(f32([[1, NAN], [0, 1]])).raises()
