"""Samples of the operators in `_ops/powers.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    bf16,
    bools,
    complexes,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")


@samples("pow")
def powers() -> Iterator[Sample]:
    yield sample(doubles(2, 3, low=0.1), doubles(3)).twice()
    yield sample(f32([0, 0, 0, -1, 2]), f32([0, -1, 2, 0.5, NAN]))
    yield sample(floats(2, 3), 2).twice()
    yield sample(f32([-2, 0, 3]), 3).twice()
    yield sample(f32([0, NAN]), 0)
    yield sample(f32([0, 4, 9]), 0.5)
    yield sample(f32([0, 4, -2]), -1)
    yield sample(0.0, f32([0, 1, -1]))
    yield sample(2, floats(3))
    yield sample(-2, f32([1, 2]))
    yield sample(2, 3).raises()
    yield sample(ints(3), 2)
    yield sample(ints(3), 2.0)
    yield sample(ints(3), 70)
    yield sample(ints(3), 2**64).raises()
    yield sample(ints(3), np.int64([-1, -2, -3]))
    yield sample(np.int64([1, -1, -1, 2, 0]), np.int64([-3, -3, -2, -1, 0]))
    yield sample(ints(3, dtype="int8"), 5)
    yield sample(ints(3, dtype="uint8"), 3)
    yield sample(2, ints(3))
    yield sample(bools(3), 2)
    yield sample(complexes(3), 2)
    yield sample(complexes(3), complexes(3))
    yield sample(bf16([2, 0.5]), 3)
    yield sample(ints(3), -1).raises()
    yield sample(bools(3), bools(3)).raises()
    yield sample(floats(3), floats(2)).raises()


@samples("square")
def square() -> Iterator[Sample]:
    yield sample(doubles(2, 3)).twice()
    yield sample(ints(3))
    yield sample(bools(3))
    yield sample(complexes(3))
