"""Samples of the operators in `_ops/conversion.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import (
    Sample,
    bf16,
    bools,
    complexes,
    f32,
    floats,
    ints,
    sample,
    samples,
)


@samples("fill")
def fill() -> Iterator[Sample]:
    yield sample(floats(2, 3), 2.5)
    yield sample(floats(2, 3), f32(2.5)).twice()
    yield sample(floats(3, 2).T, 3)
    yield sample(ints(3), 2)
    yield sample(bools(3), 2)
    yield sample(complexes(2), 1j)
    yield sample(bf16([1.0, 2.0]), 0.1)
    yield sample(floats(2), floats(2)).raises()
