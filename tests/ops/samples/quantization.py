"""Samples of the operators in `_ops/quantization.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.ops.samples import Sample, bf16, doubles, f32, floats, sample, samples

NAN, INF = float("nan"), float("inf")
VALUES = [-3.0, -1.0, -0.26, -0.25, 0.0, 0.15, 0.26, 5.0, NAN, INF]


def i32(values: Any) -> np.ndarray:
    """An int32 array of these values."""
    return np.asarray(values, np.int32)


@samples("fake_quantize_by_numbers")
def by_numbers() -> Iterator[Sample]:
    yield sample(f32(VALUES), 0.1, 0, 0, 255)
    yield sample(f32(VALUES), 0.5, 3, -4, 4)
    yield sample(doubles(2, 3), 0.3, 0, -2, 2)
    yield sample(bf16([1.0, 0.3]), 0.1, 0, 0, 255)
    yield sample(floats(2, 3, 2).transpose(2, 0, 1), 0.1, 0, 0, 255)
    yield sample(floats(0), 0.1, 0, 0, 255)
    yield sample(f32([1.0]), 0.1, 0, 5, 2)
    yield sample(f32([1.0]), 0.1, 300, 0, 255)
    yield sample(i32([1]), 0.1, 0, 0, 255)


@samples("fake_quantize_by_tensors")
def by_tensors() -> Iterator[Sample]:
    yield sample(f32(VALUES), f32(0.1), i32(3), -128, 127)
    yield sample(doubles(2, 3), f32([0.1]), i32([0]), -8, 7)


@samples("fake_quantize_per_channel_affine")
def per_channel() -> Iterator[Sample]:
    scale, zero = f32([0.1, 0.2]), i32([0, 3])
    yield sample(f32(VALUES).reshape(2, 5), scale, zero, 0, 0, 255)
    yield sample(f32(VALUES).reshape(5, 2), scale, zero, 1, -5, 255)
    yield sample(f32(VALUES).reshape(5, 2), scale, f32([0.25, 3]), 1, 0, 255)
    yield sample(floats(3, 2, 2), scale, zero, 1, 0, 255)
    yield sample(floats(2, 5), scale, zero, 1, 0, 255)
    yield sample(floats(2, 5), scale, zero, 2, 0, 255)
    yield sample(floats(2, 5), doubles(2), zero, 0, 0, 255)
    yield sample(floats(2, 5), scale, f32([1.0]), 0, 0, 255)
    yield sample(floats(2, 5), scale, i32([-5, 0]), 0, 0, 255)


@samples("_fake_quantize_learnable_per_tensor_affine")
def learned() -> Iterator[Sample]:
    yield sample(f32(VALUES[:8]), f32([0.1]), f32([3.7]), 0, 15)
    yield sample(f32(VALUES[:8]), f32([0.2]), f32([-0.7]), -8, 15, 0.5)
    yield sample(floats(2, 3), f32([0.1]), f32([99.0]), -8, 15)
    yield sample(floats(2, 3), f32(0.1), f32([0.0]), 0, 15)
    yield sample(floats(2, 3), f32([0.1]), f32([0.0]), 5, 1)


@samples("_fake_quantize_learnable_per_channel_affine")
def learned_per_channel() -> Iterator[Sample]:
    scale, zero = f32([0.1, 0.2]), f32([3.7, -0.7])
    yield sample(f32(VALUES[:8]).reshape(2, 4), scale, zero, 0, -8, 15)
    yield sample(f32(VALUES[:8]).reshape(4, 2), scale, zero, 1, -8, 15, 0.25)
    yield sample(floats(1, 2, 2), scale, zero - 1.8, 2, -8, 15)
    yield sample(floats(2, 2), scale, zero, -1, -8, 15)
    yield sample(floats(2, 2), scale, zero, 2, -8, 15)
    yield sample(floats(2, 2), scale[:1], zero, 0, -8, 15)
