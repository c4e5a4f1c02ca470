"""Samples of the operators in `_ops/softmax.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    attr,
    bf16,
    complexes,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")
X = floats(2, 3, 2)


@samples("softmax", "log_softmax")
def softmaxes() -> Iterator[Sample]:
    yield sample(X, 1).twice()
    yield sample(X, -1)
    yield sample(f32([[1000, 1001], [-INF, 1], [-INF, -INF], [0, NAN]]), 1)
    yield sample(floats(2, 3), 0, dtype=attr("float64"))
    yield sample(ints(3), 0, dtype=attr("float32"))
    yield sample(floats(2, 3).astype("float16"), 0).without("grad")
    yield sample(bf16([[1.0, 2.5], [0.1, 3.0]]), 0)
    yield sample(doubles(2, 3).T, 0)
    yield sample(floats(0, 3), 0)
    yield sample(f32(2.0), 0)
    yield sample(ints(2, 3), 0).raises()
    yield sample(ints(2, 3), -1).raises()
    yield sample(complexes(2, 3), 1).raises()
    yield sample(X, 3).raises()
    yield sample(np.zeros(3, bool), 0).raises()


@samples("_masked_softmax")
def masked_softmaxes() -> Iterator[Sample]:
    x = floats(2, 2, 3, 3)
    keys = np.array([[True, False, False], [False, True, True]])
    scores = np.array(
        [[False, True, True], [False, False, True], [False, False, False]]
    )
    row = np.array([[True, False, False], [True, True, True]])
    # The gradients of these two PyTorch refuses.
    yield sample(x, scores, -1, 0).without("grad")
    yield sample(x, keys, -1, 1).without("grad")
    yield sample(floats(2, 3), row)
    yield sample(floats(2, 3), row, 0, 2)
    yield sample(doubles(2, 3), row, 1)
    yield sample(
        bf16([[1.0, 2.5], [0.1, 3.0]]), np.array([[True, False], [False, False]])
    )
    yield sample(x, keys, -1, 0).raises()
    yield sample(x, scores, -1, 1).raises()
    yield sample(x, scores, -1, 2).raises()
    yield sample(x, scores, -1, 3).raises()
    yield sample(x, scores).raises()
    yield sample(x, ints(3, 3), -1, 0).raises()
