"""Samples of the operators in `_ops/pooling.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, sample, samples


@samples("avg_pool1d")
def signals() -> Iterator[Sample]:
    yield sample(floats(2, 3, 7), 3, 2, 1)
    yield sample(floats(3), 2).raises()


@samples("avg_pool2d")
def images() -> Iterator[Sample]:
    yield sample(floats(2, 2, 5, 6), 2)
    yield sample(floats(2, 2, 5, 6), 7).raises()


@samples("avg_pool3d")
def volumes() -> Iterator[Sample]:
    yield sample(floats(1, 2, 4, 4, 4), 2)
    yield sample(floats(2, 3), 2).raises()
