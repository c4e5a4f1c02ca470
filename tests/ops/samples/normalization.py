"""Samples of the operators in `_ops/normalization.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, sample, samples


@samples("layer_norm", "rms_norm")
def layers() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4), (4,), floats(4)).twice()
    yield sample(floats(2, 3), (4,)).raises()


@samples("local_response_norm")
def responses() -> Iterator[Sample]:
    yield sample(floats(2, 5, 3), 3)
    yield sample(floats(3), 2).raises()
