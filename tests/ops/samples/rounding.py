"""Samples of the operators in `_ops/rounding.py`."""

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


SPECIAL = f32([0.0, -0.0, NAN, INF, -INF, 0.5, 1.5, -2.5])


def _unary() -> Iterator[Sample]:
    yield sample(doubles(2, 3))
    yield sample(SPECIAL)
    yield sample(ints(3))
    yield sample(ints(3, dtype="uint8"))
    yield sample(bf16([2.5, -0.5]))
    yield sample(floats(2, 3, 2).transpose(2, 0, 1))


@samples("abs", "sgn")
def complex_too() -> Iterator[Sample]:
    yield from _unary()
    yield sample(complexes(3)).twice().without("inplace")
    yield sample(np.complex64([0, 3 + 4j])).without("inplace")
    yield sample(np.complex128([3e-200 + 4e-200j, 3e200])).twice().without("inplace")


@samples("sign", "floor", "ceil", "trunc")
def real_only() -> Iterator[Sample]:
    yield from _unary()
    yield sample(complexes(3)).raises()


@samples("round")
def rounds() -> Iterator[Sample]:
    yield from _unary()
    yield sample(complexes(3)).raises()


@samples("round.decimals")
def decimals() -> Iterator[Sample]:
    yield sample(SPECIAL, decimals=0)
    yield sample(ints(3), decimals=0).raises()
    yield sample(doubles(3), decimals=1)
    yield sample(floats(3, low=-200, high=200), decimals=-1)
    yield sample(floats(3), decimals=400).without("grad")
    yield sample(doubles(3), decimals=-309).without("grad")
    yield sample(complexes(3), decimals=1).raises()
    yield sample(ints(3), decimals=1).raises()


@samples("special_round")
def special_round() -> Iterator[Sample]:
    yield sample(floats(3))
    yield sample(doubles(3), decimals=2)
    yield sample(ints(3)).raises()


@samples("frac")
def frac() -> Iterator[Sample]:
    yield sample(doubles(2, 3))
    yield sample(SPECIAL)
    yield sample(ints(3)).raises()
    yield sample(complexes(3)).raises()


@samples("angle")
def angle() -> Iterator[Sample]:
    yield sample(doubles(2, 3))
    yield sample(SPECIAL)
    yield sample(ints(3))
    yield sample(complexes(3)).twice()
    yield sample(np.complex64([0, 3 + 4j, -1]))


@samples("copysign")
def copysign() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3))
    yield sample(f32([0, 1, -1, NAN]), f32([-1, -0.0, 1, 1]))
    yield sample(ints(3), -1)
    yield sample(floats(3), -0.0)
    yield sample(complexes(3), 1.0).raises()


@samples("signbit")
def signbit() -> Iterator[Sample]:
    yield sample(SPECIAL)
    yield sample(ints(3))
    yield sample(ints(3, dtype="uint8"))
    yield sample(bools(3))
    yield sample(complexes(3)).raises()


@samples("heaviside")
def heaviside() -> Iterator[Sample]:
    yield sample(SPECIAL, floats(8))
    yield sample(ints(3), ints(3))
    yield sample(floats(3), ints(3)).raises()
    yield sample(complexes(3), complexes(3)).raises()


@samples("nan_to_num")
def nan_to_num() -> Iterator[Sample]:
    yield sample(SPECIAL)
    yield sample(SPECIAL, 1.0, 2.0, -2.0)
    yield sample(SPECIAL.astype("float64"), posinf=7)
    yield sample(ints(3))
    yield sample(np.complex64([complex(NAN, INF), 1])).without("grad")
    yield sample(np.complex64([complex(NAN, INF), 1]))
    yield sample(bf16([NAN, INF]))


@samples("nextafter")
def nextafter() -> Iterator[Sample]:
    yield sample(f32([1, 1, 2, 0]), f32([1, 2, 1, 1]))
    yield sample(doubles(3), doubles(2, 1))
    yield sample(ints(3), ints(3)).raises()


@samples("ldexp")
def ldexp() -> Iterator[Sample]:
    # With negative integers PyTorch's gradient is 0: it takes 2 ** other as integers.
    yield sample(floats(2, 3), ints(3, low=0))
    yield sample(doubles(3), f32([3, 0.5, -1]))
    yield sample(ints(3), ints(3)).without("inplace")


@samples("frexp")
def frexp() -> Iterator[Sample]:
    yield sample(doubles(2, 3))
    yield sample(f32([0, 8, -0.75, 1024, 3e-5]))
    yield sample(ints(3)).raises()


@samples("gcd", "lcm")
def divisors() -> Iterator[Sample]:
    yield sample(np.int64([0, 0, 12, -12, 7]), np.int64([0, 5, 18, 18, -14]))
    yield sample(ints(3, dtype="int8"), ints(2, 1, dtype="uint8"))
    yield sample(np.int8([-128, -128, 127]), np.int8([-128, 3, -128]))
    yield sample(np.int8([-127, 99, 5]), np.int8([-126, 100, -7]))
    yield sample(np.int16([-32767, 999, -5]), np.int16([32766, 1000, 7]))
    yield sample(floats(3), floats(3)).raises()
    yield sample(bools(3), bools(3)).raises()
