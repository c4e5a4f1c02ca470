"""Samples of the operators in `_ops/scan.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    attr,
    bf16,
    bools,
    complexes,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")
X = floats(2, 3, 2)


@samples("cumsum", "cumprod")
def running() -> Iterator[Sample]:
    yield sample(X, 1).twice()
    yield sample(X, -1)
    yield sample(f32([[2, 0, 3, 0], [1, 2, 0, 4]]), 1).twice()
    yield sample(ints(2, 3, dtype="int32"), 0)
    yield sample(bools(2, 3), 1).without("inplace")
    yield sample(ints(2, 3), 0, dtype=attr("int8")).without("inplace")
    yield sample(floats(3), 0, dtype=attr("float64")).without("inplace")
    yield sample(complexes(3), 0)
    yield sample(floats(3).astype("float16"), 0)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(floats(3, 2).T, 0)
    yield sample(floats(0, 3), 0)
    yield sample(f32(2.0), 0)
    yield sample(X, 3).raises()
    yield sample(f32(2.0), 1).raises()
    yield sample(bools(3), 0, dtype=attr("bool")).raises()


@samples("logcumsumexp")
def running_logarithms() -> Iterator[Sample]:
    yield sample(X, 1).twice()
    yield sample(f32([[1000, 1001, 1000], [1, -INF, 2]]), 1).without("grad")
    yield sample(f32([1, -INF, 2]), 0)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0).without("grad")
    yield sample(complexes(3), 0)
    yield sample(8 * complexes(4, 9, dtype="complex128"), 1)
    infinite = np.array([complex(-INF, 1), complex(-INF, 2), 1 + 1j, complex(INF, 1)])
    yield sample(infinite, 0).without("grad")
    ends = [INF, complex(INF, 1), complex(INF, 3), complex(NAN, 2)]
    yield sample(np.array(ends), 0).without("grad")
    yield sample(np.array([1, complex(2, INF), complex(INF, 1)]), 0).without("grad")
    yield sample(np.array([complex(INF, 1), complex(INF, 4)]), 0).without("grad")
    yield sample(np.array([3j, -3j, 3j]), 0)
    yield sample(floats(0, 3), 0)
    yield sample(f32(2.0), 0)
    yield sample(ints(3), 0).raises()
    yield sample(X, 3).raises()


@samples("cummax", "cummin")
def running_extremes() -> Iterator[Sample]:
    yield sample(X, 1)
    yield sample(f32([1, 1, 0, 1, 0, 0, 2]), 0)
    yield sample(f32([1, NAN, 0, NAN, 3]), 0)
    yield sample(f32([INF, -INF, INF]), 0)
    yield sample(ints(2, 3, dtype="uint8"), 0)
    yield sample(bools(2, 3), 1)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(floats(0, 3), 0).without("grad")
    yield sample(f32(2.0), 0)
    yield sample(complexes(3), 0).raises()
    yield sample(X, 3).raises()


@samples("diff")
def differences() -> Iterator[Sample]:
    yield sample(X, 1, 1).twice()
    yield sample(X)
    yield sample(X, 2, 1)
    yield sample(X, n=0)
    yield sample(X, n=5, dim=1)
    yield sample(X, dim=-2, prepend=floats(2, 1, 2), append=floats(2, 2, 2))
    yield sample(ints(4), prepend=floats(1))
    yield sample(bools(2, 4))
    yield sample(ints(3, dtype="uint8"))
    yield sample(complexes(3))
    yield sample(f32([[1, INF, 2], [1, 2, INF]]))
    yield sample(floats(2, 0)).without("grad")
    yield sample(f32(1.0)).raises()
    yield sample(X, -1).raises()
    yield sample(X, 1, 4).raises()
    yield sample(X, prepend=floats(2)).raises()
    yield sample(X, append=floats(2, 1, 2)).raises()


@samples("trapezoid", "cumulative_trapezoid")
def integrals() -> Iterator[Sample]:
    yield sample(floats(2, 3), f32([1, 2, 4])).twice()
    yield sample(floats(2, 3))
    yield sample(floats(2, 3), dx=2.5, dim=0)
    yield sample(floats(2, 3), dx=3)
    yield sample(X, floats(2, 3, 2), dim=1)
    yield sample(X, floats(3, 2), dim=1)
    yield sample(ints(2, 3))
    yield sample(ints(3), ints(3))
    yield sample(np.uint8([200, 100, 3]), np.uint8([5, 3, 100]))
    yield sample(np.uint8([200, 100, 3]), dx=2)
    yield sample(np.uint8([200, 3]), np.float16([5, 3]))
    yield sample(floats(2, 0)).without("grad")
    yield sample(floats(2, 0), floats(3)).without("grad")
    yield sample(floats(3), bools(3)).raises()
    yield sample(bools(3)).raises()
    yield sample(floats(3), dx=2j).raises()
    yield sample(floats(2, 1))
    yield sample(complexes(3), dx=0.5)
    yield sample(f32(1.0)).raises()
    yield sample(floats(2, 3), floats(2)).raises()
    yield sample(floats(2, 3), dim=3).raises()
