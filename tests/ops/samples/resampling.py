"""Samples of the operators in `_ops/resampling.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, ints, sample, samples


@samples("constant_pad_nd")
def padded() -> Iterator[Sample]:
    yield sample(floats(2, 3), (1, 2), 1.5).twice()
    yield sample(ints(2, 3), (1, -1, 2, 0))
    yield sample(floats(2, 3), (1, 2, 3)).raises()


@samples("pixel_shuffle")
def shuffled() -> Iterator[Sample]:
    yield sample(floats(1, 8, 2, 3), 2)
    yield sample(floats(1, 3, 2, 2), 2).raises()


@samples("pixel_unshuffle")
def unshuffled() -> Iterator[Sample]:
    yield sample(floats(2, 4, 6), 2)
    yield sample(floats(1, 3, 3), 2).raises()


@samples("channel_shuffle")
def channels() -> Iterator[Sample]:
    yield sample(floats(1, 6, 2), 3)
    yield sample(floats(1, 6, 2), 4).raises()
