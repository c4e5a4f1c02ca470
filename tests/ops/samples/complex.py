"""Samples of the operators in `_ops/complex.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import (
    Sample,
    complexes,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN, INF = float("nan"), float("inf")


@samples("view_as_real")
def view_as_real() -> Iterator[Sample]:
    yield sample(complexes(2, 3))
    yield sample(complexes(2, 3, dtype="complex128").T)
    yield sample(floats(2)).raises()


@samples("view_as_complex")
def view_as_complex() -> Iterator[Sample]:
    yield sample(floats(3, 2))
    yield sample(doubles(2, 3, 2).transpose(1, 0, 2))
    yield sample(floats(3)).raises()
    yield sample(f32(1)).raises()
    yield sample(ints(3, 2)).raises()


@samples("conj_physical")
def conj_physical() -> Iterator[Sample]:
    yield sample(complexes(3)).twice()


@samples("_conj")
def conj() -> Iterator[Sample]:
    yield sample(complexes(2, 3)).twice()
    yield sample(complexes(3, dtype="complex128"))


@samples("_neg_view")
def neg_view() -> Iterator[Sample]:
    yield sample(floats(2, 3)).twice()
    yield sample(complexes(3))
    yield sample(ints(3))
