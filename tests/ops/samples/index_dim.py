"""Samples of the operators in `_ops/index_dim.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import Sample, doubles, f32, floats, ints, sample, samples

I = np.array  # noqa: E741


@samples("index_select")
def index_select() -> Iterator[Sample]:
    yield sample(floats(3, 4), 1, I([0, 3, 0])).twice()
    yield sample(floats(3, 4), 0, I([2, 1], np.int32))
    yield sample(floats(3), 0, I(1))
    yield sample(floats(), 0, I([0]))
    yield sample(floats(3), 0, I([], np.int64))
    yield sample(floats(3), 0, I([3])).raises()
    yield sample(floats(3), 0, I([-1])).raises()
    yield sample(floats(3, 4), 1, I([4])).raises()
    yield sample(floats(3), 0, I([[0]])).raises()
    yield sample(floats(3), 0, f32([0])).raises()
    yield sample(floats(), 0, I([0, 0])).raises()
    yield sample(floats(3), 1, I([0])).raises()
    yield sample(floats(0, 3), 0, I([0])).raises()
    yield sample(floats(0, 3), 0, I([], np.int64))
    yield sample(floats(3, 0), 0, I([5])).raises()
    yield sample(floats(3, 0), 1, I([0])).raises()
    yield sample(floats(0), 0, I([0])).raises()


@samples("index_add")
def index_add() -> Iterator[Sample]:
    yield sample(floats(3, 4), 0, I([1, 1]), floats(2, 4)).twice()
    yield sample(floats(3, 2), 1, I([1]), floats(3, 1), alpha=2.5)
    yield sample(ints(3), 0, I([2, 2], np.int32), ints(2), alpha=-1)
    yield sample(floats(4, 3).T, 0, I([0]), floats(1, 4))
    yield sample(floats(3, 4), 0, I([0, 1]), floats(3, 4)).raises()
    yield sample(floats(3, 4), 0, I([[0, 1]]), floats(3, 4)).raises()
    yield sample(floats(3, 4), 0, I([0, 3]), floats(2, 4)).raises()
    yield sample(floats(3, 4), 0, I([0, 1]), floats(2, 2)).raises()
    yield sample(floats(3, 4), 0, I([0, 1]), doubles(2, 4)).raises()
    yield sample(floats(3, 4), 0, f32([0, 1]), floats(2, 4)).raises()


@samples("index_copy")
def index_copy() -> Iterator[Sample]:
    yield sample(floats(3, 4), 0, I([1, 2]), floats(2, 4)).twice()
    yield sample(floats(3, 2), 1, I([1]), floats(3, 1))
    yield sample(floats(3, 4), 0, I([0, 1]), floats(3, 4)).raises()
    yield sample(floats(3, 4), 0, I([0, 3]), floats(2, 4)).raises()
    yield sample(floats(3, 4), 0, I([0, -1]), floats(2, 4)).raises()
    yield sample(floats(3, 4), 0, I([0, 1]), floats(2, 2)).raises()
    yield sample(floats(3, 4), 0, I([0, 1]), doubles(2, 4)).raises()
    yield sample(floats(3), 0, I([0], np.int32), floats(1)).raises()


@samples("index_fill")
def index_fill() -> Iterator[Sample]:
    yield sample(floats(3, 4), 0, I([1, -1]), 2.5).twice()
    yield sample(floats(3, 4), 1, I([1]), floats())
    yield sample(ints(3), 0, I([1]), 2.7)
    yield sample(floats(), 0, I([0]), 3)
    yield sample(floats(4, 3).T, 0, I([0]), 1)
    yield sample(floats(3), 0, I([3]), 1).raises()
    yield sample(floats(3), 0, f32([0]), 1).raises()
    yield sample(floats(3), 0, I([[0]]), 1).raises()
    yield sample(floats(3), 0, I([0]), floats(1)).raises()
    yield sample(floats(3), 0, I([0]), 1j).raises()


@samples("take")
def take() -> Iterator[Sample]:
    yield sample(floats(3, 4), I([[0, 11], [-1, 5]])).twice()
    yield sample(floats(4, 3).T, I([1]))
    yield sample(floats(3), I([], np.int64))
    yield sample(floats(3), I([3])).raises()
    yield sample(floats(3), I([-4])).raises()
    yield sample(floats(3), I([0], np.int32)).raises()


@samples("put")
def put() -> Iterator[Sample]:
    yield sample(floats(3, 4), I([0, -1]), floats(2)).twice()
    yield sample(floats(3, 4), I([[0, 0]]), floats(2), accumulate=True)
    yield sample(floats(4, 3).T, I([1]), floats(1))
    yield sample(floats(3), I([3]), floats(1)).raises()
    yield sample(floats(3), I([0, 1]), floats(1)).raises()
    yield sample(floats(3), I([0]), doubles(1)).raises()
