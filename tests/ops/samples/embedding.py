"""Samples of the operators in `_ops/embedding.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, ints, sample, samples


@samples("embedding")
def tables() -> Iterator[Sample]:
    yield sample(floats(4, 2), ints(2, 3, low=0, high=4))
    yield sample(floats(4, 2), ints(3, low=0, high=4), 1, True)
    yield sample(floats(4, 2), ints(3, low=2, high=6)).raises()
    yield sample(floats(4), ints(3, low=0, high=4)).raises()
