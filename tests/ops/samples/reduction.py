"""Samples of the operators in `_ops/reduction.py`."""

from __future__ import annotations

from collections.abc import Iterator

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
TIES = f32([[1, 3, 3], [2, 2, 0]])
NANS = f32([[1, NAN, 3], [NAN, 2, NAN]])


@samples("sum", "nansum")
def sums() -> Iterator[Sample]:
    yield sample(X, 1)
    yield sample(X)
    yield sample(X, (0, -1), True)
    yield sample(X, ())
    yield sample(X, [0])
    yield sample(X, None, keepdim=True)
    yield sample(NANS, 0)
    yield sample(ints(2, 3, dtype="int8"))
    yield sample(bools(2, 3), 0)
    yield sample(ints(2, 3), dtype=attr("float32"))
    yield sample(ints(2, 3, dtype="int32"), 0, dtype=attr("int8"))
    yield sample(bools(3), dtype=attr("bool"))
    yield sample(floats(2, 3).astype("float16"), 1)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(bf16([1.0, 2.5]), dtype=attr("float32"))
    yield sample(floats(3), dtype=attr("float64"))
    yield sample(floats(0, 3), 0)
    yield sample(floats(0, 3), 1)
    yield sample(f32(2.0), 0)
    yield sample(f32(2.0), -1, True)
    yield sample(X, 3).raises()
    yield sample(X, (0, 0)).raises()
    yield sample(X, (1, -2)).raises()
    yield sample(f32(1.0), 1).raises()


@samples("mean")
def means() -> Iterator[Sample]:
    yield sample(X, 1).twice()
    yield sample(X)
    yield sample(X, (0, -1), True)
    yield sample(X, ())
    yield sample(X, None)
    yield sample(ints(2, 3), dtype=attr("float32"))
    yield sample(complexes(2, 3), 0)
    yield sample(floats(2, 3).astype("float16"), 1)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]))
    yield sample(floats(3), dtype=attr("float64"))
    yield sample(floats(0, 3), 0)
    yield sample(floats(0))
    yield sample(f32(2.0))
    yield sample(ints(3)).raises()
    yield sample(bools(3), 0).raises()
    yield sample(X, dtype=attr("int32")).raises()
    yield sample(X, 5).raises()


@samples("nanmean")
def means_without_nan() -> Iterator[Sample]:
    yield sample(NANS, 0)
    yield sample(NANS)
    yield sample(X, (0, -1), True)
    yield sample(f32([NAN, NAN]))
    yield sample(NANS.astype("float16"), 1)
    yield sample(NANS, dtype=attr("float64"))
    yield sample(ints(3)).raises()
    yield sample(complexes(3)).raises()


@samples("prod")
def products() -> Iterator[Sample]:
    yield sample(X, 1).twice()
    yield sample(X)
    yield sample(X, -1, True)
    yield sample(f32([2, 0, 3])).twice()
    yield sample(f32([[2, 0, 3], [0, 5, 0]]), 1).twice()
    yield sample(ints(2, 3, low=1, dtype="int32"), 0)
    yield sample(bools(2, 3), 1)
    yield sample(bools(2), dtype=attr("bool"))
    yield sample(ints(3, low=1), dtype=attr("float32"))
    yield sample(ints(3), dtype=attr("int8"))
    yield sample(complexes(2, 3), 0)
    yield sample(bf16([1.0, 2.5]))
    yield sample(floats(0))
    yield sample(floats(2, 0), 1)
    yield sample(f32(2.0), 0)
    yield sample(X, 3).raises()


@samples("trace")
def traces() -> Iterator[Sample]:
    yield sample(floats(3, 3)).twice()
    yield sample(floats(2, 4))
    yield sample(ints(3, 2, dtype="int32"))
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]))
    yield sample(complexes(2, 2))
    yield sample(floats(0, 2))
    yield sample(floats(3)).raises()
    yield sample(X).raises()
    yield sample(bools(2, 2)).raises()


@samples("logsumexp")
def log_sums() -> Iterator[Sample]:
    yield sample(X, 1).twice()
    yield sample(X, (0, -1), True)
    yield sample(X, [])
    yield sample(f32([[-INF, 1], [-INF, -INF], [INF, 1], [1000, 1001]]), 1)
    yield sample(ints(2, 3), 0)
    yield sample(complexes(2, 3), 0)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(floats(0, 3), 0)
    yield sample(floats(0, 3), 1)
    yield sample(f32(2.0), 0)
    yield sample(X, 4).raises()


@samples("max.whole", "min.whole")
def whole_extremes() -> Iterator[Sample]:
    yield sample(X)
    yield sample(TIES)
    yield sample(f32([[1, 1], [0, 0]]))
    yield sample(NANS)
    yield sample(ints(2, 3, dtype="int16"))
    yield sample(bools(3))
    yield sample(floats(3).astype("float16"))
    yield sample(f32(2.0))
    yield sample(floats(0, 3)).raises()
    yield sample(complexes(3)).raises()


@samples("max.dim", "min.dim")
def extremes_along() -> Iterator[Sample]:
    yield sample(X, 1)
    yield sample(X, -1, True)
    yield sample(TIES, 1)
    yield sample(f32([[1, 1], [0, 0]]), 1, keepdim=True)
    yield sample(NANS, 0)
    yield sample(NANS, 1)
    yield sample(f32([[INF, -INF], [INF, -INF]]), 0)
    yield sample(ints(2, 3, dtype="uint8"), 0)
    yield sample(bools(2, 3), 1)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(floats(0, 3), 1)
    yield sample(f32(2.0), 0)
    yield sample(f32(2.0), -1, True)
    yield sample(floats(0, 3), 0).raises()
    yield sample(complexes(3), 0).raises()
    yield sample(X, 3).raises()


@samples("max.other", "min.other")
def extremes_of_two() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3))
    yield sample(TIES, f32([1, 2, 0]))
    yield sample(ints(3), floats(2, 1))
    yield sample(floats(2, 3), floats(2)).raises()


@samples("amax", "amin")
def extremes_over() -> Iterator[Sample]:
    yield sample(X, 1)
    yield sample(X)
    yield sample(X, (0, -1), True)
    yield sample(X, None, True).without("keywords")
    yield sample(TIES, 1)
    yield sample(TIES)
    yield sample(NANS, 0)
    yield sample(ints(2, 3, dtype="uint8"), 0)
    yield sample(bools(2, 3))
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(floats(0, 3), 1)
    yield sample(f32(2.0), 0)
    yield sample(floats(0, 3)).raises()
    yield sample(floats(0, 3), 0).raises()
    yield sample(floats(0, 3), (0, 1)).raises()
    yield sample(complexes(3)).raises()
    yield sample(X, (0, 0)).raises()


@samples("aminmax")
def both_extremes() -> Iterator[Sample]:
    yield sample(X, dim=1)
    yield sample(X)
    yield sample(X, keepdim=True)
    yield sample(X, dim=-1, keepdim=True)
    yield sample(TIES, dim=1)
    yield sample(NANS, dim=0)
    yield sample(ints(2, 3, dtype="uint8"), dim=0)
    yield sample(bools(2, 3))
    yield sample(floats(0, 3), dim=1)
    yield sample(f32(2.0), dim=0)
    yield sample(floats(0, 3)).raises()
    yield sample(floats(0, 3), dim=0).raises()
    yield sample(complexes(3)).raises()
    yield sample(X, dim=3).raises()


@samples("argmax", "argmin")
def positions() -> Iterator[Sample]:
    yield sample(X, 1)
    yield sample(X)
    yield sample(X, keepdim=True)
    yield sample(X, -1, True)
    yield sample(TIES, 1)
    yield sample(TIES)
    yield sample(NANS, 0)
    yield sample(NANS, 1)
    yield sample(ints(2, 3, dtype="uint8"), 0)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(floats(0, 3), 1)
    yield sample(f32(2.0), 0)
    yield sample(f32(2.0))
    yield sample(floats(0, 3)).raises()
    yield sample(floats(0, 3), 0).raises()
    yield sample(bools(3)).raises()
    yield sample(complexes(3)).raises()
    yield sample(X, 3).raises()


@samples("all", "any")
def truths() -> Iterator[Sample]:
    yield sample(ints(2, 3), 0)
    yield sample(bools(2, 3))
    yield sample(X, (0, 1), True)
    yield sample(ints(2, 3), ())
    yield sample(ints(2, 3), None, True)
    yield sample(ints(2, 3, dtype="uint8"), 0)
    yield sample(ints(2, 3, dtype="uint8"))
    yield sample(NANS, [1])
    yield sample(complexes(2))
    yield sample(floats(0, 3), 0)
    yield sample(floats(0))
    yield sample(f32(0.0), 0)
    yield sample(X, 3).raises()
    yield sample(X, (0, 0)).raises()


@samples("count_nonzero")
def counts() -> Iterator[Sample]:
    yield sample(ints(2, 3), 0)
    yield sample(ints(2, 3))
    yield sample(ints(2, 3), (0, 1))
    yield sample(NANS, -1)
    yield sample(bools(3))
    yield sample(complexes(2))
    yield sample(floats(0, 3), 0)
    yield sample(X, 3).raises()
