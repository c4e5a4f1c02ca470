"""Samples of the operators in `_ops/hashing.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, bf16, bools, floats, ints, sample, samples


@samples("hash_tensor")
def hashes() -> Iterator[Sample]:
    yield sample(floats(2, 3))
    yield sample(ints(2, 3, dtype="int8"), 1)
    yield sample(floats(2, 3), (0, 1), keepdim=True)
    yield sample(bools(4))
    yield sample(bf16([1.5, -2]))
    yield sample(floats(0, 2), 1)
    yield sample(floats(0, 2), 0).raises()
    yield sample(floats(0)).raises()
    yield sample(floats(2), mode=1).raises()
