"""Losses as functions of `torch` itself, which know a reduction by its number."""

from __future__ import annotations

from typing import Any

from torchshim._derived import public
from torchshim._functions import nn_loss, nn_margin_loss
from torchshim._tensor import Tensor

_REDUCTIONS = ("none", "mean", "sum")


@public
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """As `nn.functional.kl_div`; `reduction` is 0, 1 or 2: none, mean or sum."""
    each = nn_loss.kl_div(input, target, reduction="none", log_target=log_target)
    return nn_loss.reduced(each, _REDUCTIONS[reduction])


@public
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool,
    full: bool,
    eps: float,
    reduction: int,
) -> Tensor:
    """As `nn.functional.poisson_nll_loss`; `reduction` is 0, 1 or 2."""
    return nn_loss.poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_REDUCTIONS[reduction]
    )


@public
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """As `nn.functional.binary_cross_entropy_with_logits`; `reduction` is 0, 1 or 2."""
    how = _REDUCTIONS[reduction]
    return nn_loss.binary_cross_entropy_with_logits(
        input, target, weight, reduction=how, pos_weight=pos_weight
    )


@public
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """As `nn.functional.hinge_embedding_loss`; `reduction` is 0, 1 or 2."""
    return nn_margin_loss.hinge_embedding_loss(
        input, target, margin, reduction=_REDUCTIONS[reduction]
    )


@public
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = 1,
) -> Tensor:
    """As `nn.functional.margin_ranking_loss`; `reduction` is 0, 1 or 2."""
    return nn_margin_loss.margin_ranking_loss(
        input1, input2, target, margin, reduction=_REDUCTIONS[reduction]
    )


@public
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = 1,
) -> Tensor:
    """As `nn.functional.cosine_embedding_loss`; `reduction` is 0, 1 or 2."""
    return nn_margin_loss.cosine_embedding_loss(
        input1, input2, target, margin, reduction=_REDUCTIONS[reduction]
    )


@public
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """As `nn.functional.triplet_margin_loss`; `reduction` is 0, 1 or 2."""
    how = _REDUCTIONS[reduction]
    return nn_margin_loss.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=how
    )


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
    """The cross entropy of a linear layer's output.

    XLA decides how it is computed: `options`, which say so in PyTorch, are refused
    with NotImplementedError. RuntimeError for shapes that do not fit.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.linear_cross_entropy.html

    >>> import torchshim as torch
    >>> x, w = torch.ones(1, 2), torch.zeros(4, 2)
    >>> torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([1]))
    tensor(1.3863)
    """
    x: Any = input
    w: Any = linear_weight
    if options is not None:
        raise NotImplementedError("linear_cross_entropy: options are not supported")
    if x.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {x.dim()}")
    if w.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {w.dim()}"
        )
    if x.shape[-1] != w.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {x.shape[-1]} and {w.shape[-1]}, respectively"
        )
    out = tuple(w.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != out:
        raise RuntimeError(
            f"expected linear_bias shape {out}, got {tuple(linear_bias.shape)}"
        )
    if len(out) > 1 and x.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(w.shape)} "
            f"requires batched input, (N, {x.shape[-1]}), got unbatched input with "
            f"shape {tuple(x.shape)}"
        )
    logits = x @ w.reshape(-1, w.shape[-1]).mT
    if linear_bias is not None:
        logits = logits + linear_bias.reshape(-1)
    logits = logits.reshape(*x.shape[:-1], *out)
    if target.shape == logits.shape and ignore_index is not None:
        raise RuntimeError(
            "ignore_index cannot be specified when target contains probabilities"
        )
    return nn_loss.cross_entropy(
        logits,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
