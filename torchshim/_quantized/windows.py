"""Pooling, padding, resizing and normalizing quantized tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchshim._core.layout import channels_last, channels_last_3d
from torchshim._core.record import untracked
from torchshim._derived import public
from torchshim._quantized.construct import as_quantized
from torchshim._quantized.tensor import (
    CODES,
    PerTensor,
    code_of,
    decoded,
    handles,
    is_quantized,
    numbers_of,
    per_tensor,
    refuse,
)
from torchshim.nn import functional as F


def _greatest(function: Callable[..., Any], input: Any, *args: Any, **kw: Any) -> Any:
    """A maximum of codes: that of numbers is in the same place."""
    per_tensor(input)
    with untracked():
        found = function(numbers_of(input._v), *args, **kw)
    return input._like(found.to(input._v.dtype))


def _max_pool(name: str) -> Callable[..., Any]:
    def pooled(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if return_indices:
            refuse(f"aten::{name}_with_indices.out")
        options = stride, padding, dilation, ceil_mode
        return _greatest(getattr(F, name), input, kernel_size, *options)

    return pooled


for _n in (1, 2, 3):
    handles(f"max_pool{_n}d")(_max_pool(f"max_pool{_n}d"))


def _average(function: Callable[..., Any], input: Any, *args: Any, **kw: Any) -> Any:
    """A mean of steps, rounded to even: zero is what the padding has."""
    scheme = per_tensor(input)
    _, least, most = CODES[input.dtype]
    with untracked():
        steps = function(numbers_of(input._v) - scheme.zero_point, *args, **kw)
        codes = (steps.round() + scheme.zero_point).clamp(least, most)
        return input._like(codes.to(input._v.dtype))


def _averaged(name: str) -> Callable[..., Any]:
    def averaged(input: Any, *args: Any, **kwargs: Any) -> Any:
        return _average(getattr(F, name), input, *args, **kwargs)

    return averaged


for _name in ("avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"):
    handles(_name)(_averaged(_name))


@handles("pad")
def pad(
    input: Any, pad: Any, mode: str = "constant", value: float | None = None
) -> Any:
    """As `torch.nn.functional.pad`, with the code of a number."""
    scheme = per_tensor(input)
    if mode == "constant":
        filled = float(code_of(value or 0.0, scheme, input.dtype))
        return _greatest(F.pad, input, pad, mode, filled)
    return _greatest(F.pad, input, pad, mode)


@handles("interpolate", "upsample")
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """As `torch.nn.functional.interpolate`: nearest and bilinear."""
    options = size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    if mode.startswith("nearest"):
        return _greatest(F.interpolate, input, *options)
    if mode != "bilinear" or antialias:
        refuse(f"aten::upsample_{mode}{input.dim() - 2}d")
    return _average(F.interpolate, input, *options)


@handles("upsample_nearest")
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """As `torch.nn.functional.upsample_nearest`."""
    return interpolate(input, size, scale_factor)


@handles("upsample_bilinear")
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """As `torch.nn.functional.upsample_bilinear`."""
    return interpolate(input, size, scale_factor, "bilinear", True)


@handles("grid_sample")
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """As `torch.nn.functional.grid_sample` of images, bilinear."""
    if input.dtype.name != "quint8" or input.dim() != 4:
        refuse("aten::grid_sampler_2d")
    if mode != "bilinear":
        raise RuntimeError(
            "_grid_sampler_2d_cpu_quantized(): only bilinear interpolation supported"
        )
    return _average(F.grid_sample, input, grid, mode, padding_mode, align_corners)


@public
def quantized_max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = (0,),
    dilation: Any = (1,),
    ceil_mode: bool = False,
) -> Any:
    """As `torch.nn.functional.max_pool1d`, of a quantized tensor.

    https://docs.pytorch.org/docs/2.13/generated/torch.quantized_max_pool1d.html

    >>> import torchshim as torch
    >>> q = torch.quantize_per_tensor(torch.rand(1, 4), 0.5, 3, torch.quint8)
    >>> torch.quantized_max_pool1d(q, [2]).shape
    torch.Size([1, 2])
    """
    return _quantized_pool(
        "max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode
    )


@public
def quantized_max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
) -> Any:
    """As `torch.nn.functional.max_pool2d`, of a quantized tensor.

    https://docs.pytorch.org/docs/2.13/generated/torch.quantized_max_pool2d.html

    >>> import torchshim as torch
    >>> q = torch.quantize_per_tensor(torch.rand(1, 4, 4), 0.5, 3, torch.quint8)
    >>> torch.quantized_max_pool2d(q, [2, 2]).shape
    torch.Size([1, 2, 2])
    """
    return _quantized_pool(
        "max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode
    )


@public
def quantized_max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    ceil_mode: bool = False,
) -> Any:
    """As `torch.nn.functional.max_pool3d`, of a quantized tensor.

    >>> import torchshim as torch
    >>> q = torch.quantize_per_tensor(torch.rand(1, 2, 4, 4), 0.5, 3, torch.quint8)
    >>> torch.quantized_max_pool3d(q, [2, 2, 2]).shape
    torch.Size([1, 1, 2, 2])
    """
    return _quantized_pool(
        "max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode
    )


def _quantized_pool(name: str, input: Any, kernel: Any, stride: Any, *rest: Any) -> Any:
    if not is_quantized(input):
        raise NotImplementedError(
            f"Could not run 'aten::quantized_{name}' with arguments from the 'CPU' "
            "backend: it takes quantized tensors"
        )
    if name != "max_pool1d":
        _check_windows(int(name[-2]), kernel, stride, *rest[:2])
    return _greatest(getattr(F, name), input, kernel, stride or None, *rest)


def _check_windows(n: int, *given: Any) -> None:
    """Raises for windows of `n` dimensions that cannot be."""
    given = tuple((each,) * n if isinstance(each, int) else each for each in given)
    kernel, stride, padding, dilation = given
    one = "1d or " if n == 2 else ""
    for name, each, lengths in (
        (f"{one}{n}d kernel size, got ", kernel, (n, n - 1 if one else n)),
        (f"no strides or {n}d strides, got", stride, (n, 0)),
        (f"{one}{n}d padding, got ", padding, (n, n - 1 if one else n)),
        (f"1d or {n}d dilation, got ", dilation, (n, n - 1 if one else n)),
    ):
        if len(each) not in lengths:
            raise RuntimeError(f"Expected {name}{len(each)}")
    if min(dilation) < 1:
        raise RuntimeError("Expected dilation >= 1")
    if min(kernel) <= 0:
        raise RuntimeError("kernel_size should be greater than zero.")
    if stride and min(stride) <= 0:
        raise RuntimeError("strides should be greater than zero.")
    if any(p > k // 2 for p, k in zip(padding, kernel, strict=False)):
        raise RuntimeError("padding should be smaller than half of kernel_size.")


for _n in (1, 2, 3):
    handles(f"quantized_max_pool{_n}d")(globals()[f"quantized_max_pool{_n}d"])


@public
def quantized_batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """A batch normalization of a quantized tensor, with another scale for the result.

    Takes tensors of the shape (N, C, H, W) or (N, C, D, H, W).
    https://docs.pytorch.org/docs/2.13/generated/torch.quantized_batch_norm.html

    >>> import torchshim as torch
    >>> q = torch.quantize_per_tensor(torch.rand(2, 2, 2, 2), 1.5, 3, torch.quint8)
    >>> one, zero = torch.ones(2), torch.zeros(2)
    >>> r = torch.quantized_batch_norm(q, one, zero, zero, one, 0.00001, 0.2, 2)
    >>> r.q_scale(), r.q_zero_point(), r.shape
    (0.2, 2, torch.Size([2, 2, 2, 2]))
    """
    if not is_quantized(input):
        refuse("quantized::batch_norm")
    if input.dim() not in (4, 5):
        raise RuntimeError("Expecting the input tensor of rank 4 or 5.")
    shape = [1, -1, *(1 for _ in range(input.dim() - 2))]
    with untracked():
        factor = (weight if weight is not None else 1) / (var + np.float32(eps)).sqrt()
        shift = (0 if bias is None else bias) - mean * factor
        made = decoded(input) * factor.view(shape) + shift.view(shape)
        kept = channels_last if input.dim() == 4 else channels_last_3d
        made = made.contiguous(memory_format=kept)
        scheme = PerTensor(float(output_scale), output_zero_point)
        return as_quantized(made, input, scheme)


handles("quantized_batch_norm")(quantized_batch_norm)
