"""Samples of the operators in `_ops/creation.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, doubles, f32, floats, ints, sample, samples


@samples("complex")
def parts() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3)).twice()
    yield sample(doubles(2), doubles(2, 1))
    yield sample(f32([1.0, 2.0]), f32([float("inf"), -0.0]))
    yield sample(floats(3, 2).T, floats(2, 3))
    yield sample(floats(0), floats(1))
    yield sample(floats(2), doubles(2)).raises()
    yield sample(ints(2), ints(2)).raises()


@samples("polar")
def magnitude_and_angle() -> Iterator[Sample]:
    yield sample(floats(2, 3, low=0.5), floats(3)).twice()
    yield sample(doubles(2, low=0.5), doubles(2, 1))
    yield sample(floats(2), ints(2)).raises()
