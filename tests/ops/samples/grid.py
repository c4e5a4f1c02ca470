"""Samples of the operators in `_ops/grid.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, sample, samples


@samples("grid_sampler")
def sampled() -> Iterator[Sample]:
    points = floats(1, 2, 3, 2, low=-0.9, high=0.9)
    yield sample(floats(1, 2, 3, 3), points, 0, 0, False).twice()
    yield sample(floats(1, 2, 3, 3), points, 2, 1, True)
    yield sample(floats(1, 2, 3, 3), points[..., :1], 0, 0, False).raises()


@samples("affine_grid_generator")
def affine() -> Iterator[Sample]:
    yield sample(floats(2, 2, 3), (2, 1, 2, 3), False).twice()
    yield sample(floats(1, 3, 4), (1, 1, 2, 3, 2), True)
    yield sample(floats(2, 2, 3), (3, 1, 2, 3), False).raises()
