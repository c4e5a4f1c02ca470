"""Samples of the operators in `_ops/distance.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, f32, floats, ints, sample, samples


@samples("cosine_similarity", "pairwise_distance")
def pairs() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3, 2).T).twice()
    yield sample(f32([[1e30, 1], [1, 2]]), f32([[1, 2], [3, 1]])).without("grad")
    yield sample(floats(2, 3), floats(3, 3)).raises()


@samples("cdist")
def rows() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(4, 3))
    yield sample(floats(2, 2, 3), floats(4, 3), 1.0)
    yield sample(floats(2, 3), floats(4, 3), 0.0)
    yield sample(floats(2, 3), floats(4, 3, low=-1.3, high=3.1) ** 2, float("inf"))
    yield sample(floats(2, 3), floats(2, 3), 3.0)
    yield sample(floats(2, 3), floats(2, 3), 2.0)
    yield sample(floats(30, 3), floats(2, 3, low=3.0, high=5.0)).without("keywords")
    yield sample(floats(2, 3), ints(2, 3)).raises()


@samples("pdist")
def own_rows() -> Iterator[Sample]:
    yield sample(floats(4, 3))
    yield sample(floats(4, 3), 1.0)
    yield sample(f32([[1, 2, 3], [1, 2, 3], [2, 3, 3.5]]), float("inf"))
    yield sample(floats(4)).raises()
