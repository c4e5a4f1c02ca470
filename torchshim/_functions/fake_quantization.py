"""Fake quantization whose scale follows a moving range of what it has seen."""

from __future__ import annotations

import math
from typing import Any

from torchshim._core import dtypes
from torchshim._derived import fns, public
from torchshim._structseq import structseq

Helper = structseq("_fused_moving_avg_obs_fq_helper", ("output", "mask"))


@public
def _fused_moving_avg_obs_fq_helper(
    input: Any,
    observer_on: Any,
    fake_quant_on: Any,
    running_min: Any,
    running_max: Any,
    scale: Any,
    zero_point: Any,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Any:
    """As `fused_moving_avg_obs_fake_quant`, and which elements were not cut off."""
    if ch_axis >= input.dim():
        raise RuntimeError(
            "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()"
        )
    if per_row_fake_quant:
        if ch_axis != 0:
            raise RuntimeError(
                "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only "
                "supported on axis == 0"
            )
        if not running_min.numel():
            size = input.shape[0]
            running_min.resize_(size).fill_(math.inf)
            running_max.resize_(size).fill_(-math.inf)
            scale.resize_(size)
            zero_point.resize_(size)
    if input.dtype is not dtypes.float32 and observer_on.item():
        raise RuntimeError(
            f"expected scalar type Float but found {input.dtype.scalar_name}"
        )
    if per_row_fake_quant and input.dim() == 1:
        fns.aminmax(input, dim=1)  # raises
    for each in (running_min, running_max):
        if each.dtype is not dtypes.float32:
            raise RuntimeError(
                f"expected scalar type Float but found {each.dtype.scalar_name}"
            )
    if quant_min > quant_max:
        raise RuntimeError(
            "`quant_min` should be less than or         equal to `quant_max`."
        )
    x = input.detach()
    found = fns.moving_range(
        x,
        observer_on,
        running_min,
        running_max,
        averaging_const,
        per_row_fake_quant,
    )
    running_min.copy_(found[0])
    running_max.copy_(found[1])
    made = fns.parameters_of_range(
        running_min,
        running_max,
        fake_quant_on,
        scale,
        zero_point,
        quant_min,
        quant_max,
        symmetric_quant,
    )
    scale.copy_(made[0])
    zero_point.copy_(made[1])
    limits = per_row_fake_quant, quant_min, quant_max
    return Helper(fns.faked_if(input, fake_quant_on, scale, zero_point, *limits))


@public
def fused_moving_avg_obs_fake_quant(
    input: Any,
    observer_on: Any,
    fake_quant_on: Any,
    running_min: Any,
    running_max: Any,
    scale: Any,
    zero_point: Any,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Any:
    """`input` rounded as quantization would, with a scale that follows its range.

    Where `observer_on`, `running_min` and `running_max` move towards the range of the
    elements; infinite ones become that range. Where `fake_quant_on`, `scale` and
    `zero_point` become those of the range, and the result is rounded, as by
    `fake_quantize_per_tensor_affine`. All four are changed in place. With
    `per_row_fake_quant` there are ones for each index of the first dimension.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.fake_quantize.FusedMovingAvgObsFakeQuantize.html

    >>> import torchshim as torch
    >>> on, low, high = torch.tensor([1]), torch.tensor([0.0]), torch.tensor([1.0])
    >>> scale, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
    >>> given = torch.tensor([0.0, 0.4, 3.0]), on, on, low, high, scale, zero
    >>> torch.fused_moving_avg_obs_fake_quant(*given, 0.5, 0, 4, 0)
    tensor([0.0000, 0.5000, 2.0000])
    >>> high, scale
    (tensor([2.]), tensor([0.5000]))
    """
    if not input.numel():
        return input.clone()
    return _fused_moving_avg_obs_fq_helper(
        input,
        observer_on,
        fake_quant_on,
        running_min,
        running_max,
        scale,
        zero_point,
        averaging_const,
        quant_min,
        quant_max,
        ch_axis,
        per_row_fake_quant,
        symmetric_quant,
    )[0]
