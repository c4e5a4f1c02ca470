"""Losses of `nn.functional`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from torchshim._autocast import autocast_whole
from torchshim._core.dtypes import INTEGER
from torchshim._core.storage import TensorBase
from torchshim._derived import fns
from torchshim._errors import warn
from torchshim._functions.creation import ones_like
from torchshim._refusal import refuse
from torchshim._tensor import Tensor

#: By the numbers that PyTorch's kernels have for them.
REDUCTIONS = ("none", "mean", "sum")
OLD_ARGUMENTS = (
    "size_average and reduce args will be deprecated, please use reduction='{}' "
    "instead."
)
OLD_MEAN = (
    "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead."
)


def meant_by(size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that the deprecated arguments mean."""
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def _legacy(size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that the deprecated arguments mean, with their warning."""
    chosen = meant_by(size_average, reduce)
    warn(OLD_ARGUMENTS.format(chosen))
    return chosen


def chosen_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    if size_average is not None or reduce is not None:
        return _legacy(size_average, reduce)
    if reduction == "elementwise_mean":
        warn(OLD_MEAN)
        return "mean"
    return valid_reduction(reduction)


def valid_reduction(reduction: str) -> str:
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def numbered(reduction: Any) -> str:
    """A reduction by its number; as in PyTorch, others than 1 and 2 reduce nothing."""
    if reduction.__class__ is bool:
        raise TypeError("reduction must be a number")
    number = operator.index(reduction)
    return REDUCTIONS[number] if number in (1, 2) else "none"


def reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def _warn_sizes(input: Tensor, target: Tensor) -> None:
    warn(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({input.shape}). This will likely lead to incorrect results due to "
        "broadcasting. Please ensure they have the same size.",
    )


def _weighted(
    loss: Callable[[str], Tensor], input: Tensor, weight: Tensor, reduction: str
) -> Tensor:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', "
            "'sum'."
        )
    each = loss("none") * weight
    if reduction == "mean":
        return each.sum() / weight.sum()
    return each.sum() if reduction == "sum" else each


# Regression --------------------------------------------------------------------------


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean of squared differences.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.mse_loss.html

    >>> import torchshim as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 3.0]), torch.zeros(2))
    tensor(5.)
    """
    if target.size() != input.size():
        _warn_sizes(input, target)
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if weight is None:
        return fns.mse_loss(input, target, chosen_reduction(None, None, reduction))
    return _weighted(
        lambda how: fns.mse_loss(input, target, how), input, weight, reduction
    )


@autocast_whole("l1_loss")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean of absolute differences.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.l1_loss.html

    >>> import torchshim as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 3.0]), torch.zeros(2))
    tensor(2.)
    """
    if target.size() != input.size():
        _warn_sizes(input, target)
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if weight is None:
        reduction = chosen_reduction(None, None, reduction)
        return reduced((input - target).abs(), reduction)
    return _weighted(lambda how: (input - target).abs(), input, weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Absolute differences, squared ones where they are below `beta`.

    Below `beta` it is `d**2 / (2 * beta)`, else `|d| - beta / 2`: 1/beta times
    `huber_loss`. By Girshick, https://arxiv.org/abs/1504.08083

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.smooth_l1_loss.html

    >>> import torchshim as torch
    >>> x, zeros = torch.tensor([0.5, 3.0]), torch.zeros(2)
    >>> torch.nn.functional.smooth_l1_loss(x, zeros, reduction="none")
    tensor([0.1250, 2.5000])
    """
    if target.size() != input.size():
        _warn_sizes(input, target)
    reduction = chosen_reduction(size_average, reduce, reduction)
    if beta == 0.0:
        return reduced((input - target).abs(), reduction)
    return fns.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Squared differences, absolute ones where they are above `delta`.

    Up to `delta` it is `d**2 / 2`, else `delta * (|d| - delta / 2)`. `weight` has the
    shape of the input.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.huber_loss.html

    >>> import torchshim as torch
    >>> x, zeros = torch.tensor([1.0, 3.0]), torch.zeros(2)
    >>> torch.nn.functional.huber_loss(x, zeros, reduction="none", delta=2.0)
    tensor([0.5000, 4.0000])
    """
    if target.size() != input.size():
        _warn_sizes(input, target)
    if weight is None:
        reduction = chosen_reduction(None, None, reduction)
        return fns.huber_loss(input, target, reduction, delta)
    if reduction == "mean":  # of the products, whatever the weights add up to
        return huber_loss(input, target, "none", delta, weight).mean()
    return _weighted(
        lambda how: fns.huber_loss(input, target, how, delta), input, weight, reduction
    )


def _one_is_broadcast(input: Tensor, var: Tensor) -> bool:
    """Whether sizes differ in one dimension, where `var` has size 1."""
    sizes = zip(input.size(), var.size(), strict=True)
    return sum(b for a, b in sizes if a != b) == 1


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of normal distributions.

    `input` has the means. `var` is a number, or a tensor of the input's shape, without
    its last dimension, or with 1 for one of them; below `eps` it counts as `eps`.
    ValueError if it has negative elements. `full` adds the constant `log(2 * pi) / 2`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.gaussian_nll_loss.html

    >>> import torchshim as torch
    >>> mean, seen, var = torch.zeros(2), torch.tensor([0.0, 2.0]), torch.ones(2)
    >>> torch.nn.functional.gaussian_nll_loss(mean, seen, var, reduction="none")
    tensor([0., 2.])
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ones_like(input)
    else:
        negative = var < 0
        if not isinstance(negative, Tensor):
            refuse("torch", "any", (negative,), {})
        if bool(negative.any()):
            raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or not _one_is_broadcast(input, var):
            raise ValueError("var is of incorrect size")
    if reduction not in REDUCTIONS:
        raise ValueError(reduction + " is not valid")
    if var.dtype.category <= INTEGER:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type "
            f"{var.dtype.cpp_name}"
        )
    # The lower bound takes no part in the gradient.
    var = fns._bounded_below(var, eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


@autocast_whole("poisson_nll_loss")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of Poisson distributions.

    `input` has the logarithms of the rates, or with `log_input=False` the rates. `full`
    adds Stirling's approximation of `log(target!)` for targets above 1.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.poisson_nll_loss.html

    >>> import torchshim as torch
    >>> rate, seen = torch.tensor([2.0]), torch.tensor([3.0])
    >>> torch.nn.functional.poisson_nll_loss(rate.log(), seen)
    tensor(-0.0794)
    >>> torch.nn.functional.poisson_nll_loss(rate, seen, log_input=False)
    tensor(-0.0794)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    reduction = valid_reduction(reduction)
    usual = isinstance(target, Tensor) and isinstance(eps, float | int)
    if not usual or log_input.__class__ is not bool or full.__class__ is not bool:
        given = input, target, log_input, full, eps, 1
        refuse("torch", "poisson_nll_loss", given, {})
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


# Classes -----------------------------------------------------------------------------


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-probability of each sample's class.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.nll_loss.html

    >>> import torchshim as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return fns.nll_loss(input, target, weight, reduction, ignore_index)


@autocast_whole("cross_entropy_loss")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits and classes, or probabilities of classes.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.cross_entropy.html

    >>> import torchshim as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if not (isinstance(input, TensorBase) and isinstance(target, TensorBase)):
        refuse("nn", "cross_entropy_loss", (input, target, weight), {})
    try:
        return _cross_entropy(
            input, target, weight, reduction, ignore_index, label_smoothing
        )
    except TypeError:
        given = (input, target, weight, 1, ignore_index, label_smoothing)
        refuse("nn", "cross_entropy_loss", given, {})
        raise


def _cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    shape = input._tmeta.shape
    dim = 0 if len(shape) == 1 else 1
    if target._tmeta.shape == shape:
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                "Expected floating point type for target with class probabilities, got "
                f"{target.dtype.scalar_name}"
            )
        if ignore_index >= 0:
            raise RuntimeError(
                "ignore_index is not supported for floating point target"
            )
        _check_smoothing(label_smoothing)
        if not shape:
            raise IndexError("Dimension specified as 1 but tensor has no dimensions")
        log_p = fns.log_softmax(input, dim)
        return fns.soft_cross_entropy(log_p, target, weight, reduction, label_smoothing)
    log_p = fns.log_softmax(input, dim)
    if label_smoothing > 0:
        _check_smoothing(label_smoothing)
        return fns.smoothed_nll_loss(
            log_p, target, weight, reduction, ignore_index, label_smoothing
        )
    return fns.nll_loss(log_p, target, weight, reduction, ignore_index)


def _check_smoothing(value: float) -> None:
    if not 0 <= value <= 1:
        raise RuntimeError(
            f"label_smoothing must be between 0.0 and 1.0. Got: {value:g}"
        )


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities of two classes.

    `input` has probabilities, RuntimeError if one is outside [0, 1]; `target` has the
    same shape, else ValueError. A logarithm is -100 at least, so that the loss stays
    finite.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.binary_cross_entropy.html

    >>> import torchshim as torch
    >>> p = torch.tensor([0.5, 1.0, 0.0])
    >>> torch.nn.functional.binary_cross_entropy(p, torch.ones(3), reduction="none")
    tensor([  0.6931,  -0.0000, 100.0000])
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        for i in range(1, max(weight.dim(), 1) + 1):
            if weight.dim() < i:
                break
            have = weight.shape[-i]
            if have != 1 and (i > input.dim() or input.shape[-i] != have):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {have} at -{i}! "
                    f"Mismatching argument at index 1 had {weight.shape}; but expected "
                    f"shape should be broadcastable to {list(input.shape)}"
                )
    return fns.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of two classes, given the logits of one.

    `target` has the input's shape, else ValueError. `pos_weight` multiplies the loss of
    what is in the class. Without overflow, unlike `binary_cross_entropy` of `sigmoid`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.binary_cross_entropy_with_logits.html

    >>> import torchshim as torch
    >>> x, one = torch.tensor([-200.0, 0.0]), torch.ones(2)
    >>> torch.nn.functional.binary_cross_entropy_with_logits(x, one, reduction="none")
    tensor([200.0000,   0.6931])
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size "
            f"({input.shape})"
        )
    return fns.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight, reduction
    )


@autocast_whole("kl_div")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence, given log-probabilities.

    `input` has log-probabilities, `target` probabilities, or logarithms with
    `log_target`. `reduction="batchmean"` divides the sum by the batch size, "mean" by
    all elements.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.kl_div.html

    >>> import torchshim as torch
    >>> p, q = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    >>> torch.nn.functional.kl_div(p.log(), q, reduction="batchmean")
    tensor(0.6931)
    >>> torch.nn.functional.kl_div(p.log(), q)
    tensor(0.3466)
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    elif reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the "
            "support size.'batchmean' divides only by the batch size, and aligns with "
            "the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release.",
        )
    elif reduction != "batchmean":
        reduction = chosen_reduction(None, None, reduction)
    if not isinstance(log_target, bool):
        raise TypeError(
            "kl_div(): argument 'log_target' must be bool, not "
            f"{type(log_target).__name__}"
        )
    for each in (input, target):
        if not isinstance(each, Tensor):
            refuse("nn", "kl_div", (input, target, 1), {})
    if any(each.dtype.category <= INTEGER for each in (input, target)):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if input.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = target.xlogy(target) - target * input
    if reduction == "batchmean":
        loss = loss.sum()
        return loss / input.size(0) if input.dim() else loss
    return reduced(loss, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy with logits, averaged over classes first.

    Classes are the last dimension of the input, which is gone from the result.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.multilabel_soft_margin_loss.html

    >>> import torchshim as torch
    >>> x, y = torch.zeros(2, 3), torch.ones(2, 3)
    >>> torch.nn.functional.multilabel_soft_margin_loss(x, y, reduction="none")
    tensor([0.6931, 0.6931])
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    loss = -(target * fns.logsigmoid(input) + (1 - target) * fns.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    classes = input.dim() - 1
    loss = loss.sum(dim=classes) / input.size(classes)
    if reduction not in REDUCTIONS:
        raise ValueError(reduction + " is not valid")
    return reduced(loss, reduction)
