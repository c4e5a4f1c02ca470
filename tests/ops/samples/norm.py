"""Samples of the operators in `_ops/norm.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import (
    Sample,
    attr,
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
X = floats(2, 3, 2)
HOLED = f32([[0, 3, -4], [0, 0, 0]])


@samples("vector_norm")
def vector_norms() -> Iterator[Sample]:
    yield sample(X, 2, 1).twice()
    yield sample(X)
    for order in (0.5, 1.5, 3, -1):
        yield sample(floats(2, 3), order, 1, True).twice()
    for order in (1, INF, -INF, 3):
        yield sample(floats(2, 3), order, 0)
        yield sample(complexes(3), order)
    for order in (1, 2, 0.5, 1.5, 3, INF, -1):
        yield sample(HOLED, order, -1).twice()
    yield sample(X, 0, (0, 1)).without("grad")
    yield sample(X, 2.0, [])
    yield sample(f32([2, -2, 1]), INF)
    yield sample(f32([2, -2, 3]), -INF)
    yield sample(f32([NAN, 1]), INF)
    yield sample(f32([NAN, 1]), 2)
    yield sample(floats(3), dtype=attr("float64"))
    yield sample(complexes(3), dtype=attr("complex128"))
    yield sample(floats(3).astype("float16"))
    yield sample(f32(-2.0))
    yield sample(f32(-2.0), INF, 0)
    yield sample(floats(0, 3), 2)
    yield sample(floats(0, 3), 3, 0)
    yield sample(floats(0, 3), INF, 1)
    yield sample(floats(0, 3), INF).raises()
    yield sample(floats(0, 3), -1).raises()
    yield sample(floats(0, 3), INF, 0).raises()
    yield sample(floats(3, 0), INF, -1).raises()
    yield sample(floats(0, 3), -2.5, 0).raises()
    yield sample(ints(3)).raises()
    yield sample(bools(3)).raises()
    yield sample(X, dtype=attr("int32")).raises()
    yield sample(X, dtype=attr("float16")).raises()
    yield sample(X, dtype=attr("complex64")).raises()
    yield sample(complexes(3), dtype=attr("float32")).raises()
    yield sample(X, "fro").raises()
    yield sample(X, 2, 3).raises()
    yield sample(X, 2, (0, 0)).raises()


@samples("norm")
def norms() -> Iterator[Sample]:
    yield sample(X, 2, 1).twice().without("keywords")
    yield sample(X)
    yield sample(X, "fro", (0, 2), True)
    yield sample(X, "fro", 0)
    yield sample(floats(2, 3), 3)
    yield sample(floats(2, 3), INF, [1])
    yield sample(X, p=None)
    yield sample(X, dtype=attr("float64"))
    yield sample(doubles(2, 3), "nuc")
    yield sample(doubles(2, 3, 2), "nuc", (0, 2), keepdim=True)
    yield sample(complexes(2, 2), "nuc").without("grad")
    yield sample(floats(2, 3), "nuc", 0).raises()
    yield sample(X, "nuc").raises()
    yield sample(X, "nuc", (1, 1)).raises()
    yield sample(X, "fro", (0, 1, 2)).raises()
    yield sample(floats(3), "nuc").raises()
    yield sample(floats(2, 3), "abc").raises()
    yield sample(ints(3)).raises()


@samples("renorm")
def renorms() -> Iterator[Sample]:
    yield sample(floats(3, 4), 2, 0, 1.0).twice()
    yield sample(floats(2, 3, 4), 1, -1, 2.5)
    yield sample(floats(3, 4), 0.5, 1, 100.0)
    yield sample(f32([[0, 0], [3, 4]]), 2, 0, 1)
    yield sample(complexes(2, 3), 2, 0, 1.0)
    yield sample(bf16([[3, 4], [0.5, 0.25]]), 2, 0, 1.0)
    yield sample(floats(3, 4), 0, 0, 1.0).raises()
    yield sample(floats(3, 4), 2, 0, -1.0).raises()
    yield sample(floats(3), 2, 0, 1.0).raises()
    yield sample(floats(3, 4), 2, 4, 1.0).raises()


@samples("dist")
def dist() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3)).twice()
    yield sample(f32([1, 2]), f32([1, 2]))
    for p in (1, 3.0, 0.5, 1.5, INF, -INF):
        yield sample(f32([1, 2, 5, 0]), f32([1, 3, 7, 1]), p)
    yield sample(floats(3), doubles(3), 3)
    yield sample(complexes(3), complexes(3)[::-1].copy())
    yield sample(ints(3), ints(3)).raises()
