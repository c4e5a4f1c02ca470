"""Samples of the operators in `_ops/special.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    bf16,
    complexes,
    constant,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")


SPECIAL = f32([0.0, NAN, INF, -INF, 1.0])


def _unary(low: float = -2.0, high: float = 2.0, half: bool = True) -> Iterator[Sample]:
    yield sample(doubles(3, low=low, high=high)).twice()
    yield sample(SPECIAL)
    if half:
        yield sample(bf16([0.5, 0.25]))
    yield sample(ints(3, low=1)).without("inplace")
    yield sample(complexes(3)).raises()


@samples("erf", "erfc", "ndtr", "i0", "i0e")
def everywhere() -> Iterator[Sample]:
    yield from _unary()


@samples("erfinv")
def erfinv() -> Iterator[Sample]:
    yield from _unary(-0.95, 0.95)


@samples("erfcx")
def erfcx() -> Iterator[Sample]:
    yield from _unary(half=False)
    yield sample(np.float64([-30, -5, 2.5, 7, 30, 1e10]))
    yield sample(f32([-5, -1.5, 0.1, 3, 60, 1e20]))
    yield sample(bf16([0.5])).raises()


@samples("ndtri")
def ndtri() -> Iterator[Sample]:
    yield from _unary(0.05, 0.95, half=False)
    yield sample(bf16([0.5])).raises()


@samples("i1", "i1e")
def bessel() -> Iterator[Sample]:
    yield from _unary(half=False)


@samples("log_ndtr")
def log_ndtr() -> Iterator[Sample]:
    yield from _unary(half=False)
    yield sample(np.float64([5, -5, -20]))
    yield sample(bf16([0.5])).raises()


@samples("entr", "lgamma", "digamma")
def positive() -> Iterator[Sample]:
    yield from _unary(0.3, 4.0)
    yield sample(f32([-1.5, -0.3, 20]))


@samples("xlog1py")
def xlog1py() -> Iterator[Sample]:
    yield sample(doubles(2, 3), doubles(3, low=-0.9)).twice()
    yield sample(f32([0, 0, 1, 0]), f32([-1, -2, 0, NAN]))
    yield sample(2, floats(3, low=0.1))
    yield sample(floats(3), 2.5)


@samples("polygamma")
def polygamma() -> Iterator[Sample]:
    yield sample(1, doubles(2, 3, low=0.3)).twice()
    for n in range(5):
        yield sample(n, floats(4, low=0.3, high=5))
    yield sample(1, f32([-0.3, -1.7]))
    for n in range(4):
        yield sample(n, np.float64([-20.3, -2.5, -1, 0, 1e20, -1e-5])).without("grad")
        yield sample(n, doubles(3, low=-5)).twice()
    yield sample(2, ints(3, low=1))
    yield sample(-1, floats(2)).raises()


@samples("polygamma.method")
def polygamma_method() -> Iterator[Sample]:
    yield sample(floats(3, low=0.3), 2)


@samples("mvlgamma")
def mvlgamma() -> Iterator[Sample]:
    yield sample(doubles(2, 3, low=2.1, high=5), 3)
    yield sample(floats(3, low=0.5), 1)
    yield sample(floats(2), 0).raises()


@samples("igamma", "igammac")
def igamma() -> Iterator[Sample]:
    yield sample(constant(doubles(2, 3, low=0.3)), doubles(3, low=0.3))
    yield sample(constant(f32([1, 2, 0])), f32([1, 0, 1]))
    yield sample(constant(ints(3, low=1)), floats(3, low=0.3))
    yield sample(ints(3, low=1), ints(3, low=1)).raises()


@samples("zeta")
def zeta() -> Iterator[Sample]:
    yield sample(constant(doubles(2, 3, low=1.3, high=5)), doubles(3, low=0.3))
    yield sample(2.5, floats(3, low=0.3))
    edges = np.float64([-20.3, -0.5, -1, 0, 1e-9, 1, 1e15, np.nan])
    for order in (2.0, 3.0, 2.5, 1.0, 0.5, np.inf):
        yield sample(order, edges).without("grad")
    yield sample(constant(floats(3, low=1.5)), 1.5)
    yield sample(constant(floats(3, low=1.5).astype("float16")), 1.5).raises()
    steep = np.float64([-1001.2, -3.3, -0.01, 0.4, 1, 3, 501])
    for order in (35.0, 677.0, 3419.0, 3420.0, 1e13, 1e20):
        yield sample(order, steep).without("grad")
        yield sample(order, steep.astype("float32")).without("grad")
