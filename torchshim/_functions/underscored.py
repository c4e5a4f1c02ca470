"""Functions of PyTorch's own library under names with an underscore: `torch._aminmax`.

https://github.com/pytorch/pytorch, aten/src/ATen/native/native_functions.yaml
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core import dtypes
from torchshim._core.layout import strided
from torchshim._derived import NEVER, fns, public
from torchshim._errors import triggered, warn_once
from torchshim._functions.native import embedding_bag
from torchshim._functions.nn_layers import convolution
from torchshim._functions.weight_norm import _weight_norm, norm_except_dim
from torchshim._tensor import Tensor

_both = public(namespaces=("torch", "ops.aten"))


def _casts(name: str, dtype: dtypes.dtype) -> None:
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(dtype)

    cast.__name__ = cast.__qualname__ = f"_cast_{name}"
    cast.__doc__ = f"The tensor as {dtype.name} numbers."
    _both(cast)


_casts("Byte", dtypes.uint8)
_casts("Char", dtypes.int8)
_casts("Short", dtypes.int16)
_casts("Int", dtypes.int32)
_casts("Long", dtypes.int64)
_casts("Half", dtypes.float16)
_casts("Float", dtypes.float32)
_casts("Double", dtypes.float64)


@_both
def _aminmax(
    input: Tensor, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """`torch.aminmax`, deprecated and without a gradient."""
    text = (
        "_aminmax is deprecated as of PyTorch 1.11 and will be removed in a future "
        "release. Use aminmax instead. This warning will only appear once per process."
    )
    warn_once(triggered(text, "aten/src/ATen/native/ReduceAllOps.cpp:71"))
    return tuple(fns.aminmax(input.detach(), dim=dim, keepdim=keepdim))


@_both
def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    benchmark: bool,
    deterministic: bool,
    cudnn_enabled: bool,
    allow_tf32: bool | None = None,
) -> Tensor:
    """`torch.convolution`; the last four say how cuDNN finds what XLA compiles."""
    size = stride, padding, dilation
    return convolution(input, weight, bias, *size, transposed, output_padding, groups)


@_both
def _convolution_mode(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: str,
    dilation: Any,
    groups: int,
) -> Tensor:
    """A convolution whose padding is "same" or "valid"."""
    function = getattr(fns, f"conv{weight.dim() - 2}d")
    return function(input, weight, bias, stride, padding, dilation, groups)


@_both
def _adaptive_avg_pool3d(input: Tensor, output_size: Sequence[int]) -> Tensor:
    """Means of as many windows as asked for in each dimension."""
    return fns.adaptive_avg_pool3d(input, tuple(output_size))


@public(
    namespaces=("torch", "ops.aten"),
    aliases=("_embedding_bag_forward_only",),
)
def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`torch.embedding_bag`, with -1 for no `padding_idx`."""
    return embedding_bag(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        None if padding_idx < 0 else padding_idx,
    )


@_both
def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Distances between the rows of two matrices, by one product of matrices."""
    square1 = x1.pow(2).sum(-1, True)
    square2 = x2.pow(2).sum(-1, True)
    left = fns.cat([x1.mul(-2), square1, fns.ones_like(square1)], -1)
    right = fns.cat([x2, fns.ones_like(square2), square2], -1)
    return left.matmul(right.mT).clamp_min_(0).sqrt_()


@_both
def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """The places along a dimension: 0, 1, ... up to its size."""
    return fns.arange(like.size(dim), 0, 1, dtypes.int64, like.device)


@_both
def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`torch.stack`."""
    return fns.stack(tensors, dim)


@_both
def _conj_physical(input: Tensor) -> Tensor:
    """`torch.conj_physical`."""
    return fns.conj_physical(input)


@_both
def _logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """`torch.logcumsumexp`."""
    return fns.logcumsumexp(input, dim)


@_both
def _unsafe_index(input: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """Indexing by tensors; they are checked as always."""
    return input[tuple(indices)]


@_both
def _unsafe_index_put(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
) -> Tensor:
    """`index_put`; indices are checked as always."""
    return input.index_put(indices, values, accumulate)


@_both
def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """A weight of its direction and length, and the norms of the direction."""
    return _weight_norm(v, g, dim), norm_except_dim(v.detach(), 2, dim)


@_both
def _reshape_from_tensor(input: Tensor, shape: Tensor) -> Tensor:
    """`reshape` to the shape that a tensor holds."""
    return input.reshape(tuple(shape.tolist()))


@public(namespaces=("torch", "ops.aten"), overridden=NEVER)
def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether `input.data` may become the other one: alike dense, and with data."""

    def kind(tensor: Tensor) -> tuple[bool, bool]:
        return tensor.layout is strided, tensor.device.type == "meta"

    return kind(input) == kind(from_)
