"""Samples of the operators in `_ops/convolution.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, sample, samples


@samples("conv1d", "conv_transpose1d")
def signals() -> Iterator[Sample]:
    yield sample(floats(2, 3, 7), floats(3, 3, 3), floats(3), 2, 1)
    yield sample(floats(2, 2, 7), floats(3, 3, 3)).raises()


@samples("conv2d", "conv_transpose2d")
def images() -> Iterator[Sample]:
    yield sample(floats(2, 2, 5, 5), floats(2, 2, 3, 3), floats(2), 2, 1)
    yield sample(floats(2, 3, 5, 5), floats(2, 2, 3, 3)).raises()


@samples("conv3d", "conv_transpose3d")
def volumes() -> Iterator[Sample]:
    yield sample(floats(1, 2, 3, 3, 3), floats(2, 2, 2, 2, 2), floats(2))
    yield sample(floats(1, 3, 3, 3, 3), floats(2, 2, 2, 2, 2)).raises()


@samples("conv_tbc")
def time_first() -> Iterator[Sample]:
    yield sample(floats(5, 2, 3), floats(2, 3, 4), floats(4), 1)
    yield sample(floats(5, 2, 3), floats(2, 3, 4), floats(4))
    yield sample(floats(5, 2), floats(2, 3, 4), floats(4)).raises()
    yield sample(floats(5, 2, 3), floats(2, 2, 4), floats(4)).raises()
    yield sample(floats(5, 2, 3), floats(2, 3, 4), floats(3)).raises()
