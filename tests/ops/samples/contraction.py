"""Samples of the operators in `_ops/contraction.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, ints, sample, samples


@samples("matrix_power")
def powers() -> Iterator[Sample]:
    yield sample(floats(3, 3), 3).twice()
    yield sample(floats(2, 2, 2), 2)
    yield sample(floats(2, 2), 1)
    yield sample(floats(2, 2), 5)
    yield sample(floats(2, 3), 2).raises()


@samples("outer", "kron")
def every_pair() -> Iterator[Sample]:
    yield sample(floats(3), floats(2)).twice()
    yield sample(floats(3), ints(2))
