"""Samples of the operators in `_ops/adaptive_pooling.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, sample, samples


@samples("adaptive_avg_pool1d")
def as_many() -> Iterator[Sample]:
    yield sample(floats(2, 3, 7), 3)
    yield sample(floats(2), 3).raises()
