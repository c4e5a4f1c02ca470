"""Losses as functions of `torch` itself, which know a reduction by its number.

PyTorch's signatures say "mean" for no reduction, which its parser reads as the number
0: `torch.kl_div(x, y)` reduces nothing, and `torch.ops.aten.kl_div(x, y)`, which no
parser reads, gives the mean.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchshim._derived import fns, public
from torchshim._functions import nn_ctc, nn_loss, nn_margin_loss
from torchshim._functions._arguments import only_bools
from torchshim._functions.nn_loss import numbered
from torchshim._tensor import Tensor


@public
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """As `nn.functional.kl_div`; `reduction` is 0, 1 or 2: none, mean or sum.

    >>> import torchshim as torch
    >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0])
    >>> torch.kl_div(p.log(), q, reduction=2)
    tensor(0.6931)
    """
    each = nn_loss.kl_div(input, target, reduction="none", log_target=log_target)
    return nn_loss.reduced(each, numbered(reduction))


@public
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool,
    full: bool,
    eps: float,
    reduction: int,
) -> Tensor:
    """As `nn.functional.poisson_nll_loss`; `reduction` is 0, 1 or 2.

    >>> import torchshim as torch
    >>> x, y = torch.zeros(2), torch.tensor([0.0, 3.0])
    >>> torch.poisson_nll_loss(x, y, log_input=True, full=False, eps=1e-8, reduction=0)
    tensor([1., 1.])
    """
    only_bools(log_input, full)
    return nn_loss.poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=numbered(reduction)
    )


@public
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """As `nn.functional.binary_cross_entropy_with_logits`; `reduction` is 0, 1 or 2.

    The input is broadcast to the target.

    >>> import torchshim as torch
    >>> x, y = torch.zeros(2), torch.tensor([0.0, 1.0])
    >>> torch.binary_cross_entropy_with_logits(x, y, reduction=0)
    tensor([0.6931, 0.6931])
    """
    how = numbered(reduction)
    return fns.binary_cross_entropy_with_logits(input, target, weight, pos_weight, how)


@public
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """As `nn.functional.hinge_embedding_loss`; `reduction` is 0, 1 or 2.

    >>> import torchshim as torch
    >>> x, y = torch.tensor([0.25, 0.25]), torch.tensor([1, -1])
    >>> torch.hinge_embedding_loss(x, y, margin=2.0, reduction=0)
    tensor([0.2500, 1.7500])
    """
    return nn_margin_loss.hinge_embedding_loss(
        input, target, margin, reduction=numbered(reduction)
    )


@public
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = 0,
) -> Tensor:
    """As `nn.functional.margin_ranking_loss`; `reduction` is 0, 1 or 2.

    Operands broadcast, whatever number of dimensions they have.

    >>> import torchshim as torch
    >>> a, b, order = torch.ones(2), torch.zeros(2), torch.tensor([1.0, -1.0])
    >>> torch.margin_ranking_loss(a, b, order, reduction=2)
    tensor(1.)
    """
    how = numbered(reduction)
    return nn_margin_loss.ranked(input1, input2, target, margin, how)


@public
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = 0,
) -> Tensor:
    """As `nn.functional.cosine_embedding_loss`; `reduction` is 0, 1 or 2.

    >>> import torchshim as torch
    >>> a, b = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0])
    >>> torch.cosine_embedding_loss(a, b, torch.tensor(1))
    tensor(1.)
    """
    return nn_margin_loss.cosine_embedding_loss(
        input1, input2, target, margin, reduction=numbered(reduction)
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
    reduction: int = 0,
) -> Tensor:
    """As `nn.functional.triplet_margin_loss`; `reduction` is 0, 1 or 2.

    >>> import torchshim as torch
    >>> anchor, positive = torch.tensor([[0.0]]), torch.tensor([[1.0]])
    >>> torch.triplet_margin_loss(anchor, positive, torch.tensor([[1.5]]), reduction=0)
    tensor([0.5000])
    """
    only_bools(swap)
    how = numbered(reduction)
    return nn_margin_loss.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=how
    )


def _of_mean(name: str, function: Callable[..., Tensor]) -> None:
    """The dispatcher's form of a loss, which is the mean where nothing is said."""
    place = list(inspect.signature(function).parameters).index("reduction")

    @functools.wraps(function)
    def loss(*args: Any, **named: Any) -> Tensor:
        if len(args) <= place:
            named.setdefault("reduction", 1)
        return function(*args, **named)

    public(loss, name=name, namespaces=("ops.aten",))


for _function in (
    *(kl_div, binary_cross_entropy_with_logits, hinge_embedding_loss),
    *(margin_ranking_loss, cosine_embedding_loss, triplet_margin_loss),
):
    _of_mean(_function.__name__, _function)
_of_mean("ctc_loss", nn_ctc.numbered_ctc_loss)
