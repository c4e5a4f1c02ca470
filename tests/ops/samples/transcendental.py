"""Samples of the operators in `_ops/transcendental.py`."""

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


SPECIAL = f32([0.0, -0.0, NAN, INF, -INF, 1.0, -1.0])


def _unary(low: float = -2.0, high: float = 2.0) -> Iterator[Sample]:
    yield sample(doubles(2, 3, low=low, high=high)).twice()
    yield sample(SPECIAL)
    yield sample(floats(2, 3, low=low, high=high))
    yield sample(ints(3, low=1))
    yield sample(bools(3))
    yield sample(bf16([0.5, 0.25]))
    yield sample(floats(3, 2, low=low, high=high).T)


@samples("exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan")
def everywhere() -> Iterator[Sample]:
    yield from _unary()
    yield sample(complexes(3))
    yield sample(f32([10, -20, 80]))


@samples("exp2")
def exp2() -> Iterator[Sample]:
    yield from _unary()
    yield sample(f32([3, 10, -4, 126]))
    yield sample(complexes(3))


@samples("sigmoid")
def sigmoid() -> Iterator[Sample]:
    yield from _unary()
    yield sample(f32([-100, 100, 20]))
    yield sample(complexes(3))


@samples("log", "log2", "log10", "log1p")
def logarithms() -> Iterator[Sample]:
    yield from _unary(0.1, 4.0)
    yield sample(complexes(3))
    yield sample(f32([1, 2, 8, 1024, 10, 1000, 1e-3, 1e-7]))


@samples("asin", "acos", "atanh")
def inside() -> Iterator[Sample]:
    yield from _unary(-0.95, 0.95)
    yield sample(complexes(3))
    yield sample(f32([1, -1, 0])).twice()


@samples("acosh")
def acosh() -> Iterator[Sample]:
    yield from _unary(1.1, 4.0)
    yield sample(complexes(3))


@samples("sinc")
def sinc() -> Iterator[Sample]:
    yield from _unary()
    yield sample(complexes(3))


@samples("deg2rad", "rad2deg")
def degrees() -> Iterator[Sample]:
    yield sample(doubles(2, 3))
    yield sample(ints(3))
    yield sample(bf16([0.5]))
    yield sample(complexes(3)).raises()


@samples("logit")
def logit() -> Iterator[Sample]:
    yield sample(doubles(2, 3, low=0.05, high=0.95)).twice()
    yield sample(f32([0, 1, 2, -1, 0.5]))
    yield sample(f32([0, 1, 2, -1, 0.5, 0.1]), eps=0.1)
    yield sample(f32([0.5, 0.8]), 0.7)
    yield sample(ints(3))
    yield sample(complexes(3)).raises()


@samples("logaddexp2")
def _log_sums() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3)).twice()
    yield sample(f32([-INF, INF, 1, -INF, NAN]), f32([-INF, INF, -INF, 1, 1]))
    yield sample(ints(3), floats(3))
    yield sample(ints(3), ints(3)).raises()


@samples("logaddexp")
def log_sums() -> Iterator[Sample]:
    yield from _log_sums()
    yield sample(np.complex64([3 + 5j, 1 - 2j]), np.complex64([2 + 4j, 3 + 9j]))


@samples("xlogy")
def xlogy() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3, low=0.1)).twice()
    yield sample(f32([0, 0, 1, 0]), f32([0, -1, 0, NAN]))
    yield sample(2, floats(3, low=0.1))
    yield sample(floats(3), 2.5)
    yield sample(ints(3), ints(3, low=1))
    yield sample(2, 3.5).raises()
    yield sample(complexes(3), 2).raises()


@samples("atan2")
def atan2() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3)).twice()
    yield sample(f32([0, 0, 1, -0.0]), f32([0, 1, 0, -1]))
    yield sample(ints(3), ints(3))
    yield sample(complexes(3), complexes(3)).raises()


@samples("hypot")
def hypot() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3)).twice()
    yield sample(f32([0, 3, 1e30]), f32([0, 4, 1e30]))
    yield sample(floats(3), ints(3))
    yield sample(ints(3), ints(3)).raises()
    yield sample(complexes(3), complexes(3)).raises()
