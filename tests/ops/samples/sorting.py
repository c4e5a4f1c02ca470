"""Samples of the operators in `_ops/sorting.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    bf16,
    bools,
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
X = floats(2, 3, 2)
SPECIAL = f32([NAN, 1, NAN, -INF, INF, 0.5])


@samples("sort", "argsort")
def sorts() -> Iterator[Sample]:
    yield sample(X, dim=1, stable=True)
    yield sample(X, 1)
    yield sample(X)
    yield sample(X, -1, True)
    yield sample(X, stable=True, descending=True, dim=0)
    yield sample(SPECIAL)
    yield sample(SPECIAL, descending=True)
    yield sample(f32([1, 2, 1, 2, 1, 0]), stable=True)
    yield sample(f32([1, 2, 1, 2, 1, 0]), stable=True, descending=True)
    yield sample(ints(2, 3, dtype="uint8"), 0)
    yield sample(np.array([-128, 127, 0], np.int8), descending=True)
    yield sample(bools(2, 3), dim=1, stable=True)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(floats(0, 3), 0)
    yield sample(f32(2.0))
    yield sample(complexes(3)).raises()
    yield sample(X, 3).raises()


@samples("msort")
def sorts_of_rows() -> Iterator[Sample]:
    yield sample(X)
    yield sample(ints(4))
    yield sample(f32(1.0))
    yield sample(complexes(3)).raises()


@samples("topk")
def largest() -> Iterator[Sample]:
    yield sample(X, 2, 1)
    yield sample(X, 1)
    yield sample(X, 2, 1, False)
    yield sample(X, 0)
    yield sample(SPECIAL, 4)
    yield sample(SPECIAL, 4, largest=False)
    yield sample(doubles(2, 4), 2, 1, True, True)
    yield sample(ints(5, dtype="uint8"), 2)
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 1, 0)
    yield sample(floats(0, 3), 0, 0)
    yield sample(f32(2.0), 1)
    yield sample(X, 3).raises()
    yield sample(X, -1).raises()
    yield sample(f32(2.0), 2).raises()
    yield sample(complexes(3), 1).raises()
    yield sample(bools(3), 1).raises()
    yield sample(X, 1, 3).raises()


EDGES = f32([1, 2, 2, 4])


@samples("searchsorted")
def searches() -> Iterator[Sample]:
    yield sample(EDGES, f32([[0, 1, 2], [3, 4, 5]]))
    yield sample(EDGES, f32([[0, 1, 2], [3, 4, 5]]), right=True)
    yield sample(EDGES, 2.0, side="right", out_int32=True)
    yield sample(EDGES, 2)
    yield sample(EDGES, f32(2.0), side="left")
    yield sample(np.array([1, 2, 3]), 2.5)
    yield sample(f32([[1, 2, 3], [0, 5, 6]]), f32([[2, 4], [5, 5]]))
    yield sample(EDGES, ints(2, 3))
    yield sample(EDGES, doubles(2))
    yield sample(f32([1, 2, NAN]), f32([NAN, 1.5, INF]))
    yield sample(f32([1, 3, 2]), f32([2.5, 0]), sorter=np.array([0, 2, 1]))
    yield sample(floats(0), floats(2))
    yield sample(EDGES, floats(0))
    yield sample(EDGES, 2.0, side="left", right=True).raises()
    yield sample(EDGES, 2.0, side="abc").raises()
    yield sample(floats(2, 3), floats(3, 1)).raises()
    yield sample(floats(2, 3), 2).raises()
    yield sample(f32(1.0), floats(3)).raises()
    yield sample(EDGES, 2.0, sorter=np.array([0, 2])).raises()
    yield sample(f32([1, 3]), 2.0, sorter=constant([0.0, 1.0])).raises()
    yield sample(f32([1, 3]), 2.0, sorter=np.array([0, 2])).raises()
    yield sample(complexes(3), complexes(2)).raises()


@samples("bucketize")
def buckets() -> Iterator[Sample]:
    yield sample(f32([[0, 1, 2], [3, 4, 5]]), EDGES)
    yield sample(f32([0, 2]), EDGES, right=True, out_int32=True)
    yield sample(2.0, EDGES)
    yield sample(5, np.array([1, 2, 3]))
    yield sample(ints(3, dtype="int32"), np.array([1, 2, 3]))
    yield sample(floats(2), floats(2, 2)).raises()


@samples("isin")
def membership() -> Iterator[Sample]:
    yield sample(ints(2, 3), np.array([1, 2]))
    yield sample(ints(2, 3), np.array([1, 2]), invert=True, assume_unique=True)
    yield sample(ints(2, 3), 1)
    yield sample(1, ints(3))
    yield sample(ints(3), np.array([1.5, 2.0]))
    yield sample(f32([NAN, 1]), f32([NAN, 1]))
    yield sample(ints(40), ints(100, low=0))
    yield sample(ints(3), np.array([], np.int64))
    yield sample(complexes(2), complexes(2)).raises()
    yield sample(bools(2), bools(2)).raises()
