"""Samples of the operators in `_ops/indexing.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    bools,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)


@samples("masked_fill")
def masked_fill() -> Iterator[Sample]:
    yield sample(floats(2, 3), bools(2, 3), 2.5).twice()
    yield sample(floats(2, 3), bools(3), floats())
    yield sample(floats(3), bools(2, 3), 1).without("inplace")
    yield sample(ints(3), bools(3), 1.5)
    yield sample(floats(2), bools(2), np.float64(1.5).reshape(()))
    yield sample(floats(3), f32([0, 1, 1]), 1).raises()
    yield sample(floats(3), ints(3), 1).raises()
    yield sample(floats(3), bools(3), floats(3)).raises()
    yield sample(floats(3), bools(2), 1).raises()


@samples("masked_scatter")
def masked_scatter() -> Iterator[Sample]:
    yield sample(floats(2, 3), bools(2, 3), floats(7)).twice()
    yield sample(floats(2, 3), bools(3), floats(2, 3))
    yield sample(floats(2, 3), np.ones((2, 3), bool), floats(2)).raises()
    yield sample(floats(3), bools(3), doubles(3)).raises()
    yield sample(floats(3), ints(3), floats(3)).raises()


@samples("nonzero_static")
def positions() -> Iterator[Sample]:
    yield sample(ints(2, 3), size=4)
    yield sample(ints(2, 3), size=8, fill_value=7)
    yield sample(floats(), size=2)
    yield sample(floats(0, 2), size=2)
    yield sample(ints(3), size=-1).raises()
