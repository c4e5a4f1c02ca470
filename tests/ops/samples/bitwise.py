"""Samples of the operators in `_ops/bitwise.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    bools,
    complexes,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")


@samples("logical_and", "logical_or", "logical_xor")
def logical() -> Iterator[Sample]:
    yield sample(bools(2, 3), bools(3))
    yield sample(ints(3), floats(3))
    yield sample(f32([0, NAN, 2]), f32([1, 0, NAN]))
    yield sample(complexes(3), bools(3))
    yield sample(floats(3), 1).raises()
    yield sample(2, 3).raises()


@samples("logical_not")
def logical_not() -> Iterator[Sample]:
    yield sample(bools(3))
    yield sample(f32([0, -0.0, NAN, 2]))
    yield sample(ints(3, dtype="uint8"))
    yield sample(complexes(3))


@samples("bitwise_not")
def bitwise_not() -> Iterator[Sample]:
    yield sample(bools(3))
    yield sample(ints(3))
    yield sample(ints(3, dtype="uint8"))
    yield sample(floats(3)).raises()


@samples("bitwise_and", "bitwise_or", "bitwise_xor")
def bits() -> Iterator[Sample]:
    yield sample(bools(2, 3), bools(3))
    yield sample(ints(3), ints(2, 1))
    yield sample(ints(3, dtype="uint8"), ints(3, dtype="int8"))
    yield sample(ints(3), True)
    yield sample(bools(3), 6)
    yield sample(6, ints(3)).without("keywords")
    yield sample(floats(3), floats(3)).raises()
    yield sample(ints(3), 1.5).raises()
    yield sample(2, 3).raises()


@samples("bitwise_left_shift", "bitwise_right_shift")
def shifts() -> Iterator[Sample]:
    yield sample(np.int64([1, 5, -5, -5, 7]), np.int64([3, 65, 2, 64, -1]))
    yield sample(ints(3, dtype="uint8"), np.uint8([1, 7, 9]))
    yield sample(ints(3, dtype="int8"), 3)
    yield sample(ints(3), 70)
    yield sample(2, np.int64([1, 2])).without("keywords")
    yield sample(bools(3), bools(3)).raises()
    yield sample(floats(3), 1).raises()
