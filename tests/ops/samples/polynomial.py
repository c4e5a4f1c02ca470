"""Samples of the operators in `_ops/polynomial.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import Sample, complexes, f32, floats, ints, sample, samples

INF = float("inf")
POINTS = np.array([-3.0, -1.0, -0.3, 0.0, 0.25, 0.5, 0.9, 1.0, 2.5, INF])
DEGREES = np.array([-1.0, 0, 1, 2, 3, 5, 7, 9, 12, 40])


@samples(
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
)
def polynomials() -> Iterator[Sample]:
    yield sample(POINTS[:, None], DEGREES)
    yield sample(f32(POINTS), 3)
    yield sample(f32(POINTS), 2.7)
    yield sample(0.5, ints(5, low=0, high=4))
    yield sample(ints(3), 4)
    yield sample(complexes(2), 3).raises()
    yield sample(floats(2).astype("float16"), 3).raises()
    yield sample(f32(0.5).astype("float16"), floats(2))
    yield sample(floats(2).astype("float16"), f32(2)).raises()
