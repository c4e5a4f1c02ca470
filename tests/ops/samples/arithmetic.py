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

NAN, INF = float("nan"), float("inf")


@samples("add", "sub", "rsub")
def sums() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3)).twice()
    yield sample(floats(2, 3), 2.5, alpha=3)
    yield sample(ints(3), floats(2, 1)).without("inplace")
    yield sample(ints(3), ints(3, dtype="uint8"), alpha=2)
    yield sample(ints(3, dtype="int8"), 100)
    yield sample(ints(3), 1.5)
    yield sample(complexes(3), floats(3), alpha=2)
    yield sample(bf16([1.0, 2.5]), bf16([[0.1], [3.0]]))
    yield sample(floats(3, 2).T, floats(2, 3))
    yield sample(floats(2, 0), floats(1))
    yield sample(f32(2.0), ints(2))
    yield sample(floats(2, 3), floats(2)).raises()
    yield sample(bools(2), bools(2)).raises()
    yield sample(bools(2), 1).raises()
    yield sample(ints(2), bools(2)).raises()
    yield sample(ints(2), ints(2), alpha=0.5).raises()
    yield sample(ints(2), ints(2), alpha=True).raises()
    yield sample(floats(2), floats(2), alpha=1j).raises()


@samples("mul")
def mul() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3)).twice()
    yield sample(floats(2, 3), 2)
    yield sample(bools(3), bools(3))
    yield sample(bools(3), 2)
    yield sample(ints(3, dtype="int8"), 100)
    yield sample(complexes(3), complexes(2, 1))
    yield sample(complexes(3), floats(3))
    yield sample(floats(3), 2j)
    yield sample(floats(2).astype("float16"), floats(1).astype("float16"))
    yield sample(floats(2, 3, 2).transpose(2, 0, 1), floats(2, 2, 3))
    yield sample(f32([INF, NAN, 0]), f32([0, 1, INF]))
    yield sample(f32([INF, NAN, -2]), np.array([False, False, True]))


@samples("addcmul")
def addcmul() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3), floats(2, 1), value=0.5).twice()
    yield sample(ints(3), ints(3), ints(3), value=2)
    yield sample(complexes(2), complexes(2), complexes(2))
    yield sample(bools(3), bools(3), bools(3)).raises()


@samples("addcdiv")
def addcdiv() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3), doubles(2, 1), value=0.5).twice()
    yield sample(floats(3), ints(3), floats(3))
    yield sample(ints(3), ints(3), ints(3)).raises()


@samples("lerp")
def lerp() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3), 0.3).twice()
    yield sample(floats(3), floats(3)[::-1].copy(), f32([0.2, 0.5, 0.9])).twice()
    yield sample(complexes(2), complexes(2), 0.7)
    yield sample(floats(3), floats(3), doubles(3)).raises()
    yield sample(floats(3), doubles(3), 0.5).raises()
    yield sample(ints(3), ints(3), ints(3)).raises()


@samples("div")
def div() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3)).twice()
    yield sample(floats(2, 3), 2)
    yield sample(ints(3), ints(3))
    yield sample(bools(3), True)
    yield sample(ints(3), 0)
    yield sample(complexes(3), complexes(3))
    yield sample(f32([0, 1, -1]), f32([0, 0, -0.0]))
    yield sample(bf16([1, 2.5]), 3)
    yield sample(ints(2), f32([2, 3]).astype("float16"))


_A = f32([7, -7, 7, -7, 0, 1, INF, 3, -1e-3])
_B = f32([3, 3, -3, -3, 5, 0, 2, INF, 2])


def _rounding(mode: str) -> Iterator[Sample]:
    yield sample(_A, _B, rounding_mode=mode)
    yield sample(floats(2, 3), 0.3, rounding_mode=mode)
    yield sample(ints(3), ints(3, 1) | 1, rounding_mode=mode)
    yield sample(np.int64([-(2**63), 5, -5]), 2, rounding_mode=mode)
    yield sample(ints(4, dtype="uint8"), 3, rounding_mode=mode)
    yield sample(ints(3), 2.5, rounding_mode=mode)
    yield sample(ints(3), 0, rounding_mode=mode).raises()
    yield sample(ints(3), ints(3) * 0, rounding_mode=mode).raises()
    yield sample(bools(3), bools(3), rounding_mode=mode).raises()
    yield sample(complexes(3), 2, rounding_mode=mode).raises()


@samples("div.mode")
def div_mode() -> Iterator[Sample]:
    yield from _rounding("floor")
    yield from _rounding("trunc")
    yield sample(floats(3), 2, rounding_mode="up").raises()


@samples("div.none")
def div_none() -> Iterator[Sample]:
    yield sample(floats(3), floats(3), rounding_mode=None)
    yield sample(ints(3), 2, rounding_mode=None)


@samples("floor_divide", "remainder", "fmod")
def modulo() -> Iterator[Sample]:
    yield sample(_A, _B)
    yield sample(floats(2, 3), 0.3)
    yield sample(doubles(2, 3), doubles(3))
    yield sample(ints(3), ints(3, 1) | 1)
    yield sample(np.int32([-7, 7, -8, 8]), np.int32([[3], [-3]]))
    yield sample(ints(4, dtype="uint8"), 3)
    yield sample(ints(3), 2.5)
    yield sample(ints(0), 0)
    yield sample(bf16([5.5, -5.5]), 2)
    yield sample(ints(3), 0).raises()
    yield sample(ints(3), ints(3) * 0).raises()
    yield sample(bools(3), bools(3)).raises()
    yield sample(complexes(3), 2).raises()


@samples("reciprocal", "sqrt", "rsqrt")
def roots() -> Iterator[Sample]:
    yield sample(doubles(2, 3, low=0.1)).twice()
    yield sample(f32([0, 1, 4, 9, -1, INF, NAN, 1e-3]))
    yield sample(ints(3, low=1))
    yield sample(bools(3))
    yield sample(complexes(3))
    yield sample(bf16([2, 0.5]))


@samples("neg")
def neg() -> Iterator[Sample]:
    yield sample(floats(2, 3)).twice()
    yield sample(ints(3, dtype="uint8"))
    yield sample(complexes(3))
    yield sample(bools(3)).raises()
