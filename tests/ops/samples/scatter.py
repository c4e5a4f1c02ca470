"""Samples of the operators in `_ops/scatter.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import Sample, doubles, f32, floats, ints, sample, samples

I = np.array  # noqa: E741


@samples("gather")
def gather() -> Iterator[Sample]:
    yield sample(floats(3, 4), 1, I([[0, 3], [2, 2]])).twice()
    yield sample(floats(3, 4), 0, I([[0, 2, 1, 1]] * 5, np.int32))
    yield sample(floats(), 0, I(0))
    yield sample(floats(), 0, I([0, 0]))
    yield sample(floats(3), 0, I([], np.int64))
    yield sample(floats(3), 0, I([], np.uint8))
    yield sample(floats(3, 4), 0, I([[3]])).raises()
    yield sample(floats(3, 4), 0, I([[-1]])).raises()
    yield sample(floats(3, 4), 0, I([0])).raises()
    yield sample(floats(3, 4), 1, I([[0]] * 4)).raises()
    yield sample(floats(3, 4), 0, f32([[0]])).raises()
    yield sample(floats(3, 4), 2, I([[0]])).raises()


@samples("scatter_add")
def scatter_add() -> Iterator[Sample]:
    yield sample(floats(3, 4), 1, I([[0, 3], [2, 2]]), floats(2, 2)).twice()
    yield sample(ints(3), 0, I([0, 0, 1]), ints(3))
    yield sample(floats(), 0, I(0), floats())
    yield sample(floats(4, 3).T, 0, I([[0]]), floats(1, 1))
    yield sample(floats(3), 0, I([3]), floats(1)).raises()
    yield sample(floats(3), 0, I([0]), doubles(1)).raises()
    yield sample(floats(3, 4), 0, I([[0] * 4] * 4), floats(3, 4)).raises()
    yield sample(floats(3, 4), 0, I([0]), floats(3, 4)).raises()
    yield sample(floats(1, 2), 0, I([[0, 0]]), floats(2)).raises()
    yield sample(floats(1, 2), 0, I([[0, 0]]), floats(1)).raises()
    yield sample(floats(1, 2), 0, I([[0, 0]]), floats()).raises()
    yield sample(floats(1, 2), 0, I([[0, 0]]), floats(1, 1, 2)).raises()


@samples("scatter_reduce")
def scatter_reduce() -> Iterator[Sample]:
    index = I([[0, 0, 2], [2, 1, 1]])
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        yield sample(floats(3, 3), 0, index, floats(2, 3), reduce)
        yield sample(floats(3, 3), 1, index, floats(2, 3), reduce, include_self=False)
        yield sample(ints(3), 0, I([0, 0, 1]), ints(3), reduce)
    yield sample(f32([1, 0, 2]), 0, I([0, 1, 1]), f32([0, 3, 4]), "prod").twice()
    yield sample(f32([3, 2]), 0, I([0, 0, 0]), f32([2, 0, 5]), "prod").twice()
    yield sample(f32([1, 2, 2]), 0, I([0, 1, 1]), f32([1, 2, 2]), "amax")
    yield sample(
        np.float16([1, 300]), 0, I([0, 0, 0]), np.float16([300, 300, 0]), "prod"
    )
    yield sample(floats(3), 0, I([0]), floats(1), "zz").raises()
    yield sample(floats(3), 0, I([3]), floats(1), "sum").raises()
    yield sample(floats(3), 0, I([0]), doubles(1), "sum").raises()
