"""Losses as functions of `torch` itself, which know a reduction by its number."""

from __future__ import annotations

from torchshim._derived import public
from torchshim._functions import nn_loss, nn_margin_loss
from torchshim._functions.nn_loss import REDUCTIONS
from torchshim._tensor import Tensor


@public
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """As `nn.functional.kl_div`; `reduction` is 0, 1 or 2: none, mean or sum."""
    each = nn_loss.kl_div(input, target, reduction="none", log_target=log_target)
    return nn_loss.reduced(each, REDUCTIONS[reduction])


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
        input, target, log_input, full, eps=eps, reduction=REDUCTIONS[reduction]
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
    how = REDUCTIONS[reduction]
    return nn_loss.binary_cross_entropy_with_logits(
        input, target, weight, reduction=how, pos_weight=pos_weight
    )


@public
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """As `nn.functional.hinge_embedding_loss`; `reduction` is 0, 1 or 2."""
    return nn_margin_loss.hinge_embedding_loss(
        input, target, margin, reduction=REDUCTIONS[reduction]
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
        input1, input2, target, margin, reduction=REDUCTIONS[reduction]
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
        input1, input2, target, margin, reduction=REDUCTIONS[reduction]
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
    how = REDUCTIONS[reduction]
    return nn_margin_loss.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=how
    )
