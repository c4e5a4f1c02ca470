"""Samples of the operators in `_ops/view_memory.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, ints, sample, samples


@samples("expand", "broadcast_to")
def expand() -> Iterator[Sample]:
    yield sample(floats(2, 1), (3, 2, 4)).twice()
    yield sample(floats(2, 1), (-1, 3))
    yield sample(floats(), (2, 1))
    yield sample(floats(1, 3), (1, 1, 3))
    yield sample(floats(2, 3), (2,)).raises()
    yield sample(ints(2, 3), (2,)).raises()
    yield sample(floats(2, 3), (-1, 2, 3)).raises()
    yield sample(floats(2, 3), (4, 3)).raises()
    yield sample(floats(2, 3), (2, -2, 3)).raises()


@samples("diagonal")
def diagonal() -> Iterator[Sample]:
    yield sample(floats(3, 4)).twice()
    yield sample(floats(3, 4), 1)
    yield sample(floats(3, 4), -2)
    yield sample(floats(3, 4), 7)
    yield sample(floats(2, 3, 4), 0, 2, 0)
    yield sample(floats(2, 3, 4), offset=1, dim1=1, dim2=2)
    yield sample(floats(4, 3).T, 1)
    yield sample(floats(2, 3), 0, 1, 1).raises()
    yield sample(floats(3)).raises()


@samples("unfold")
def unfold() -> Iterator[Sample]:
    yield sample(floats(2, 7), 1, 3, 2).twice()
    yield sample(floats(7, 2), 0, 2, 3)
    yield sample(floats(40), 0, 20, 4)
    yield sample(floats(3), 0, 0, 1)
    yield sample(floats(), 0, 1, 1)
    yield sample(floats(3), 0, 4, 1).raises()
    yield sample(floats(3), 0, -1, 1).raises()
    yield sample(floats(3), 0, 2, 0).raises()
