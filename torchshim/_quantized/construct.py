"""Quantized tensors out of floating point numbers or codes, and what they know.

https://docs.pytorch.org/docs/2.13/generated/torch.quantize_per_tensor.html
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.record import untracked
from torchshim._derived import public
from torchshim._errors import triggered, warn_once
from torchshim._functions._arguments import device_of, size_of
from torchshim._functions.creation import placed
from torchshim._ops._formats import suggested_format
from torchshim._quantized.tensor import (
    CODES,
    NOT_QUANTIZED,
    PerChannel,
    PerTensor,
    Scheme,
    check_length,
    codes_dtype,
    decoded,
    encoded,
    handles,
    is_quantized,
    per_tensor,
    quantized,
    refuse,
)
from torchshim._tensor import Tensor, host_value

_DEPRECATED = triggered(
    "torch.quantize_per_tensor, torch.quantize_per_channel and other quantized tensor "
    "creation functions that produce tensors with dtype torch.quint8, torch.qint8, and "
    "torch.qint32 are deprecated and will be removed in a future PyTorch release. "
    "Please see https://github.com/pytorch/pytorch/issues/184982 for more information.",
    "aten/src/ATen/quantized/Quantizer.cpp:111",
)


@public
def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    """The elements of a float32 tensor rounded to multiples of a scale, as integers.

    Scale and zero point may be tensors of one element; a sequence of tensors takes a
    tensor of each. `dtype` is ``torch.quint8``, ``qint8`` or ``qint32``. Raises
    RuntimeError for other dtypes and a zero point that the codes do not have.

    https://docs.pytorch.org/docs/2.13/generated/torch.quantize_per_tensor.html

    >>> import torchshim as torch
    >>> q = torch.quantize_per_tensor(torch.tensor([-1.0, 0.26]), 0.1, 10, torch.quint8)
    >>> q.int_repr()
    tensor([ 0, 13], dtype=torch.uint8)
    >>> q.dequantize()
    tensor([-1.0000,  0.3000])
    """
    if not isinstance(input, Tensor):
        each = zip(input, scale.tolist(), zero_point.tolist(), strict=True)
        return tuple(quantize_per_tensor(x, s, z, dtype) for x, s, z in each)
    if isinstance(scale, Tensor):
        scale = float(scale)
    if isinstance(zero_point, Tensor):
        zero_point = int(zero_point)
    if not isinstance(zero_point, int):
        raise TypeError(f"zero_point must be an int, not {type(zero_point).__name__}")
    scheme = PerTensor(float(scale), zero_point)
    _, least, most = codes_dtype(dtype)
    _check_floats(input, "Quantize only works on Float Tensor, got {}")
    _check_zero_points([zero_point], least, most, "per_tensor_affine")
    warn_once(_DEPRECATED)
    return quantized(encoded(arranged(input.detach()), scheme, dtype), scheme)


def arranged(input: Any) -> Any:
    """A tensor whose codes are in the order that PyTorch gives them."""
    meta = input._tmeta
    kept = suggested_format(meta.shape, meta.strides)
    with untracked():
        return input.contiguous(memory_format=kept)


def _check_floats(input: Any, text: str) -> None:
    if input.dtype is not dtypes.float32:
        raise RuntimeError(text.format(input.dtype.scalar_name))


def _check_zero_points(zeros: Iterable[int], least: int, most: int, kind: str) -> None:
    for zero in zeros:
        if not least <= zero <= most:
            where = "above upper" if zero > most else "below lower"
            raise RuntimeError(
                f"quantize_tensor_{kind} zero_point {zero} is {where} bound."
            )


@public
def quantize_per_channel(
    input: Any, scales: Any, zero_points: Any, axis: int, dtype: Any
) -> Any:
    """As `quantize_per_tensor`, with a scale for each index of a dimension.

    Zero points of floating point are added before the elements are rounded.

    https://docs.pytorch.org/docs/2.13/generated/torch.quantize_per_channel.html

    >>> import torchshim as torch
    >>> x, scales, zeros = torch.ones(2, 1), torch.tensor([0.1, 0.5]), torch.zeros(2)
    >>> torch.quantize_per_channel(x, scales, zeros.long(), 0, torch.qint8).int_repr()
    tensor([[10],
            [ 2]], dtype=torch.int8)
    """
    _, least, most = codes_dtype(dtype)
    scheme = _channels(scales, zero_points, axis)
    _check_floats(
        input, "quantize_tensor_per_channel_affine expects a Float Tensor, got {}"
    )
    if not 0 <= axis < input.dim():
        raise RuntimeError(
            "Channel axis out of range in per channel affine quantization. Got: "
            f"{axis}Expected: [0, {input.dim()})"
        )
    check_length(scheme, input.shape[axis])
    if not scheme.floats:
        zeros = host_value(scheme.zero_points).tolist()
        _check_zero_points(zeros, least, most, "per_channel_affine")
    warn_once(_DEPRECATED)
    return quantized(encoded(arranged(input.detach()), scheme, dtype), scheme)


def _channels(scales: Any, zero_points: Any, axis: int) -> PerChannel:
    """The scheme of these parts, in the dtypes that PyTorch keeps them in."""
    for name, each in (("scale", scales), ("zero_points", zero_points)):
        if each.dim() != 1:
            raise RuntimeError(f"{name} tensor must have dimension 1")
    if not scales.dtype.is_floating_point:
        raise RuntimeError("scale tensor must be floating point")
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    floats = zero_points.dtype.is_floating_point
    with untracked():
        scales = scales.detach().to(dtypes.float32 if floats else dtypes.float64)
        zeros = zero_points.detach().to(dtypes.float32 if floats else dtypes.int64)
    return PerChannel(scales, zeros, axis)


@public
def quantize_per_tensor_dynamic(input: Any, dtype: Any, reduce_range: bool) -> Any:
    """As `quantize_per_tensor`, with a scale that the elements themselves give.

    With `reduce_range` the scale leaves half of the codes unused, as sums of products
    on some processors need it. For float16 it is a conversion.

    https://docs.pytorch.org/docs/2.13/generated/torch.quantize_per_tensor_dynamic.html

    >>> import torchshim as torch
    >>> x = torch.tensor([-1.0, 0.0, 2.0])
    >>> torch.quantize_per_tensor_dynamic(x, torch.quint8, False).int_repr()
    tensor([  0,  85, 255], dtype=torch.uint8)
    """
    if dtype is dtypes.float16:
        return input.to(dtype)
    if dtype.name not in ("quint8", "qint8"):
        raise RuntimeError(f"dtype {dtype.scalar_name}not supported")
    _check_floats(input, "Quantize only works on Float Tensor, got {}")
    if not input.numel():
        input.min()  # raises
    scheme = _chosen_for(input, dtype, reduce_range)
    return quantize_per_tensor(input, scheme.scale, scheme.zero_point, dtype)


@public
def _choose_qparams_per_tensor(
    input: Any, reduce_range: bool = False
) -> tuple[float, int]:
    """The scale and zero point with which `quantize_per_tensor_dynamic` quantizes.

    >>> import torchshim as torch
    >>> torch._choose_qparams_per_tensor(torch.tensor([-1.0, 1.55]))[1]
    100
    """
    scale, zero_point = _chosen_for(input, dtypes.NAMES["quint8"], reduce_range)
    return scale, zero_point


def _chosen_for(input: Any, dtype: Any, reduce_range: bool) -> PerTensor:
    with untracked():
        least, most = float(input.min()), float(input.max())
    return chosen(least, most, dtype, reduce_range)


def chosen(least: float, most: float, dtype: Any, reduce_range: bool) -> PerTensor:
    """The scale and zero point with which codes reach from one number to another.

    Zero is one of the numbers that have a code. As `ChooseQuantizationParams` of
    https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/quantized/cpu/QuantUtils.h
    """
    _, low, high = CODES[dtype]
    if reduce_range:
        low, high = int(low / 2), high // 2
    least, most = min(least, 0.0), max(most, 0.0)
    scale = (np.float64(most) - least) / (high - low)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = np.float64(0.1)
    small = np.float64(np.float32(6.1e-5))
    if scale < small:  # below it products with the scale lose all digits
        before, scale = scale, small
        if least == 0:
            most = small * (high - low)
        elif most == 0:
            least = -small * (high - low)
        else:
            least, most = least * (small / before), most * (small / before)
    from_least, from_most = low - least / scale, high - most / scale
    wrong_least = abs(low) - abs(least / scale)
    wrong_most = abs(high) - abs(most / scale)
    zero = from_least if wrong_least < wrong_most else from_most
    if zero < low:
        nudged = low
    elif zero > high:
        nudged = high
    else:
        nudged = int(np.rint(np.float32(zero)))
    return PerTensor(float(scale), nudged)


# Memory and codes ---------------------------------------------------------------------


def _empty(size: Any, dtype: Any, device: Any, scheme: Scheme) -> Any:
    if dtype not in CODES:
        raise RuntimeError(NOT_QUANTIZED)
    where = device_of("empty", device or "cpu")
    shape = size_of("empty", size)
    return quantized(placed(np.zeros(shape, CODES[dtype][0].np), where), scheme)


@public
def _empty_affine_quantized(
    size: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    scale: float = 1.0,
    zero_point: int = 0,
    memory_format: Any = None,
) -> Any:
    """A quantized tensor of this size, whose codes are zero."""
    scheme = PerTensor(float(scale), zero_point)
    made = _empty(size, dtype, device, scheme)
    return _arranged(made, memory_format)


@public
def _empty_per_channel_affine_quantized(
    size: Any,
    *,
    scales: Any,
    zero_points: Any,
    axis: int,
    dtype: Any = None,
    device: Any = None,
    memory_format: Any = None,
) -> Any:
    """As `_empty_affine_quantized`, with a scale for each index of a dimension."""
    scheme = _channels(scales, zero_points, axis)
    made = _empty(size, dtype, device, scheme)
    check_length(scheme, made.shape[axis])
    return _arranged(made, memory_format)


def _arranged(made: Any, memory_format: Any) -> Any:
    if memory_format is None:
        return made
    return made._like(made._v.contiguous(memory_format=memory_format))


@handles("empty_quantized")
@public
def empty_quantized(
    size: Any,
    qtensor: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    memory_format: Any = None,
) -> Any:
    """A quantized tensor of this size, with the scheme of another.

    >>> import torchshim as torch
    >>> q = torch.quantize_per_tensor(torch.ones(2), 0.5, 1, torch.quint8)
    >>> torch.empty_quantized((3,), q).q_scale()
    0.5
    """
    if not is_quantized(qtensor):
        refuse("aten::empty_quantized")
    made = _empty(size, dtype or qtensor.dtype, device, qtensor._scheme)
    if isinstance(made._scheme, PerChannel):
        check_length(made._scheme, made.shape[made._scheme.axis])
    return _arranged(made, memory_format)


def _of_codes(input: Any, scheme: Scheme) -> Any:
    if input.dtype.name not in ("uint8", "int8", "int32"):
        raise RuntimeError(NOT_QUANTIZED)
    return quantized(input.detach().clone(), scheme)


@public
def _make_per_tensor_quantized_tensor(input: Any, scale: float, zero_point: int) -> Any:
    """A quantized tensor of these codes."""
    return _of_codes(input, PerTensor(float(scale), zero_point))


@public
def _make_per_channel_quantized_tensor(
    input: Any, scale: Any, zero_point: Any, axis: int
) -> Any:
    """A quantized tensor of these codes, with a scale for each index of a dimension."""
    scheme = _channels(scale, zero_point, axis)
    check_length(scheme, input.shape[axis])
    return _of_codes(input, scheme)


# Questions ----------------------------------------------------------------------------


@handles("dequantize")
def _dequantized(input: Any) -> Any:
    if is_quantized(input):
        return decoded(input)
    return tuple(each.dequantize() for each in input)


@handles("int_repr")
def int_repr(input: Any) -> Any:
    """A copy of the codes."""
    return input._v.clone()


@handles("q_scale")
def q_scale(input: Any) -> float:
    """The scale."""
    return per_tensor(input).scale


@handles("q_zero_point")
def q_zero_point(input: Any) -> int:
    """The code of zero."""
    return per_tensor(input).zero_point


@handles("qscheme")
def qscheme(input: Any) -> Any:
    """The name of the scheme."""
    return input._scheme.qscheme


def _per_channel(input: Any) -> PerChannel:
    if isinstance(input._scheme, PerChannel):
        return input._scheme
    raise RuntimeError(
        "Expected quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == "
        "kPerChannelAffineFloatQParams to be true, but got false.  (Could this error "
        "message be improved?  If so, please report an enhancement request to PyTorch.)"
    )


@handles("q_per_channel_scales")
def q_per_channel_scales(input: Any) -> Any:
    """The scale of each index of the axis."""
    return _per_channel(input).scales


@handles("q_per_channel_zero_points")
def q_per_channel_zero_points(input: Any) -> Any:
    """The zero point of each index of the axis."""
    return _per_channel(input).zero_points


@handles("q_per_channel_axis")
def q_per_channel_axis(input: Any) -> int:
    """The dimension whose indices have scales of their own."""
    return _per_channel(input).axis


def as_quantized(numbers: Any, like: Any, scheme: Scheme | None = None) -> Any:
    """Numbers in the dtype of a quantized tensor, with its scheme or another."""
    found: Scheme = like._scheme if scheme is None else scheme
    return quantized(encoded(numbers, found, like.dtype), found)
