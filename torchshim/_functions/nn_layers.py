"""Embeddings and convolution of `nn.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.record import untracked
from torchshim._derived import fns, public
from torchshim._errors import warn
from torchshim._functions.creation import placed
from torchshim._tensor import Tensor

# Embeddings --------------------------------------------------------------------------


def _shortened(
    weight: Tensor, input: Tensor, max_norm: float, norm_type: float
) -> None:
    with untracked():
        fns.embedding_renorm_(
            fns.detach(weight), input, float(max_norm), float(norm_type)
        )


@public
def embedding_renorm_(
    input: Tensor, indices: Tensor, max_norm: float, norm_type: float
) -> Tensor:
    """Makes the rows that are named no longer than a norm, in place.

    >>> import torchshim as torch
    >>> w = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    >>> torch.embedding_renorm_(w, torch.tensor([0]), 1.0, 2.0)
    tensor([[0.6000, 0.8000],
            [6.0000, 8.0000]])
    """
    return fns.embedding_renorm_(input, indices, float(max_norm), float(norm_type))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table by number.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.embedding.html

    >>> import torchshim as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), table)
    tensor([[3., 4.],
            [1., 2.]])
    """
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx > 0:
        if padding_idx >= weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        if padding_idx < -weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = weight.size(0) + padding_idx
    if max_norm is not None:
        _shortened(weight, input, max_norm, norm_type)
    return fns.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Rows of a table by number, added up, averaged or maximised bag by bag.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.embedding_bag.html

    >>> import torchshim as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), table)
    tensor([[2., 3.]])
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`."
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not "
            f"None, then it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2:
        include_last_offset = False
    input, offsets, per_sample_weights = _flat_bags(input, offsets, per_sample_weights)
    _check_mode(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        _shortened(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is "
            "only "
            f"supported for mode='sum' (got mode='{mode}'). Please open a feature "
            "request on GitHub."
        )
    padding_idx = _row_left_out(weight, padding_idx)
    if mode == "max":
        return fns.embedding_bag_max(
            weight,
            input,
            offsets,
            scale_grad_by_freq,
            include_last_offset,
            padding_idx,
        )
    return fns.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        include_last_offset,
        padding_idx,
        sparse,
    )


def _flat_bags(
    input: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Bags of one length, the rows of a matrix, as bags one after another."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a "
                "mini-batch of fixed length sequences. However, found offsets of type "
                f"{type(offsets)}"
            )
        if input.dtype is dtypes.bool_ or input.dtype.is_complex:
            raise NotImplementedError(
                f"\"arange_cpu\" not implemented for '{input.dtype.scalar_name}'"
            )
        count, width = input.shape
        if not width:
            raise RuntimeError("step must be nonzero")
        rows = np.arange(0, count * width, width, dtype=np.int64)
        offsets = placed(rows, input.device)
        if input.dtype not in (dtypes.int64, dtypes.int32):
            offsets = fns.to_copy(offsets, input.dtype)  # which is refused with it
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension "
            f"{input.dim()}"
        )
    return input, offsets, per_sample_weights


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max":
        if scale_grad_by_freq:
            raise ValueError(
                "max mode does not support scaling the gradient by the frequency"
            )
        if sparse:
            raise ValueError("max mode does not support sparse weights")


def _row_left_out(weight: Tensor, padding_idx: int | None) -> int:
    """The row that takes no part in its bags, counted from 0; -1 for none."""
    if padding_idx is None:
        return -1
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            "padding_idx must be within the number of embeddings, "
            f"{-rows} through {rows - 1}, but got {padding_idx}"
        )
    return padding_idx % rows


# Convolutions -------------------------------------------------------------------------


@public
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """The operator that all convolutions are, with its lists of numbers.

    >>> import torchshim as torch
    >>> x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 2)
    >>> torch.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2., 2.]]])
    """
    ndim, given = weight.dim(), {"stride": (4, stride), "padding": (5, padding)}
    given |= {"dilation": (6, dilation), "output_padding": (8, output_padding)}
    for name, (position, value) in given.items():
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"convolution(): argument '{name}' (position {position}) must be tuple "
                f"of ints, not {type(value).__name__}"
            )
    if input.dim() != ndim:
        raise RuntimeError(
            f"Expected {ndim}-dimensional input for {ndim}-dimensional weight "
            f"{list(weight.shape)}, but got {input.dim()}-dimensional input of size "
            f"{list(input.shape)} instead"
        )
    kind, other = input._tmeta.dtype, weight._tmeta.dtype
    if kind is not other:
        raise RuntimeError(
            f"expected scalar type {kind.scalar_name} but found {other.scalar_name}"
        )
    if transposed:
        function = getattr(fns, f"conv_transpose{ndim - 2}d")
        shift = padding, output_padding
        return function(input, weight, bias, stride, *shift, groups, dilation)
    function = getattr(fns, f"conv{ndim - 2}d")
    return function(input, weight, bias, stride, padding, dilation, groups)
