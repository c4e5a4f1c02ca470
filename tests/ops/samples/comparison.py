"""Samples of the operators in `_ops/comparison.py`."""

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


SPECIAL = f32([0.0, -0.0, NAN, INF, -INF, 1.5])
OTHER = f32([-0.0, 1.0, NAN, INF, INF, 1.5])


@samples("eq", "ne", "lt", "le", "gt", "ge")
def compares() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3))
    yield sample(SPECIAL, OTHER)
    yield sample(ints(3), 1)
    yield sample(ints(3), 0.5)
    yield sample(ints(3), floats(2, 1))
    yield sample(bools(3), bools(3))
    yield sample(bf16([1, 2]), 1.5)
    yield sample(floats(3, 2).T, 0.0)
    yield sample(floats(3), floats(2)).raises()


@samples("isclose")
def isclose() -> Iterator[Sample]:
    yield sample(SPECIAL, OTHER)
    yield sample(SPECIAL, OTHER, equal_nan=True)
    yield sample(f32([1, 1, 100]), f32([1.0000001, 1.01, 101]), 0.02, 0.001)
    yield sample(ints(3), ints(3) + 1, rtol=0.5)
    yield sample(np.array([0, 1, 9], np.uint8), np.array([1, 3, 5], np.uint8), 0.5, 0.5)
    yield sample(np.array([-128, 100], np.int8), np.array([127, -100], np.int8), 1.1)
    yield sample(ints(1) + (1 << 40), ints(1) + (1 << 40) + 3, 0.0, 1e-9)
    yield sample(bools(3), bools(3))
    yield sample(bools(3), ~bools(3), rtol=0.0, atol=1.0)
    yield sample(complexes(3), complexes(3))
    yield sample(floats(3), doubles(3)).raises()
    yield sample(floats(3), floats(3), rtol=-1.0).raises()
    yield sample(floats(3), floats(3), atol=-0.5).raises()


@samples("isnan", "isinf", "isfinite", "isreal", "isposinf", "isneginf")
def tests() -> Iterator[Sample]:
    yield sample(SPECIAL)
    yield sample(ints(3))
    yield sample(bools(3))
    yield sample(bf16([NAN, 1, INF]))
    yield sample(floats(3, 2).T)


@samples("maximum", "minimum", "fmax", "fmin")
def extremes() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3))
    yield sample(f32([NAN, 1, 1, NAN, 0]), f32([1, NAN, 1, NAN, -0.0]))
    yield sample(ints(3), floats(3))
    yield sample(ints(3), ints(3)[::-1].copy())
    yield sample(bools(3), bools(3))
    yield sample(bf16([1, 2]), bf16([2, 1]))
    yield sample(complexes(3), complexes(3)).raises()
    yield sample(floats(3), 1.0).raises()


@samples("clamp")
def clamp() -> Iterator[Sample]:
    yield sample(f32([0, 1, NAN, 0.5, 2]), 0.0, 1.0)
    yield sample(floats(2, 3), min=-0.5)
    yield sample(floats(2, 3), max=0.5)
    yield sample(
        f32([0, 1, NAN, 0.5, 2, 3]), f32([0, 0, 0, NAN, 3, 1]), f32([1, 1, 1, 1, 1, 3])
    )
    yield sample(floats(2, 3), floats(3))
    yield sample(floats(2, 3), None, floats(3))
    yield sample(floats(3), 2.0, 1.0)
    yield sample(floats(3), NAN)
    yield sample(ints(3), 0, 2)
    # The text of the in-place error names C++ types in this one operator.
    yield sample(ints(3), 0.5).without("inplace")
    yield sample(bools(3), 0).without("inplace")
    yield sample(bf16([1, 2]), 1.5)
    yield sample(floats(3)).raises()
    yield sample(complexes(3), 0).raises()


@samples("clamp_min", "clamp_max")
def clamp_one() -> Iterator[Sample]:
    yield sample(f32([0, 1, NAN]), f32([0, 2, 1]))
    yield sample(floats(2, 3), 0.5)
    yield sample(ints(3), 1)
    yield sample(complexes(3), 0).raises()


@samples("where")
def where() -> Iterator[Sample]:
    yield sample(bools(2, 3), doubles(2, 3), doubles(3)).twice()
    yield sample(bools(3), floats(3), 2.5)
    yield sample(bools(3), 1, 2.0)
    yield sample(bools(3), ints(3), floats(2, 1))
    yield sample(bools(3), floats(3), doubles(1).reshape(()))
    yield sample(bools(3), bf16([1, 2, 3]), 0)
    yield sample(bools(3), complexes(3), floats(3)).without("grad")
    yield sample(bools(2, 3), floats(3, 2).T, 0.0)
    yield sample(ints(3), floats(3), 1.0).raises()
    yield sample(bools(2), floats(3), 1.0).raises()
