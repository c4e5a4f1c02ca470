"""Normalization of quantized tensors, by another scale.

https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/quantized/cpu/Normalization.cpp
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core.layout import channels_last, channels_last_3d
from torchshim._core.record import untracked
from torchshim._quantized.arithmetic import in_order, result_scheme
from torchshim._quantized.packed import operator
from torchshim._quantized.products import check_backend
from torchshim._quantized.tensor import (
    CODES,
    PerTensor,
    decoded,
    encoded,
    numbers_of,
    per_tensor,
    quantized,
)
from torchshim.nn import functional as F


def _normalized(
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    eps: float,
    scheme: PerTensor,
    relu: bool,
) -> Any:
    """The steps of (N, C, …) by a factor and a summand for each channel."""
    given = per_tensor(x)
    kind, least, most = CODES[x.dtype]
    if relu:
        least = scheme.zero_point
    one, other = np.float32(given.scale), np.float32(scheme.scale)
    with untracked():
        factor = (1 / (var + float(np.float32(eps))).sqrt()) * weight
        shift = (bias - mean * factor) / float(other)
        shape = [1, -1, *(1 for _ in range(x.dim() - 2))]
        steps = numbers_of(x._v) - given.zero_point
        made = steps * (factor * float(one / other)).view(shape) + shift.view(shape)
        codes = (made.round() + scheme.zero_point).clamp(least, most).to(kind)
        return quantized(codes, scheme)


def _batch_norm(dims: int | None, relu: bool, name: str) -> None:
    def batch_norm(
        qx: Any,
        weight: Any,
        bias: Any,
        mean: Any,
        var: Any,
        eps: float,
        output_scale: float,
        output_zero_point: int,
    ) -> Any:
        """A batch normalization by running statistics, by the scale of the result."""
        check_backend(qx, f"quantized::{name}")
        _check(qx.dim(), dims)
        if weight is None:
            raise RuntimeError("Weight must be provided")
        if bias is None:
            raise RuntimeError("Bias must be provided")
        scheme = result_scheme(output_scale, output_zero_point)
        x, added = qx, 0
        if qx.dim() < 4:
            added = 4 - qx.dim()
            x = qx.view(*qx.shape, *(1 for _ in range(added)))
        w, b, m, v = (t.detach() for t in (weight, bias, mean, var))
        made = _normalized(x, w, b, m, v, eps, scheme, relu)
        kept = channels_last_3d if x.dim() == 5 else channels_last
        codes = made._v.contiguous(memory_format=kept)
        return made._like(codes.reshape(qx.shape).contiguous() if added else codes)

    operator(name)(batch_norm)


def _check(found: int, dims: int | None) -> None:
    if dims == 1 and found not in (2, 3):
        raise RuntimeError("Expecting the input tensor of rank 2 or 3.")
    if dims == 2 and found != 4:
        raise RuntimeError("Expecting the input tensor of rank 4.")
    if dims == 3 and found != 5:
        raise RuntimeError("Expecting the input tensor of rank 5.")
    if dims is None and not 2 <= found <= 5:
        raise RuntimeError(
            "quantized::batch_norm only support 2d, 3d, 4d or 5d inputs."
        )


for _end in ("", "_relu"):
    _batch_norm(None, bool(_end), f"batch_norm{_end}")
    for _n in (1, 2, 3):
        _batch_norm(_n, bool(_end), f"batch_norm{_n}d{_end}")


def _through(x: Any, scale: float, zero_point: int, function: Any) -> Any:
    check_backend(x, "quantized::norm")
    per_tensor(x)
    x, scheme = in_order(x), result_scheme(scale, zero_point)
    with untracked():
        return quantized(encoded(function(decoded(x)), scheme, x.dtype), scheme)


def _plain(value: Any) -> Any:
    return value if value is None else value.detach()


@operator("layer_norm")
def layer_norm(
    input: Any,
    normalized_shape: Sequence[int],
    weight: Any,
    bias: Any,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """As `torch.nn.functional.layer_norm`, by the scale of the result."""
    parts = list(normalized_shape), _plain(weight), _plain(bias), eps
    scheme = output_scale, output_zero_point
    return _through(input, *scheme, lambda x: F.layer_norm(x, *parts))


@operator("group_norm")
def group_norm(
    input: Any,
    num_groups: int,
    weight: Any,
    bias: Any,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """As `torch.nn.functional.group_norm`, by the scale of the result."""
    parts = num_groups, _plain(weight), _plain(bias), eps
    scheme = output_scale, output_zero_point
    return _through(input, *scheme, lambda x: F.group_norm(x, *parts))


@operator("instance_norm")
def instance_norm(
    input: Any,
    weight: Any,
    bias: Any,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """As `torch.nn.functional.instance_norm`, by the scale of the result."""
    groups = input.shape[1]
    rest = eps, output_scale, output_zero_point
    return group_norm(input, groups, weight, bias, *rest)
