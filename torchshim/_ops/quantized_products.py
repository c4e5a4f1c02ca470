"""Numbers before and after products of integers that stand for other numbers.

As FBGEMM computes them, which PyTorch uses on x86: sums of products are exact, and what
they stand for is rounded in float32.
https://github.com/pytorch/FBGEMM/blob/v1.5.0/src/QuantUtilsAvx2.cc
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from torchshim._core.op import Array, Scalar, op

_INNER: dict[str, Any] = {
    **{"namespaces": (), "method": False, "out": False},
    **{"differentiable": False, "saves": ()},
}
_SMALLEST = 6.1e-5  # below it products with the scale lose all digits


def is_exact(terms: int, reach: int) -> bool:
    """Whether float32 holds sums of so many products of steps exactly.

    Steps of inputs are 255 at most, those of weights `reach`.
    """
    return terms * 255 * reach <= 1 << 24


def chosen(least: Array, most: Array, reduce_range: bool) -> tuple[Array, Array]:
    """The scales (float32) and codes of zero with which 8 bits reach so far.

    As `ChooseQuantizationParams` of
    https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/quantized/cpu/QuantUtils.h
    """
    high = 127 if reduce_range else 255
    least = jnp.minimum(least, 0).astype(jnp.float64)
    most = jnp.maximum(most, 0).astype(jnp.float64)
    scale = (most - least) / high
    single = scale.astype(jnp.float32)
    scale = jnp.where((single == 0) | jnp.isinf(jnp.float32(1) / single), 0.1, scale)
    small = jnp.float64(jnp.float32(_SMALLEST))
    one_sided, grown = (least == 0) | (most == 0), small / scale
    ends = (
        jnp.where(one_sided, jnp.sign(end) * small * high, end * grown)
        for end in (least, most)
    )
    least, most = (
        jnp.where(scale < small, wide, end)
        for wide, end in zip(ends, (least, most), strict=True)
    )
    scale = jnp.maximum(scale, small)
    low_zero, high_zero = -least / scale, high - most / scale
    nearer = -jnp.abs(least / scale) < high - jnp.abs(most / scale)
    zero = jnp.where(nearer, low_zero, high_zero).astype(jnp.float32)
    return scale.astype(jnp.float32), jnp.clip(jnp.round(zero), 0, high)


def steps_of(x: Array, scale: Array, zero: Array) -> Array:
    """Numbers as whole multiples of the scale that have a code, in float32.

    The product and the code of zero are added up before they are rounded, in a fused
    multiplication and addition: float64 holds the product.
    """
    inverse = (jnp.float32(1) / scale).astype(jnp.float64)
    codes = jnp.round((x.astype(jnp.float64) * inverse + zero).astype(jnp.float32))
    return jnp.clip(codes, 0, 255) - zero


def all_steps(x: Array, reduce_range: bool) -> tuple[Array, Array]:
    """Numbers as multiples of a scale that they themselves give, and the scale."""
    ends = (x.min(), x.max()) if x.size else (jnp.float32(0), jnp.float32(0))
    scale, zero = chosen(*ends, reduce_range)
    return steps_of(x, scale, zero), scale


@op(**_INNER)
def quantized_steps(input: Array, reduce_range: bool) -> tuple[Array, Array]:
    """Numbers as multiples of a scale that they themselves give, and the scale."""
    return all_steps(input.astype(jnp.float32), reduce_range)


def _along(x: Array, like: Array, dim: int) -> Array:
    """One number, or one for each index of a dimension, as it broadcasts."""
    shape = [1] * like.ndim
    shape[dim] = -1
    return x.reshape(shape)


def scaled(
    acc: Array, scale: Array, scales: Array, bias: Array | None, dim: int
) -> Array:
    """What sums of products stand for: of steps of one scale and of weights'."""
    made = acc.astype(jnp.float32) * _along(scale * scales, acc, dim)
    return made if bias is None else made + _along(bias, acc, dim)


@op(**_INNER)
def quantized_sums(
    acc: Array, scale: Array, scales: Array, bias: Array | None, dim: int, relu: bool
) -> Array:
    """What sums of products stand for, in float32."""
    made = scaled(acc, scale, scales, bias, dim)
    return jnp.maximum(made, 0) if relu else made


@op(**_INNER)
def requantized(
    acc: Array,
    scales: Array,
    bias: Array | None,
    input_scale: Scalar,
    scale: Scalar,
    zero_point: Scalar,
    dim: int,
    relu: bool,
) -> Array:
    """The codes (uint8) of what sums of products stand for, by another scale.

    The bias is divided by the products' scale first: what is rounded is the sum.
    """
    product = jnp.asarray(input_scale).astype(jnp.float32) * scales
    factor = product / jnp.asarray(scale).astype(jnp.float32)
    steps = acc.astype(jnp.float32)
    if bias is not None:
        one = scales.size == 1
        shift = bias * (jnp.float32(1) / product) if one else bias / product
        steps = steps + _along(shift, acc, dim)
    zero = jnp.asarray(zero_point).astype(jnp.float32)
    codes = jnp.round(steps * _along(factor, acc, dim)) + zero
    return jnp.clip(codes, zero if relu else 0, 255).astype(jnp.uint8)
