"""Losses with a margin: hinges, pairs and triplets."""

from __future__ import annotations

from collections.abc import Callable

from torchshim._autocast import autocast_whole
from torchshim._core.dtypes import INTEGER
from torchshim._derived import fns
from torchshim._functions.creation import full_like, zeros_like
from torchshim._functions.nn_loss import chosen_reduction, reduced, valid_reduction
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

    `log(1 + exp(-target * input))`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.soft_margin_loss.html

    >>> import torchshim as torch
    >>> x, y = torch.tensor([0.0, 9.0]), torch.tensor([1.0, -1.0])
    >>> torch.nn.functional.soft_margin_loss(x, y, reduction="none")
    tensor([0.6931, 9.0001])
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

    `input` is (classes,) or (batch, classes), `target` the index of the right class.
    The sum over the others of `max(0, margin - right + other) ** p`, divided by the
    classes; `p` is 1 or 2, else ValueError.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.multi_margin_loss.html

    >>> import torchshim as torch
    >>> x = torch.tensor([[3.0, 2.5, 0.0]])
    >>> torch.nn.functional.multi_margin_loss(x, torch.tensor([0]))
    tensor(0.1667)
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

    Both are (classes,) or (batch, classes). `target` has indices of right classes,
    which end at the first -1; the sum is divided by the number of classes.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.multilabel_margin_loss.html

    >>> import torchshim as torch
    >>> x, y = torch.tensor([0.5, 0.0, 0.25, 0.0]), torch.tensor([0, 2, -1, 1])
    >>> torch.nn.functional.multilabel_margin_loss(x, y)
    tensor(0.6250)
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

    `target` is 1 where a pair belongs together, else -1.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.hinge_embedding_loss.html

    >>> import torchshim as torch
    >>> x, y = torch.tensor([0.25, 0.25, 7.0]), torch.tensor([1, -1, -1])
    >>> torch.nn.functional.hinge_embedding_loss(x, y, reduction="none")
    tensor([0.2500, 0.7500, 0.0000])
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if not isinstance(target, Tensor) or not isinstance(margin, float | int):
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
def ranked(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str
) -> Tensor:
    """`margin_ranking_loss` of what broadcasts."""
    if isinstance(margin, int):
        margin = float(margin)  # PyTorch's is a double
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


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

    1: the first is to be larger, -1: the second. RuntimeError unless all three have as
    many dimensions.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.margin_ranking_loss.html

    >>> import torchshim as torch
    >>> a, b, order = torch.ones(2), torch.zeros(2), torch.tensor([1.0, -1.0])
    >>> torch.nn.functional.margin_ranking_loss(a, b, order, 0.5, reduction="none")
    tensor([0.0000, 1.5000])
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if not isinstance(margin, float | int):
        given = input1, input2, target, margin, 1
        refuse("torch", "margin_ranking_loss", given, {})
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but "
            "got "
            f"sizes: input1: {input1.size()}, input2: {input2.size()}, target: "
            f"{target.size()} "
        )
    return ranked(input1, input2, target, margin, reduction)


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

    The inputs are (batch, features) with a target (batch,), or (features,) with a
    number: `1 - cos` where it is 1, `max(0, cos - margin)` where it is -1.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.cosine_embedding_loss.html

    >>> import torchshim as torch
    >>> a = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> b, y = torch.tensor([[0.0, 2.0], [3.0, 0.0]]), torch.tensor([1, -1])
    >>> torch.nn.functional.cosine_embedding_loss(a, b, y, reduction="none")
    tensor([1., 1.])
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if not isinstance(margin, float | int):
        given = input1, input2, target, margin, 1
        refuse("torch", "cosine_embedding_loss", given, {})
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

    `max(0, margin + d(anchor, positive) - d(anchor, negative))` with the `p`-norm of
    the last dimension as distance; with `swap` the negative's distance from the
    positive, where that is smaller. ValueError if `margin` is not positive.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.triplet_margin_loss.html

    >>> import torchshim as torch
    >>> anchor, positive = torch.tensor([[0.0]]), torch.tensor([[1.0]])
    >>> torch.nn.functional.triplet_margin_loss(anchor, positive, torch.tensor([[1.5]]))
    tensor(0.5000)
    >>> torch.nn.functional.triplet_margin_loss(anchor, positive, torch.tensor([[9.0]]))
    tensor(0.)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    numbers = isinstance(p, float | int) and isinstance(eps, float | int)
    if swap.__class__ is not bool or not numbers:
        given = anchor, positive, negative, margin, p, eps, swap, 1
        refuse("torch", "triplet_margin_loss", given, {})
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

    The distance is a function of two batches, `pairwise_distance` without one.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.triplet_margin_with_distance_loss.html

    >>> import torchshim as torch
    >>> a, b, c = torch.tensor([0.0]), torch.tensor([1.0]), torch.tensor([1.5])
    >>> torch.nn.functional.triplet_margin_with_distance_loss(
    ...     a, b, c, distance_function=lambda x, y: (x - y).abs()
    ... )
    tensor(0.5000)
    """
    reduction = valid_reduction(reduction)
    distance = fns.pairwise_distance if distance_function is None else distance_function
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = fns.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)
