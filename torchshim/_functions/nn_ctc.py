"""`ctc_loss` of `nn.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._autocast import autocast_whole
from torchshim._core import dtypes
from torchshim._derived import fns, public
from torchshim._functions._arguments import only_bools, unfit
from torchshim._functions.construct import tensor
from torchshim._functions.creation import zeros_like
from torchshim._functions.joining import known, known_value
from torchshim._functions.nn_loss import chosen_reduction, numbered
from torchshim._ops.ctc import length_checks
from torchshim._refusal import refuse
from torchshim._tensor import Tensor


def _lengths(name: str, given: Any) -> tuple[Tensor, Any]:
    """Lengths as a tensor, and as numbers where these are at hand."""
    if not isinstance(given, Tensor):
        if not all(isinstance(n, (int, np.integer)) for n in given):
            raise unfit("ctc_loss")
        given = tuple(map(int, given))
        return tensor(given, dtype=dtypes.int64), given
    if given._tmeta.dtype.category > dtypes.INTEGER:
        raise RuntimeError(f"{name} must be integral")
    values = known_value(given).reshape(-1) if known([given]) else None
    return given.to(dtypes.int64).reshape(-1), values


def _check_now(
    batch: Any, targets: Any, lengths: Any, counts: Any, options: tuple[Any, ...]
) -> None:
    """Raises for lengths that do not fit, where nobody has to be waited for."""
    given: list[Any] = [np.asarray(lengths), np.asarray(counts)]
    if any(x.shape != (batch.shape[1],) for x in given):
        return  # which the operator refuses
    for check in length_checks(batch, targets, *given, *options):
        if check.bad:
            raise check.error(check.text.replace("{value}", str(check.value)))


def _loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Tensor:
    lengths, known_lengths = _lengths("input_lengths", input_lengths)
    counts, known_counts = _lengths("target_lengths", target_lengths)
    longest = None
    if known_counts is not None and len(known_counts):
        # Rounded up, so that few programs serve all batches.
        longest = 1 << max(int(max(known_counts)) - 1, 0).bit_length()
    single = log_probs.dim() != 3
    batch = log_probs.unsqueeze(1) if single else log_probs
    if single and targets.dim() == 1:
        targets = targets.unsqueeze(0)
    if targets.is_complex():
        targets = targets.to(dtypes.int64)  # with PyTorch's warning
    options = int(blank), longest, bool(zero_infinity)
    if known_lengths is not None and known_counts is not None:
        _check_now(batch, targets, known_lengths, known_counts, options)
    loss = fns.ctc_nll(batch, targets, lengths, counts, *options)
    if zero_infinity:
        loss = fns.where(loss == float("inf"), zeros_like(loss), loss)
    if reduction == "mean":
        return (loss / counts.to(loss.dtype).clamp_min(1)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss.squeeze(0) if single else loss


@autocast_whole("ctc_loss")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """How unlikely the targets are, over all their alignments to the input.

    `log_probs` is (time, batch, classes) or (time, classes); `targets` is padded,
    (batch, longest), or holds all targets one after the other. As in PyTorch, the
    gradient supposes that `log_probs` comes from a log-softmax.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.ctc_loss.html

    >>> import torchshim as torch
    >>> steps = torch.full((2, 1, 2), 0.5).log()
    >>> loss = torch.nn.functional.ctc_loss(steps, torch.tensor([[1]]), (2,), (1,))
    >>> round(loss.exp().item(), 4)
    1.3333
    """
    reduction = chosen_reduction(None, None, reduction)
    given = log_probs, targets, input_lengths, target_lengths, blank
    try:
        if zero_infinity.__class__ is not bool:
            raise unfit("ctc_loss")
        return _loss(*given, reduction, zero_infinity)
    except TypeError:
        refuse("torch", "ctc_loss", (*given, 1, zero_infinity), {})
        raise


@public(name="ctc_loss")
def numbered_ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """As `nn.functional.ctc_loss`; `reduction` is 0, 1 or 2: none, mean or sum.

    >>> import torchshim as torch
    >>> even = torch.full((2, 1, 2), 0.5).log()
    >>> (-torch.ctc_loss(even, torch.tensor([[1]]), [2], [1], reduction=0)).exp()
    tensor([0.7500])
    """
    only_bools(zero_infinity)
    return _loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        numbered(reduction),
        zero_infinity,
    )
