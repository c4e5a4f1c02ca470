"""Samples of the operators in `_ops/covariance.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    bools,
    complexes,
    constant,
    f32,
    floats,
    ints,
    sample,
    samples,
)


@samples("cov")
def covariances() -> Iterator[Sample]:
    yield sample(floats(2, 4)).twice()
    yield sample(floats(2, 4), correction=0)
    yield sample(floats(2, 3), fweights=np.array([1, 2, 3]))
    yield sample(floats(2, 3), aweights=f32([1, 2, 3])).without("grad")
    yield sample(
        floats(2, 3), fweights=np.array([1, 0, 3]), aweights=constant(f32([1, 2, 3]))
    )
    yield sample(floats(3))
    yield sample(ints(2, 3))
    yield sample(complexes(2, 3))
    yield sample(f32(2.0)).without("grad")
    yield sample(floats(1)).without("grad")
    yield sample(floats(2, 2, 2)).raises()
    yield sample(bools(2, 3)).raises()
    yield sample(floats(2, 3), fweights=floats(3)).raises()
    yield sample(floats(2, 3), fweights=bools(3)).raises()
    yield sample(floats(2, 3), fweights=ints(2)).raises()
    yield sample(floats(2, 3), fweights=ints(1, 3)).raises()
    yield sample(floats(2, 3), aweights=ints(3)).raises()
    yield sample(floats(2, 3), aweights=floats(1, 3)).raises()
    yield sample(floats(2, 3), aweights=floats(2)).raises()
    yield sample(floats(2, 3), fweights=np.array([1, -2, 3])).raises()
    yield sample(floats(2, 3), fweights=np.array([0, 0, 0])).raises()


@samples("corrcoef")
def correlations() -> Iterator[Sample]:
    yield sample(floats(3, 4))
    yield sample(ints(2, 3))
    yield sample(floats(3)).without("grad")
    yield sample(complexes(2, 3)).without("grad")
    yield sample(floats(2, 2, 2)).raises()
