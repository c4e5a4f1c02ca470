"""Samples of the operators in `_ops/statistics.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import (
    Sample,
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
TIES = f32([[1, 3, 3], [2, 2, 0]])
NANS = f32([[1, NAN, 3, 2], [NAN, 2, NAN, 5]])


@samples("var.whole", "std.whole", "var_mean.whole", "std_mean.whole")
def whole_spreads() -> Iterator[Sample]:
    yield sample(X, False).twice()
    yield sample(X, unbiased=True)
    yield sample(f32([2, 2]), True)
    yield sample(f32(2.0), True)
    yield sample(ints(3), True).raises()


@samples("var.dim", "std.dim", "var_mean.dim", "std_mean.dim")
def spreads() -> Iterator[Sample]:
    yield sample(X, 1).twice()
    yield sample(X)
    yield sample(X, (0, -1), False, True)
    yield sample(X, 0, unbiased=False)
    yield sample(X, ())
    yield sample(X, None)
    yield sample(X, dim=None, correction=0, keepdim=True)
    yield sample(X, [1], correction=0.5)
    yield sample(X, correction=None)
    yield sample(f32([[2, 2, 2], [1, 2, 3]]), 1).twice()
    yield sample(complexes(2, 3), 1)
    yield sample(complexes(2, 3))
    yield sample(floats(2, 3).astype("float16"), 1).without("grad")
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(f32([2, 2, 3]), correction=3)
    yield sample(f32([2, 2, 3]), 0, correction=3)
    yield sample(f32([2, 2, 3]), 0, correction=4)
    yield sample(f32(2.0))
    yield sample(floats(0, 3), 0)
    yield sample(floats(0, 3), 1)
    yield sample(ints(3)).raises()
    yield sample(bools(3), 0).raises()
    yield sample(X, 5).raises()
    yield sample(X, (0, 0)).raises()


@samples("median.whole", "nanmedian.whole")
def whole_medians() -> Iterator[Sample]:
    yield sample(X)
    yield sample(TIES)
    yield sample(NANS)
    yield sample(f32([NAN, NAN]))
    yield sample(ints(4, dtype="uint8"))
    yield sample(bf16([1.0, 2.5, 0.1]))
    yield sample(f32(1.0))
    yield sample(floats(0))
    yield sample(bools(3)).raises()
    yield sample(complexes(3)).raises()


@samples("median.dim", "nanmedian.dim")
def medians() -> Iterator[Sample]:
    yield sample(X, 1)
    yield sample(X, -1, True)
    yield sample(NANS, 1)
    yield sample(NANS, 0)
    yield sample(f32([[NAN], [NAN]]), 0)
    yield sample(ints(4, dtype="uint8"), 0)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(floats(0, 3), 1)
    yield sample(f32(2.0), 0)
    yield sample(floats(0, 3), 0).raises()
    yield sample(bools(3), 0).raises()
    yield sample(X, 3).raises()


@samples("kthvalue")
def ranks() -> Iterator[Sample]:
    yield sample(X, 2, 1)
    yield sample(X, 1)
    yield sample(X, k=2, dim=0, keepdim=True)
    yield sample(f32([NAN, 1, NAN, -INF, INF]), 4)
    yield sample(ints(4, dtype="uint8"), 3)
    yield sample(floats(0, 3), 1, 1)
    yield sample(f32(2.0), 1)
    yield sample(X, 4, 1).raises()
    yield sample(X, 0).raises()
    yield sample(floats(0, 3), 1, 0).raises()
    yield sample(bools(3), 1).raises()
    yield sample(complexes(3), 1).raises()
    yield sample(X, 1, 3).raises()


@samples("mode")
def modes() -> Iterator[Sample]:
    yield sample(X, 1)
    yield sample(TIES)
    yield sample(f32([3, 1, 2, 2, 1, 3]), keepdim=True)
    yield sample(f32([2, 1, 2, 2]), 0)
    yield sample(bools(2, 3))
    yield sample(ints(2, 6, dtype="int8"), 1)
    yield sample(floats(0, 3))
    yield sample(f32(2.0))
    yield sample(floats(0, 3), 0).raises()
    yield sample(complexes(3)).raises()
    yield sample(X, 3).raises()
