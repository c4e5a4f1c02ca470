"""Functions of quantized tensors (`torch.ao.nn.quantized.functional`).

https://docs.pytorch.org/docs/2.13/quantization-support.html#torch-ao-nn-quantized-functional
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim.ao.nn.quantized.modules.utils import _pair_from_first
from torchshim.nn import functional as F
from torchshim.nn.modules.utils import _pair, _triple
from torchshim.ops import quantized as ops

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool2d",
    "avg_pool3d",
    "celu",
    "clamp",
    "conv1d",
    "conv2d",
    "conv3d",
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "interpolate",
    "leaky_relu",
    "linear",
    "max_pool1d",
    "max_pool2d",
    "threshold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def _check(input: Any, name: str) -> None:
    """ValueError for a tensor that is not quantized."""
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


# Pooling and resizing -----------------------------------------------------------------


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """As `torch.nn.functional.avg_pool2d`; the scale stays."""
    _check(input, "avg_pool2d")
    options = ceil_mode, count_include_pad, divisor_override
    return F.avg_pool2d(input, kernel_size, stride, padding, *options)


def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """As `torch.nn.functional.avg_pool3d`; the scale stays."""
    _check(input, "avg_pool3d")
    options = ceil_mode, count_include_pad, divisor_override
    return F.avg_pool3d(input, kernel_size, stride, padding, *options)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """As `torch.nn.functional.adaptive_avg_pool2d`; the scale stays."""
    _check(input, "functional.adaptive_avg_pool2d")
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """As `torch.nn.functional.adaptive_avg_pool3d`; the scale stays."""
    _check(input, "functional.adaptive_avg_pool3d")
    return F.adaptive_avg_pool3d(input, output_size)


def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """As `torch.nn.functional.max_pool1d`; the scale stays."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """As `torch.nn.functional.max_pool2d`; the scale stays."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """As `torch.nn.functional.interpolate`, nearest and bilinear; the scale stays."""
    _check(input, "interpolate")
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def _older(name: str) -> None:
    warnings.warn(
        f"nn.quantized.functional.{name} is deprecated. Use "
        "nn.quantized.functional.interpolate instead.",
        stacklevel=3,
    )


def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """The older name of `interpolate`."""
    _older("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """As `interpolate`, bilinear with corners that stay."""
    _older("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """As `interpolate`, nearest."""
    _older("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


# Layers -------------------------------------------------------------------------------


def linear(
    input: Any,
    weight: Any,
    bias: Any = None,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Any:
    """A linear layer; scale and zero point of the result are the input's for None.

    The weight is packed in each call: layers do it once.
    """
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return ops.linear(input, ops.linear_prepack(weight, bias), scale, zero_point)


_Sizes = Callable[[Any], Any]
_KINDS: dict[int, tuple[_Sizes, str]] = {
    1: (_pair_from_first, "L"),
    2: (_pair, "H, W"),
    3: (_triple, "D, H, W"),
}


def _convolved(
    dims: int,
    input: Any,
    weight: Any,
    bias: Any,
    space: tuple[Any, ...],
    groups: int,
    padding_mode: str,
    scale: float,
    zero_point: int,
) -> Any:
    if padding_mode != "zeros":
        raise NotImplementedError("Only zero-padding is supported!")
    if input.dtype != torchshim.quint8:
        raise NotImplementedError(
            "Only torch.quint8 is supported for activation tensor!"
        )
    if weight.dtype != torchshim.qint8:
        raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
    sizes, places = _KINDS[dims]
    if input.ndim != dims + 2:
        raise ValueError(f"Input shape must be `(N, C, {places})`!")
    pack = getattr(ops, f"conv{dims}d_prepack")
    packed = pack(weight, bias, *map(sizes, space), groups)
    return getattr(ops, f"conv{dims}d")(input, packed, scale, zero_point)


def conv1d(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = None,
) -> Any:
    """A convolution over quantized sequences, by the scale of the result."""
    space = stride, padding, dilation
    scheme = padding_mode, scale, zero_point
    return _convolved(1, input, weight, bias, space, groups, *scheme)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = None,
) -> Any:
    """A convolution over quantized images, by the scale of the result.

    >>> import torchshim as torch
    >>> x = torch.quantize_per_tensor(torch.randn(1, 4, 5, 5), 1.0, 0, torch.quint8)
    >>> w = torch.quantize_per_tensor(torch.randn(8, 4, 3, 3), 0.5, 0, torch.qint8)
    >>> conv2d(x, w, torch.zeros(8), padding=1, scale=1.0, zero_point=0).shape
    torch.Size([1, 8, 5, 5])
    """
    space = stride, padding, dilation
    scheme = padding_mode, scale, zero_point
    return _convolved(2, input, weight, bias, space, groups, *scheme)


def conv3d(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = None,
) -> Any:
    """A convolution over quantized volumes, by the scale of the result."""
    space = stride, padding, dilation
    scheme = padding_mode, scale, zero_point
    return _convolved(3, input, weight, bias, space, groups, *scheme)


# Activations --------------------------------------------------------------------------


def celu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Any:
    """As `torch.nn.functional.celu`, by the scale of the result."""
    _check(input, "celu")
    return ops.celu(input, scale, zero_point, alpha)


def elu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Any:
    """As `torch.nn.functional.elu`, by the scale of the result."""
    _check(input, "elu")
    return ops.elu(input, scale, zero_point, alpha)


def hardswish(input: Any, scale: float, zero_point: int) -> Any:
    """As `torch.nn.functional.hardswish`, by the scale of the result."""
    _check(input, "hardswish")
    return ops.hardswish(input, scale, zero_point)


def leaky_relu(
    input: Any,
    negative_slope: float = 0.01,
    inplace: bool = False,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Any:
    """As `torch.nn.functional.leaky_relu`; the scale stays if none is given."""
    if scale is None or zero_point is None:
        return F.leaky_relu(input, negative_slope, inplace)
    if inplace:
        raise AssertionError("Cannot rescale with `inplace`")
    return ops.leaky_relu(input, negative_slope, False, scale, int(zero_point))


def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    """As `torch.nn.functional.hardtanh`; the scale stays."""
    _check(input, "hardtanh")
    return F.hardtanh(input, min_val, max_val, inplace)


def threshold(input: Any, threshold: float, value: float) -> Any:
    """As `torch.nn.functional.threshold`; the scale stays."""
    _check(input, "threshold")
    for name, number in (("threshold", threshold), ("value", value)):
        if number is None:
            raise ValueError(f"Input to '{name}' must be specified!")
    return ops.threshold(input, threshold, value)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """As `torch.nn.functional.hardsigmoid`, in 256 steps from 0 to 1."""
    _check(input, "hardsigmoid")
    return F.hardsigmoid(input, inplace)


def clamp(input: Any, min_: float, max_: float) -> Any:
    """As `torch.clamp`; the scale stays."""
    _check(input, "clamp")
    return torchshim.clamp(input, min_, max_)
