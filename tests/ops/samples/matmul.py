"""Samples of the operators in `_ops/matmul.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import (
    Sample,
    bf16,
    complexes,
    doubles,
    f32,
    floats,
    ints,
    sample,
    samples,
)

NAN = float("nan")


@samples("matmul")
def matmuls() -> Iterator[Sample]:
    for a, b in (
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((5, 2, 3), (5, 3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (3,)),
        ((2, 3), (5, 3, 4)),
        ((3,), (5, 3, 4)),
        ((2, 1, 2, 3), (5, 3, 4)),
        ((4, 0), (0,)),
        ((2, 4, 0), (0,)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
    ):
        yield sample(floats(*a), floats(*b)).twice()
    yield sample(complexes(2, 2), complexes(2, 2))
    yield sample(ints(2, 3), ints(3, 2))
    yield sample(bf16(floats(2, 3)), bf16(floats(3, 2)))
    yield sample(floats(2, 3).astype("float16"), floats(3, 2).astype("float16"))
    yield sample(floats(3, 2).T, floats(3, 2)).raises()
    yield sample(floats(2, 3), doubles(3, 2)).raises()


@samples("mm")
def matrices() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3, 4)).twice()
    yield sample(complexes(2, 3), complexes(3, 2))
    yield sample(floats(2, 3), floats(2, 3)).raises()


@samples("bmm")
def batches() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4), floats(2, 4, 1)).twice()
    yield sample(floats(2, 3, 4), floats(3, 4, 1)).raises()


@samples("mv")
def matrix_and_vector() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(3)).twice()
    yield sample(floats(2, 3), floats(2)).raises()


@samples("dot", "inner", "vdot")
def vectors() -> Iterator[Sample]:
    yield sample(floats(3), floats(3)).twice()
    yield sample(complexes(3), complexes(3))
    yield sample(floats(3), floats(2)).raises()


@samples("_int_mm")
def small_integers() -> Iterator[Sample]:
    high = {"low": 100, "high": 128}
    large = [ints(*shape, dtype="int8", **high) for shape in ((3, 5), (5, 2))]
    # PyTorch resizes no out=.
    yield sample(*large).without("out")
    small = ints(5, 2, dtype="int8")
    yield sample(ints(3, 5, dtype="uint8", **high), small).without("out")
    yield sample(ints(0, 5, dtype="int8"), small).without("out")
    yield sample(ints(3, 5, dtype="int8"), ints(5, 2, dtype="uint8")).raises()
    yield sample(ints(3, 5), ints(5, 2, dtype="int8")).raises()
    yield sample(ints(3, 5, dtype="int8"), ints(3, 2, dtype="int8")).raises()
    yield sample(ints(5, dtype="int8"), ints(5, 2, dtype="int8")).raises()


@samples("addmm")
def sum_with_matrices() -> Iterator[Sample]:
    yield sample(floats(2, 4), floats(2, 3), floats(3, 4)).twice()
    yield sample(floats(4), floats(2, 3), floats(3, 4), beta=2, alpha=0.5).without(
        "inplace"
    )
    yield sample(f32([[NAN, 1]]), floats(1, 3), floats(3, 2), beta=0).without("grad")
    yield sample(ints(2, 2), ints(2, 3), ints(3, 2), alpha=2)
    yield sample(floats(3, 4), floats(2, 3), floats(3, 4)).raises()
    yield sample(floats(2, 4), floats(2, 3), doubles(3, 4)).raises()


@samples("addmv")
def sum_with_matrix_and_vector() -> Iterator[Sample]:
    yield sample(floats(2), floats(2, 3), floats(3), beta=0.5, alpha=2.0).twice()
    yield sample(floats(3), floats(2, 3), floats(3)).raises()


@samples("addr")
def sum_with_vectors() -> Iterator[Sample]:
    yield sample(floats(3, 2), floats(3), floats(2), beta=0.5, alpha=2.0).twice()
    yield sample(floats(3, 3), floats(3), floats(2)).raises()


@samples("baddbmm", "addbmm")
def sum_with_batches() -> Iterator[Sample]:
    yield sample(floats(3, 5), floats(2, 3, 4), floats(2, 4, 5)).without("inplace")
    yield sample(
        floats(3, 5), floats(2, 3, 4), floats(2, 4, 5), beta=0.5, alpha=2.0
    ).without("inplace")
    yield sample(floats(3, 6), floats(2, 3, 4), floats(2, 4, 5)).raises()


@samples("linear")
def linears() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(4, 3), floats(4))
    yield sample(floats(2, 3), floats(4, 2)).raises()


@samples("bilinear")
def bilinears() -> Iterator[Sample]:
    yield sample(floats(2, 3), floats(2, 4), floats(5, 3, 4), floats(5))
