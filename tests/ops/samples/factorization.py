"""Samples of the operators in `_ops/factorization.py`."""

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


@samples("lu_factor", "lu_factor_ex")
def lu_factor() -> Iterator[Sample]:
    yield sample(SQUARE).twice()
    yield sample(doubles(4, 3))
    yield sample(doubles(2, 3, 4))
    yield sample(COMPLEX)
    yield sample(np.zeros((2, 0, 3)))
    yield sample(floats(3)).raises()
    yield sample(ints(2, 2)).raises()
    yield sample(floats(2, 2), pivot=False).raises()


@samples("lu_solve")
def lu_solve() -> Iterator[Sample]:
    swaps = constant(np.array([2, 3, 3], "int32"))
    right = complexes(3, 3, dtype="complex128")
    yield sample(SQUARE, swaps, doubles(3, 2)).twice()
    yield sample(COMPLEX, swaps, right, left=True, adjoint=True)
    yield sample(COMPLEX, swaps, right, left=False, adjoint=True)
    yield sample(COMPLEX, swaps, right, left=False)
    yield sample(SQUARE, constant(ints(3)), doubles(3, 2)).raises()
    yield sample(SQUARE, swaps, doubles(3)).raises()
    yield sample(SQUARE, swaps, floats(3, 2)).raises()
    yield sample(SQUARE, constant(np.array([1, 2], "int32")), doubles(3, 2)).raises()
    yield sample(doubles(3, 2), swaps, doubles(3, 2)).raises()


@samples("linalg_qr")
def linalg_qr() -> Iterator[Sample]:
    yield sample(doubles(3, 2)).twice()
    yield sample(doubles(2, 2, 3), "complete")
    yield sample(complexes(3, 3, dtype="complex128"))
    yield sample(doubles(3, 2), "r").without("grad")
    yield sample(doubles(3, 2), "complete").without("grad")
    yield sample(np.zeros((2, 0, 3)))
    yield sample(floats(3, 2), "foo").raises()
    yield sample(floats(3)).raises()
    yield sample(ints(2, 2)).raises()


def _reflections() -> tuple[np.ndarray, np.ndarray]:
    return doubles(4, 3) / 2, doubles(3, low=0.1, high=0.9)


@samples("householder_product", "orgqr")
def reflections() -> Iterator[Sample]:
    yield sample(*_reflections()).twice().without("keywords")
    yield sample(complexes(2, 3, 2), complexes(2, 2))
    yield sample(doubles(3, 3), doubles(2))
    yield sample(floats(3, 4), floats(3)).raises()
    yield sample(floats(3, 2), floats(3)).raises()
    yield sample(floats(3, 2), doubles(2)).raises()
    yield sample(floats(2, 3, 2), floats(3, 2)).raises()
    yield sample(floats(2, 3, 2), floats(2)).raises()


@samples("ormqr")
def ormqr() -> Iterator[Sample]:
    a, tau = _reflections()
    yield sample(a, tau, doubles(4, 2)).without("keywords")
    yield sample(constant(a), constant(tau), doubles(2, 4), False, True)
    c = complexes(3, 2, dtype="complex128")
    yield sample(c, c[0], c + 1, True, True)
    yield sample(f32(a), f32(tau), floats(3, 2)).raises()
    yield sample(f32(a), f32(tau[:2]), floats(4, 2)).raises()
    yield sample(f32(a), f32(tau), floats(1, 4, 2)).raises()
    yield sample(floats(2, 4, 3), floats(3, 3), floats(2, 4, 2)).raises()
    yield sample(floats(2, 4, 3), floats(2, 3), floats(3, 4, 2)).raises()
    yield sample(f32(a), f32(tau), doubles(4, 2)).raises()
    yield sample(ints(4, 3), ints(3), ints(4, 2)).raises()


@samples("geqrf")
def geqrf() -> Iterator[Sample]:
    yield sample(doubles(3, 2)).without("grad")
    yield sample(doubles(2, 2, 3)).without("grad")
    yield sample(floats(3)).raises()
