"""Samples of the operators in `_ops/aten.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import (
    Sample,
    attr,
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

I = np.array  # noqa: E741
INF = np.inf


@samples("_softmax_backward_data")
def softmax_backward_data() -> Iterator[Sample]:
    shares = f32([[0.25, 0.75], [0.5, 0.5]])
    yield sample(floats(2, 2), shares, 1, attr("float32")).twice()
    yield sample(bf16(floats(2, 2)), bf16(shares), -1, attr("bfloat16"))
    yield sample(f32(2), f32(1), 0, attr("float32"))
    yield sample(floats(2, 2), shares, 1, attr("float16")).raises()
    yield sample(floats(2, 2), doubles(2, 2), 1, attr("float32")).raises()
    yield sample(ints(2), ints(2), 0, attr("int64")).raises()
    yield sample(floats(2, 2), shares, 2, attr("float32")).raises()


@samples("_safe_softmax")
def safe_softmax() -> Iterator[Sample]:
    yield sample(floats(2, 3), 1).twice()
    yield sample(f32([[-INF, -INF], [1, -INF]]), 1).twice()
    yield sample(f32([[-INF, 2], [-INF, 1]]), 0, dtype=attr("float64"))
    yield sample(bf16([-INF, 1]), 0)
    yield sample(f32(-INF), 0)
    yield sample(ints(2), 0).raises()


@samples("_unsafe_masked_index")
def unsafe_masked_index() -> Iterator[Sample]:
    where = (I([0, 9, -1]),)
    yield sample(floats(4), I([True, True, False]), where, 2.5)
    yield sample(floats(3, 4), I([[True], [False]]), (I([[0], [-9]]), I([1, 3])), 0)
    yield sample(complexes(4), I([True, True, False]), where, 1)
    yield sample(bools(4), I([True, True, False]), where, 1)
    yield sample(floats(0), I([True, False]), (I([0, 1]),), 3)
    yield sample(ints(4), bools(2), (I([0, 1], np.int32),), 2.5)
    yield sample(ints(4), bools(2), (I([True, False]),), 2).raises()


@samples("_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put_accumulate() -> Iterator[Sample]:
    where = (I([0, 9, 3]),)
    yield sample(floats(4), I([True, True, True]), where, floats(3))
    yield sample(floats(4), I([True, False, True]), where, floats(1))
    yield sample(ints(4), I([True, False, True]), where, ints(3))
    yield sample(bools(4), I([True, True, True]), where, bools(3))
    yield sample(floats(3, 2).T, I([True]), (I([1]),), floats(1, 3))
    yield sample(floats(4), bools(2), (f32([0, 1]),), floats(2)).raises()


@samples("_chunk_cat")
def chunk_cat() -> Iterator[Sample]:
    yield sample([floats(2, 3), floats(2, 4)], 1, 2).without("grad")
    yield sample([floats(2, 3), floats(5, 1, 2)], 0, 2).without("grad")
    yield sample([ints(3, 2), ints(1, 4)], -2, 2).without("grad")
    yield sample([floats(2, 3), floats(4)], -1, 3).raises()
    yield sample([floats(2, 3), floats(4)], 1, 3).raises()
    yield sample([floats(2, 3, 4), floats(4, 3)], 1, 3).raises()
    yield sample([floats(2)], 0, 0).raises()
    yield sample([], 0, 1).raises()
    yield sample([floats(0), floats(3)], 0, 1).raises()
    yield sample([floats(2), ints(3)], 0, 1).raises()


@samples("native_group_norm")
def native_group_norm() -> Iterator[Sample]:
    x = doubles(2, 4, 3)
    yield sample(x, doubles(4), doubles(4), 2, 4, 3, 2, 0.1).twice()
    yield sample(bf16(floats(1, 4)), None, None, 1, 4, 1, 2, 1e-5).without("grad")
    yield sample(bf16(floats(1, 4)), floats(4), None, 1, 4, 1, 1, 1e-5).without("grad")
    yield sample(x, None, None, 2, 4, 3, 3, 0.1).raises()
    yield sample(x.T, None, None, 3, 4, 2, 2, 0.1).raises()


@samples("max_pool2d_with_indices_backward")
def max_pool2d_with_indices_backward() -> Iterator[Sample]:
    at = I([[[[5, 5], [8, 10]]]])
    fields = ((3, 3), (1, 1), (0, 0), (1, 1), False, at)
    grad = floats(1, 1, 2, 2)
    yield sample(grad, floats(1, 1, 4, 4), *fields).twice()
    yield sample(grad[0], floats(1, 4, 4), *fields[:-1], at[0])
    last = floats(1, 4, 4, 2).transpose(0, 3, 1, 2)
    two = I([[[[5, 5], [8, 10]]] * 2])
    yield sample(floats(1, 2, 2, 2), last, *fields[:-1], two)


@samples("native_dropout_backward")
def native_dropout_backward() -> Iterator[Sample]:
    yield sample(floats(2, 2), bools(2, 2), 2.0).twice()
    yield sample(bf16(floats(2)), bools(2), 1.5)


@samples("_log_softmax_backward_data")
def log_softmax_backward_data() -> Iterator[Sample]:
    shares = np.log(f32([[0.25, 0.75], [0.5, 0.5]]))
    yield sample(floats(2, 2), shares, 1, attr("float32")).twice()
    yield sample(bf16(floats(2, 2)), bf16(shares), 0, attr("bfloat16"))
    yield sample(f32(2), f32(0), 0, attr("float32"))
    yield sample(floats(2, 2), shares, 1, attr("float16")).raises()
    yield sample(ints(2), ints(2), 0, attr("int64")).raises()
    yield sample(floats(2, 2), shares, 2, attr("float32")).raises()


SIGNS = f32([-2.5, -1.0, -0.0, 0.5, 1.0, 3.0])


@samples("threshold_backward")
def threshold_backward() -> Iterator[Sample]:
    yield sample(floats(6), SIGNS, 0.5).twice()
    yield sample(bf16(floats(6)), bf16(SIGNS), 0)


@samples("sigmoid_backward", "tanh_backward")
def of_results() -> Iterator[Sample]:
    yield sample(floats(6), SIGNS / 4).twice()
    yield sample(bf16(floats(6)), bf16(SIGNS / 4))
    yield sample(complexes(2), complexes(2))


@samples("gelu_backward")
def gelu_backward() -> Iterator[Sample]:
    yield sample(floats(6), SIGNS).twice()
    yield sample(floats(6), SIGNS, approximate="tanh").twice()
    yield sample(bf16(floats(6)), bf16(SIGNS))


@samples("silu_backward", "mish_backward")
def of_operands() -> Iterator[Sample]:
    yield sample(floats(6), SIGNS).without("grad")
    yield sample(bf16(floats(6)), bf16(SIGNS)).without("grad")


@samples("hardtanh_backward")
def hardtanh_backward() -> Iterator[Sample]:
    yield sample(floats(6), SIGNS, -1.0, 1.0).twice()
    yield sample(bf16(floats(6)), bf16(SIGNS), 0, 2)


@samples("leaky_relu_backward")
def leaky_relu_backward() -> Iterator[Sample]:
    yield sample(floats(6), SIGNS, 0.1, False).twice()
    yield sample(floats(6), SIGNS, -0.1, False)
    yield sample(bf16(floats(6)), bf16(SIGNS), 0.1, True)
    yield sample(floats(6), SIGNS, -0.1, True).raises()


@samples("elu_backward")
def elu_backward() -> Iterator[Sample]:
    yield sample(floats(6), 1.5, 2.0, 0.5, False, SIGNS).twice()
    yield sample(floats(6), 1.5, 2.0, 0.5, True, SIGNS)
    yield sample(bf16(floats(6)), 1, 1, 1, False, bf16(SIGNS))
    yield sample(floats(6), -1.5, 2.0, 0.5, True, SIGNS).raises()


@samples("mse_loss_backward")
def mse_loss_backward() -> Iterator[Sample]:
    yield sample(floats(6), SIGNS, floats(6), 0).twice()
    yield sample(f32(1.5), SIGNS, floats(6), 1).twice()
    yield sample(f32(1.5), SIGNS, floats(6), 2)


@samples("embedding_dense_backward")
def embedding_dense_backward() -> Iterator[Sample]:
    yield sample(floats(3, 2), I([1, 0, 1]), 4, -1, False).twice()
    yield sample(floats(3, 2), I([1, 0, 1]), 3, 0, True).without("grad")
    yield sample(floats(2, 2, 3), I([[1, 0], [2, 1]]), 3, 1, False)
    yield sample(bf16(floats(3, 2)), I([1, 0, 1]), 2, -1, False)
