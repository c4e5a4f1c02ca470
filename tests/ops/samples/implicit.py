"""Samples of the operators in `_ops/implicit.py`: every formula, at its edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import Sample, sample, samples

GRID = np.array([0.05, 0.5, 0.79, 0.81, 2.0, 7.0, 8.5, 9.3, 12.0, 40.0])


def _forms(*arrays: np.ndarray, dtypes: tuple[type, ...]) -> Iterator[Sample]:
    for dtype in dtypes:
        values = [np.ascontiguousarray(a, dtype) for a in arrays]
        yield sample(*values).without("out", "keywords", "method", "inplace", "grad")


@samples("_standard_gamma_grad")
def standard_gamma_grad() -> Iterator[Sample]:
    yield from _forms(*np.meshgrid(GRID, GRID), dtypes=(np.float64, np.float32))


@samples("_dirichlet_grad")
def dirichlet_grad() -> Iterator[Sample]:
    part = np.array([0.01, 0.2, 0.45, 0.5, 0.55, 0.7, 0.97])
    x, a, b = np.meshgrid(part, GRID, GRID)
    # PyTorch's float32 loses digits in differences of digammas that double keeps.
    yield from _forms(x, a, a + b, dtypes=(np.float64,))
