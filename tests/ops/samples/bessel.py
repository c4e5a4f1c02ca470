"""Samples of the operators in `_ops/bessel.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    bf16,
    complexes,
    f32,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")
# On both sides of every point where approximations meet.
RANGE = np.concatenate(
    [
        np.linspace(-12, 12, 33),
        [0.0, 1e-7, -1e-7, 0.49, 0.51, 1.99, 2.01, 2.1, 4.99, 5.01, 8.33, 30.0, 103.0],
        [-2.1, -2.08, -30.0, NAN, INF, -INF],
    ]
)


@samples(
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
)
def functions() -> Iterator[Sample]:
    yield sample(RANGE)
    yield sample(f32(RANGE))
    yield sample(ints(3, low=1))
    yield sample(bf16([0.5])).raises()
    yield sample(f32([0.5]).astype("float16")).raises()
    yield sample(complexes(2)).raises()
