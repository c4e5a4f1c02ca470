"""Samples of the operators in `_ops/arithmetic.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    bf16,
    bools,
    complexes,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)


@samples("add", "sub", "rsub")
def sums() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3)).twice()
    yield sample(floats(2, 3), 2.5, alpha=3)
    yield sample(ints(3), floats(2, 1))
    yield sample(ints(3), ints(3, dtype="uint8"), alpha=2)
    yield sample(ints(3, dtype="int8"), 100)
    yield sample(ints(3), 1.5)
    yield sample(complexes(3), floats(3), alpha=2)
    yield sample(bf16([1.0, 2.5]), bf16([[0.1], [3.0]]))
    yield sample(floats(3, 2).T, floats(2, 3))
    yield sample(floats(2, 0), floats(1))
    yield sample(f32(2.0), ints(2))
    yield sample(floats(2, 3), floats(2)).raises()
