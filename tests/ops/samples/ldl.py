"""Samples of the operators in `_ops/ldl.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    complexes,
    constant,
    doubles,
    floats,
    ints,
    sample,
    samples,
)

# The first needs swaps and blocks of two rows, the second does not.
INDEFINITE = doubles(5, 5) + doubles(5, 5).T - np.diag(doubles(5, 5).diagonal() * 1.9)
POSITIVE = doubles(5, 5) @ doubles(5, 5).T + np.eye(5)
COMPLEX = complexes(4, 4, dtype="complex128")


@samples("ldl_factor_ex")
def ldl_factor_ex() -> Iterator[Sample]:
    yield sample(constant(np.tril(INDEFINITE)))
    yield sample(constant(POSITIVE))
    yield sample(constant(np.tril(np.stack([INDEFINITE, POSITIVE]))))
    yield sample(constant(np.tril(COMPLEX)))
    yield sample(constant(np.tril(COMPLEX)), hermitian=True)
    yield sample(constant(np.zeros((2, 2))))
    yield sample(constant(np.zeros((2, 0, 0))))
    yield sample(floats(2, 3)).raises()
    yield sample(ints(2, 2)).raises()
    yield sample(floats(2, 2).astype("float16")).raises()


@samples("ldl_factor")
def ldl_factor() -> Iterator[Sample]:
    yield sample(constant(np.tril(INDEFINITE)))
    yield sample(floats(2, 3)).raises()


@samples("ldl_solve")
def ldl_solve() -> Iterator[Sample]:
    # Of 4 rows: one alone, a block of two swapped with the last, one alone.
    pivots = constant(np.array([1, -4, -4, 4], "int32"))
    yield sample(constant(doubles(4, 4)), pivots, constant(doubles(4, 2)))
    yield sample(constant(COMPLEX), pivots, constant(complexes(4, 1).astype("c16")))
    plain = constant(np.array([2, 2, 4, 4], "int32"))
    right = constant(doubles(2, 4, 2))
    yield sample(constant(doubles(4, 4)), plain, constant(doubles(4, 2)))
    yield sample(
        constant(np.stack([POSITIVE[:4, :4]] * 2)),
        constant(np.stack([plain.array] * 2)),
        right,
    )
    yield sample(constant(doubles(4, 3)), plain, right).raises()
