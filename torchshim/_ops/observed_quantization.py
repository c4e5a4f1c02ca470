"""Fake quantization whose scale follows a moving range."""

from __future__ import annotations

import jax.numpy as jnp

from torchshim._core.op import Array, Scalar, op
from torchshim._ops._formats import first_layout
from torchshim._ops.quantization import faked


@op(
    namespaces=(),
    method=False,
    out=False,
    saves=(),
    differentiable=False,
    curved=False,
)
def moving_range(
    input: Array,
    observing: Array,
    least: Array,
    most: Array,
    averaging: Scalar,
    by_row: bool,
) -> tuple[Array, Array]:
    """The least and the greatest element seen, moved towards those of `input`.

    `by_row`: of each row. Infinite ones are those of `input`.
    """
    x = input.reshape(input.shape[0], -1) if by_row else input.reshape(1, -1)
    part = jnp.asarray(averaging).astype(jnp.float32)
    results = []
    for before, found in ((least, x.min(1)), (most, x.max(1))):
        found = found.reshape(before.shape)
        moved = before + part * (found - before)
        moved = jnp.where(jnp.isinf(before), found, moved)
        results.append(jnp.where(observing.reshape(()) != 0, moved, before))
    return results[0], results[1]


def _single(x: Array) -> Array:
    return x.astype(jnp.float32).astype(jnp.float64)


@op(
    namespaces=(),
    method=False,
    out=False,
    saves=(),
    differentiable=False,
    curved=False,
)
def parameters_of_range(
    least: Array,
    most: Array,
    enabled: Array,
    scale: Array,
    zero_point: Array,
    quant_min: int,
    quant_max: int,
    symmetric: bool,
) -> tuple[Array, Array]:
    """The scale and zero point of a range, or those that are given where not enabled.

    As `ChooseQuantizationParams` of
    https://github.com/pytorch/FBGEMM/blob/main/src/QuantUtils.cc
    """
    least, most = (x.astype(jnp.float64).reshape(scale.shape) for x in (least, most))
    codes = quant_max - quant_min
    spared = (least < 0) & (most > 0) & symmetric
    low, high = -(codes // 2 + 1), max(codes // 2, 1)
    wide = jnp.maximum(jnp.abs(least / low), jnp.abs(most / high))
    least = jnp.where(spared, _single(wide * low), least)
    most = jnp.where(spared, _single(wide * high), most)
    # Comparisons as in C++, where a number that is none stays.
    least = jnp.where(least > 0, 0.0, least)
    most = jnp.where(most < 0, 0.0, most)
    step = ((most - least) / codes).astype(jnp.float32)
    step = jnp.where((step == 0) | jnp.isinf(1 / step), jnp.float32(0.1), step)
    small = jnp.float32(6.1e-5)  # below it products with the scale lose all digits
    tiny, factor = step < small, (small / step).astype(jnp.float64)
    span = _single(small.astype(jnp.float64) * codes)
    bottom = jnp.where(most == 0, -span, _single(least * factor))
    top = jnp.where(most == 0, 0, _single(most * factor))
    least, most = (
        jnp.where(tiny, jnp.where(least == 0, 0, bottom), least),
        jnp.where(tiny, jnp.where(least == 0, span, top), most),
    )
    step = jnp.where(tiny, small, step).astype(jnp.float64)
    wrong_least = abs(quant_min) + jnp.abs(least / step)
    wrong_most = abs(quant_max) + jnp.abs(most / step)
    from_least, from_most = quant_min - least / step, quant_max - most / step
    zero = jnp.where(wrong_least < wrong_most, from_least, from_most)
    zero = jnp.where(spared, (quant_min + quant_max) / 2, zero)
    rounded = jnp.clip(jnp.round(zero), quant_min, quant_max)
    rounded = jnp.where(jnp.isnan(zero), jnp.float64(-(2.0**31)), rounded)
    on = enabled.reshape(()) != 0
    return (
        jnp.where(on, step.astype(scale.dtype), scale),
        jnp.where(on, rounded.astype(zero_point.dtype), zero_point),
    )


@op(
    namespaces=(),
    method=False,
    out=False,
    grad_fn="FusedMovingAvgObsFqHelperBackward0",
    saves=("intermediate",),
    differentiable=("input",),
    layout=first_layout,
    curved=False,
)
def faked_if(
    input: Array,
    enabled: Array,
    scale: Array,
    zero_point: Array,
    by_row: bool,
    quant_min: int,
    quant_max: int,
) -> tuple[Array, Array]:
    """`input` rounded to multiples of the scale where enabled; what was not cut off."""
    shape = (-1, *[1] * (input.ndim - 1)) if by_row else ()
    scale, zero = scale.reshape(shape), zero_point.reshape(shape).astype(jnp.int32)
    on = enabled.reshape(()) != 0
    made, inside = faked(input, scale, zero, quant_min, quant_max, by_row)
    return jnp.where(on, made, input), inside | ~on
