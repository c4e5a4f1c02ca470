"""Losses written out in steps, to compare `torch.nn`'s with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim as torch


def _reduced(found: Any, reduction: str, weights: Any = None) -> Any:
    if reduction == "none":
        return found
    if reduction == "sum":
        return found.sum()
    return found.mean() if weights is None else found.sum() / weights


def kldivloss_reference(
    input: Any, target: Any, reduction: str = "mean", log_target: bool = False
) -> Any:
    """`KLDivLoss`."""
    logs = target if log_target else target.log()
    found = torch.exp(logs) * (logs - input)
    if not log_target:
        found = torch.where(target > 0, found, torch.zeros_like(found))
    if reduction == "batchmean" and input.dim() != 0:
        return found.sum() / found.size(0)
    return _reduced(found, "mean" if reduction == "batchmean" else reduction)


def nlllossNd_reference(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """`NLLLoss` with any number of further dimensions."""
    classes = input.size(1)
    weight = torch.ones(classes).type_as(input) if weight is None else weight
    kept = target != ignore_index
    chosen = torch.where(kept, target, torch.zeros_like(target))
    norms = weight[chosen] * kept
    found = -input.gather(1, chosen.unsqueeze(1)).squeeze(1) * norms
    return _reduced(found, reduction, norms.sum())


def nllloss_reference(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """`NLLLoss` of a matrix or of a vector."""
    if input.dim() == 1:
        made = nlllossNd_reference(
            input[None], target.reshape(1), weight, ignore_index, reduction
        )
        return made.reshape(())
    return nlllossNd_reference(input, target, weight, ignore_index, reduction)


def cross_entropy_loss_reference(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """`CrossEntropyLoss` with labels or with probabilities."""
    logs = torch.log_softmax(input, 1)
    shape = [1, input.size(1)] + [1] * (input.dim() - 2)
    scale = (
        torch.ones_like(logs) if weight is None else weight.reshape(shape) + 0 * logs
    )
    if input.shape == target.shape:
        count = input.size(1)
        smooth = target * (1 - label_smoothing) + label_smoothing / count
        found = -(logs * smooth * scale).sum(1)
        return _reduced(found, reduction, input.numel() // count)
    found = nlllossNd_reference(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return found
    kept = target != ignore_index
    spread = torch.where(kept, -(logs * scale).sum(1), torch.zeros_like(logs[:, 0]))
    chosen = torch.where(kept, target, torch.zeros_like(target))
    norm = (scale.gather(1, chosen.unsqueeze(1)).squeeze(1) * kept).sum()
    even = _reduced(spread, reduction, norm)
    return (1 - label_smoothing) * found + label_smoothing / input.size(1) * even


def smoothl1loss_reference(
    input: Any, target: Any, reduction: str = "mean", beta: float = 1.0
) -> Any:
    """`SmoothL1Loss`."""
    gap = (input - target).abs()
    if beta == 0:
        return _reduced(gap, reduction)
    found = torch.where(gap < beta, gap * gap / (2 * beta), gap - beta / 2)
    return _reduced(found, reduction)


def huberloss_reference(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0
) -> Any:
    """`HuberLoss`."""
    gap = (input - target).abs()
    found = torch.where(gap <= delta, gap * gap / 2, delta * (gap - delta / 2))
    return _reduced(found, reduction)


def hingeembeddingloss_reference(
    input: Any, target: Any, margin: float = 1.0, reduction: str = "mean"
) -> Any:
    """`HingeEmbeddingLoss`."""
    away = (margin - input).clamp(min=0)
    return _reduced(torch.where(target == 1, input, away), reduction)


def softmarginloss_reference(input: Any, target: Any, reduction: str = "mean") -> Any:
    """`SoftMarginLoss`."""
    return _reduced((1 + (-input * target).exp()).log(), reduction)


def multilabelmarginloss_reference(
    input: Any, target: Any, reduction: str = "mean"
) -> Any:
    """`MultiLabelMarginLoss`: labels up to the first -1."""
    rows = torch.atleast_2d(input)
    found = []
    for row, labels in zip(rows, torch.atleast_2d(target).tolist(), strict=True):
        chosen = labels[: labels.index(-1)] if -1 in labels else labels
        others = [i for i in range(len(row)) if i not in chosen]
        terms = [(1 - row[a] + row[b]).clamp(min=0) for a in chosen for b in others]
        found.append(sum(terms, row.sum() * 0) / len(row))
    made = torch.stack(found)
    return _reduced(made if input.dim() > 1 else made[0], reduction)


def multimarginloss_reference(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1,
    weight: Any = None,
    reduction: str = "mean",
) -> Any:
    """`MultiMarginLoss`."""
    rows = torch.atleast_2d(input)
    labels = target.reshape(-1, 1)
    scale = 1 if weight is None else weight[labels]
    gaps = (margin - rows.gather(1, labels) + rows).clamp(min=0) ** p * scale
    found = gaps.scatter(1, labels, 0).sum(1) / rows.size(1)
    return _reduced(found.reshape(target.shape), reduction)


def cosineembeddingloss_reference(
    input1: Any, input2: Any, target: Any, margin: float = 0, reduction: str = "mean"
) -> Any:
    """`CosineEmbeddingLoss`."""
    dot = (input1 * input2).sum(-1)
    cosine = dot / ((input1**2).sum(-1) * (input2**2).sum(-1)).sqrt()
    found = torch.where(target == 1, 1 - cosine, (cosine - margin).clamp(min=0))
    return _reduced(found, reduction)


def tripletmarginloss_reference(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: int = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """`TripletMarginLoss`."""
    distance = torch.nn.functional.pairwise_distance
    near = distance(anchor, positive, p, eps)
    far = distance(anchor, negative, p, eps)
    if swap:
        far = torch.min(far, distance(positive, negative, p, eps))
    return _reduced((margin + near - far).clamp(min=0), reduction)


def marginrankingloss_reference(
    input1: Any, input2: Any, target: Any, margin: float = 0, reduction: str = "mean"
) -> Any:
    """`MarginRankingLoss`."""
    return _reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def ctcloss_reference(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
) -> Any:
    """`CTCLoss`, by the forward recursion in float64."""
    losses = []
    lengths = [int(n) for n in target_lengths]
    at = 0
    for i, steps in enumerate(int(n) for n in input_lengths):
        if targets.dim() > 1:
            labels = targets[i, : lengths[i]].tolist()
        else:
            labels = targets[at : at + lengths[i]].tolist()
            at += lengths[i]
        path = [blank] + [each for label in labels for each in (label, blank)]
        probs = log_probs[:steps, i].exp().double()
        row = [
            probs[0, path[k]] if k < 2 else probs[0, 0] * 0 for k in range(len(path))
        ]
        for t in range(1, steps):
            row = [
                probs[t, path[k]]
                * (
                    row[k]
                    + (row[k - 1] if k else 0)
                    + (row[k - 2] if k > 1 and path[k] != path[k - 2] else 0)
                )
                for k in range(len(path))
            ]
        losses.append(-sum(row[-2:]).log())  # type: ignore[union-attr]
    found = torch.stack(losses).to(log_probs.dtype)
    if reduction == "mean":
        return (found / torch.tensor(lengths).clamp(min=1)).mean()
    return _reduced(found, reduction)


loss_reference_fns: dict[str, Callable[..., Any]] = {
    "KLDivLoss": kldivloss_reference,
    "NLLLoss": nllloss_reference,
    "NLLLossNd": nlllossNd_reference,
    "SmoothL1Loss": smoothl1loss_reference,
    "HuberLoss": huberloss_reference,
    "MultiLabelMarginLoss": multilabelmarginloss_reference,
    "HingeEmbeddingLoss": hingeembeddingloss_reference,
    "SoftMarginLoss": softmarginloss_reference,
    "MultiMarginLoss": multimarginloss_reference,
    "CosineEmbeddingLoss": cosineembeddingloss_reference,
    "TripletMarginLoss": tripletmarginloss_reference,
    "MarginRankingLoss": marginrankingloss_reference,
    "CTCLoss": ctcloss_reference,
    "CrossEntropyLoss": cross_entropy_loss_reference,
}
