"""Samples of the operators in `_ops/activation.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, f32, floats, ints, sample, samples

NAN = float("nan")


@samples("relu", "gelu", "softplus", "logsigmoid", "hardshrink", "softshrink")
def pointwise() -> Iterator[Sample]:
    yield sample(floats(3, 4)).twice()
    yield sample(floats(4, 3).T)
    yield sample(f32([NAN, 0, -0.5, 0.5, 30, -30]))
    yield sample(ints(3) > 0).raises()


@samples("threshold")
def thresholds() -> Iterator[Sample]:
    yield sample(floats(3, 4), 0.5, 20.0).without("inplace")
    yield sample(ints(3), 1, 7).without("inplace")


@samples("prelu")
def slopes() -> Iterator[Sample]:
    yield sample(floats(2, 3, 2), floats(3)).twice()
    yield sample(floats(2, 3), floats(2)).raises()
