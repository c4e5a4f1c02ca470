"""Samples of the operators in `_ops/histogram.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import (
    Sample,
    bf16,
    complexes,
    constant,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")
X = constant(floats(2, 3))


@samples("histc")
def counts() -> Iterator[Sample]:
    yield sample(floats(2, 3), 4, -1, 1.5)
    yield sample(floats(2, 3), 4)
    yield sample(doubles(20))
    yield sample(f32([0, 1, 2, 3, 4]), 4, 0, 3)
    yield sample(f32([2, 2]), 4)
    yield sample(f32([NAN, 1, 2]), 2, 0, 2)
    yield sample(bf16([1.0, 2.5, 0.1]), 3)
    yield sample(floats(0), 3)
    yield sample(floats(3), bins=4, min=5, max=1).raises()
    yield sample(floats(3), 0).raises()
    yield sample(floats(3), -1).raises()
    yield sample(f32([NAN, 1])).raises()
    yield sample(floats(3), 3, NAN, 1).raises()
    yield sample(ints(3)).raises()
    yield sample(complexes(3)).raises()


@samples("histogram.bins")
def histograms() -> Iterator[Sample]:
    yield sample(X, 4)
    yield sample(X, bins=3, range=(-1.0, 2.0))
    yield sample(X, 3, weight=constant(doubles(2, 3).astype("float32")), density=True)
    yield sample(constant(f32([2, 2])), 4)
    yield sample(constant(doubles(10)), 3, density=True)
    yield sample(constant(floats(0)), 3)
    yield sample(X, 3, range=(3.0, 1.0)).raises()
    yield sample(X, 0).raises()
    yield sample(X, 3, weight=constant(floats(2))).raises()
    yield sample(X, 3, weight=constant(doubles(2, 3))).raises()
    yield sample(ints(3), 3).raises()


@samples("histogram.edges")
def histograms_between() -> Iterator[Sample]:
    yield sample(X, constant(f32([-2, -0.5, 0, 1])))
    yield sample(X, constant(f32([-1, 0, 1.5])), density=True)
    yield sample(X, constant(f32([-1, 0])), weight=constant(floats(2, 3)))
    yield sample(X, constant(floats(2, 2))).raises()
    yield sample(X, constant(floats(0))).raises()
    yield sample(X, constant(doubles(3))).raises()
