"""Losses with a margin: hinges, pairs and triplets."""

from __future__ import annotations

from collections.abc import Callable

from torchshim._autocast import autocast_whole
from torchshim._core.dtypes import INTEGER
from torchshim._derived import fns
from torchshim._functions.creation import full_like, zeros_like
from torchshim._functions.nn_loss import chosen_reduction, reduced
from torchshim._refusal import refuse
from torchshim._tensor import Tensor


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The logistic loss of labels 1 and -1.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.soft_margin_loss.html
    """
    return fns.soft_margin_loss(
        input, target, chosen_reduction(size_average, reduce, reduction)
    )


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far other classes come within a margin of the right one.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.multi_margin_loss.html
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return fns.multi_margin_loss(input, target, p, margin, weight, reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far other classes come within 1 of each right one.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.multilabel_margin_loss.html
    """
    return fns.multilabel_margin_loss(
        input, target, chosen_reduction(size_average, reduce, reduction)
    )


@autocast_whole("hinge_embedding_loss")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Distances of pairs that belong together, and what others lack of a margin.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.hinge_embedding_loss.html
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if not isinstance(target, Tensor):
        refuse("torch", "hinge_embedding_loss", (input, target, margin, 1), {})
    if input.dtype.category <= INTEGER:
        # PyTorch's operator takes the margin in the input's dtype.
        lack = (full_like(input, margin) - input).clamp_min(0)
    else:
        lack = (margin - input).clamp_min(0)
    zeros = zeros_like(input)
    own = fns.where(target != 1, lack, zeros)
    other = fns.where(target != -1, input, zeros)
    return reduced(own + other, reduction)


@autocast_whole("margin_ranking_loss")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far pairs are from being in the order that `target` says.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.margin_ranking_loss.html
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but "
            "got "
            f"sizes: input1: {input1.size()}, input2: {input2.size()}, target: "
            f"{target.size()} "
        )
    if isinstance(margin, int):
        margin = float(margin)  # PyTorch's is a double
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@autocast_whole("cosine_embedding_loss")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far pairs are from pointing the same way, or apart.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.cosine_embedding_loss.html
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.dim() not in (0, 1):
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported"
        )
    if target.dim() == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError(
            "1D target tensor expects 2D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    if target.dim() == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError(
            "0D target tensor expects 1D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    dim = target.dim()
    product = (input1 * input2).sum(dim)
    first = (input1 * input1).sum(dim) + 1e-12
    second = (input2 * input2).sum(dim) + 1e-12
    cosine = product / (first * second).sqrt()
    zeros = zeros_like(cosine)
    near = fns.where(target == 1, 1 - cosine, zeros)
    far = fns.where(target == -1, (cosine - margin).clamp_min(0), zeros)
    return reduced(near + far, reduction)


@autocast_whole("triplet_margin_loss")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the negative comes within a margin of the positive, from the anchor.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.triplet_margin_loss.html
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    near = fns.pairwise_distance(anchor, positive, p, eps)
    far = fns.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = fns.minimum(far, fns.pairwise_distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0), reduction)


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    a, b, c = anchor.dim(), positive.dim(), negative.dim()
    if not a == b == c:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same "
            f"number of dimensions, but got: anchor {a}D, positive {b}D, and negative "
            f"{c}D inputs"
        )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.triplet_margin_with_distance_loss.html
    """
    reduction = chosen_reduction(None, None, reduction)
    distance = fns.pairwise_distance if distance_function is None else distance_function
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = fns.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)
