"""Losses that begin with a linear layer."""

from __future__ import annotations

import math
from typing import Any

from torchshim._core import dtypes
from torchshim._derived import fns
from torchshim._functions._arguments import warn
from torchshim._functions.nn_loss import cross_entropy
from torchshim._tensor import Tensor


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of what a linear layer gives.

    `linear_weight` is of shape (classes, *, features). `options` say how PyTorch saves
    memory by chunks; XLA decides that here, and they change no result.
    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.linear_cross_entropy.html

    >>> import torchshim as torch
    >>> x, w = torch.zeros(2, 3), torch.zeros(4, 3)
    >>> torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([0, 3]))
    tensor(1.3863)
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"expected input with dimensionality 1 or 2, got {input.dim()}"
        )
    if linear_weight.dim() < 2:
        raise RuntimeError(
            "expected linear_weight with dimensionality at least 2, got "
            f"{linear_weight.dim()}"
        )
    features = input.shape[-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {linear_weight.shape[-1]}, respectively"
        )
    classes, *places = linear_weight.shape[:-1]
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *places):
        raise RuntimeError(
            f"expected linear_bias shape {(classes, *places)}, got "
            f"{tuple(linear_bias.shape)}"
        )
    if places and input.dim() == 1:
        raise RuntimeError(
            "K-dimensional loss defined by linear_weight shape "
            f"{tuple(linear_weight.shape)} requires batched input, (N, {features}), "
            f"got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], classes, *places)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError(
            "ignore_index cannot be specified when target contains probabilities"
        )
    if options is not None and (
        places
        or reduction not in ("mean", "sum", "none")
        or label_smoothing != 0.0
        or target.dtype is not dtypes.int64
    ):
        bias = None if linear_bias is None else tuple(linear_bias.shape)
        warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction "
            "in {'mean','sum','none'}, label_smoothing == 0, target.dtype == int64, "
            f"out_features == (). Got reduction={reduction!r}, "
            f"label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"out_features={tuple(places)}, tracing=False, linear_bias.shape={bias}."
        )
    if places:
        linear_weight = linear_weight.reshape(math.prod(places) * classes, features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = fns.linear(input, linear_weight, linear_bias)
    return cross_entropy(
        logits.reshape(shape) if places else logits,
        target,
        weight=weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
