"""Samples of the operators in `_ops/view_gradients.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, bf16, floats, ints, sample, samples


@samples("unfold_backward")
def unfold_backward() -> Iterator[Sample]:
    yield sample(floats(2, 3), (4,), 0, 3, 1).twice()
    yield sample(floats(2, 2, 2), (2, 5), 1, 2, 2)
    yield sample(bf16(floats(2, 3)), (4,), -1, 3, 1)
    yield sample(ints(2, 3), (4,), 0, 3, 1)
    yield sample(floats(2, 3), (6,), 0, 3, 0).raises()
    yield sample(floats(2, 3), (6,), 0, -1, 1).raises()
    yield sample(floats(2, 3), (2,), 0, 3, 1).raises()
    yield sample(floats(2, 3), (6,), 3, 1, 1).raises()


@samples("select_backward")
def select_backward() -> Iterator[Sample]:
    yield sample(floats(2, 3), (2, 4, 3), 1, 2).twice()
    yield sample(floats(2, 3), (2, 4, 3), -2, -1)
    yield sample(floats(1, 3), (2, 4, 3), 1, 0)
    yield sample(ints(2), (3, 2), 0, 1)
    yield sample(floats(2, 3), (2, 4, 3), 1, 9).raises()
    yield sample(floats(2, 3), (2, 4), 1, 0).raises()


@samples("slice_backward")
def slice_backward() -> Iterator[Sample]:
    yield sample(floats(2, 3), (2, 9), 1, 1, 8, 3).twice()
    yield sample(floats(2, 3), (2, 9), -1, -6, 100, 2)
    yield sample(floats(0, 3), (2, 3), 0, 2, 1, 1)
    yield sample(floats(2, 3), (2, 9), 1, 1, 8, 1).raises()
    yield sample(floats(2, 3), (2, 9), 1, 1, 8, 0).raises()


@samples("diagonal_backward")
def diagonal_backward() -> Iterator[Sample]:
    yield sample(floats(2, 3), (2, 3, 3), 0, 1, 2).twice()
    yield sample(floats(2, 2), (3, 2, 3), 1, 0, 2)
    yield sample(floats(2, 1), (3, 2, 3), -2, 0, -1)
    yield sample(floats(2, 3), (2, 3), 0, 0, 1).raises()
    yield sample(floats(2), (2, 2), 0, 1, 1).raises()
