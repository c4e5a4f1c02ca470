"""Connectionist temporal classification: the loss of unaligned sequences."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.op import Array, op
from torchshim._ops._common import (
    HALF,
    scalar_name,
)
from torchshim._ops.activation import floating_only

# The logarithm of zero, finite so that differences of two are numbers.
_NEVER = -1e30
_WHERE = "(while checking arguments for ctc_loss_allocate_outputs)"


def _lattice(targets: Array, blank: int) -> tuple[Array, Array]:
    """Targets with blanks between them, and which may be reached two steps back."""
    n, s = targets.shape
    labels = jnp.full((n, 2 * s + 1), blank, targets.dtype)
    labels = labels.at[:, 1::2].set(targets)
    two_back = jnp.pad(labels, ((0, 0), (2, 0)), constant_values=blank)[:, :-2]
    apart = (labels != blank) & (labels != two_back)
    return labels, apart.at[:, :2].set(False)


def _nll(
    log_probs: Array, targets: Array, lengths: Array, target_lengths: Array, blank: int
) -> Array:
    """-log P(targets) of each sequence, by the forward recursion."""
    labels, apart = _lattice(targets, blank)
    emitted = jnp.take_along_axis(log_probs, labels[None].astype(jnp.int32), axis=2)
    emitted = jnp.maximum(emitted, _NEVER)
    start = jnp.full(labels.shape, _NEVER, log_probs.dtype).at[:, 0].set(0)

    def shifted(alpha: Array, by: int) -> Array:
        padded = jnp.pad(alpha, ((0, 0), (by, 0)), constant_values=_NEVER)
        return padded[:, : alpha.shape[1]]

    def advance(alpha: Array, at: tuple[Array, Array]) -> tuple[Array, None]:
        time, emission = at
        skip = jnp.where(apart, shifted(alpha, 2), _NEVER)
        reached = jnp.logaddexp(jnp.logaddexp(alpha, shifted(alpha, 1)), skip)
        reached = jnp.maximum(reached + emission, _NEVER)
        return jnp.where((time < lengths)[:, None], reached, alpha), None

    times = jnp.arange(log_probs.shape[0])
    alpha, _ = lax.scan(advance, start, (times, emitted))
    last = (2 * target_lengths)[:, None]
    at_blank = jnp.take_along_axis(alpha, last, axis=1)[:, 0]
    at_label = jnp.take_along_axis(alpha, jnp.maximum(last - 1, 0), axis=1)[:, 0]
    at_label = jnp.where(target_lengths > 0, at_label, _NEVER)
    return -jnp.logaddexp(at_blank, at_label)


@partial(jax.custom_jvp, nondiff_argnums=(4, 5))
def _loss(
    log_probs: Array,
    targets: Array,
    lengths: Array,
    target_lengths: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    nll = _nll(log_probs, targets, lengths, target_lengths, blank)
    return jnp.where(nll > -_NEVER / 2, jnp.inf, nll)


@_loss.defjvp
def _loss_jvp(blank: int, zero_infinity: bool, primals: Any, tangents: Any) -> Any:
    # PyTorch's gradient holds for the input of the log-softmax before.
    log_probs, targets, lengths, target_lengths = primals
    nll, back = jax.vjp(
        lambda x: _nll(x, targets, lengths, target_lengths, blank), log_probs
    )
    (occupied,) = back(jnp.ones_like(nll))
    lost = (nll > -_NEVER / 2)[None, :, None]
    slope = jnp.exp(log_probs) + occupied
    slope = jnp.where(lost, 0 if zero_infinity else jnp.nan, slope)
    times = jnp.arange(log_probs.shape[0])[:, None]
    slope = jnp.where((times < lengths)[:, :, None], slope, 0)
    out = jnp.where(lost[0, :, 0], jnp.inf, nll)
    return out, jnp.sum(slope * tangents[0], axis=(0, 2))


def length_checks(
    log_probs: Array,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
    blank: int,
    longest: int | None,
    zero_infinity: bool,
) -> list[Check]:
    """That the lengths fit: of operands whose values are arrays of either kind."""

    def check(bad: Any, text: str, value: Any) -> Check:
        return Check(bad, RuntimeError, f"Expected {text} {_WHERE}", value)

    if not input_lengths.size:
        return []
    low, high = input_lengths.min(), input_lengths.max()
    shortest, most = target_lengths.min(), target_lengths.max()
    value = "value at {} {}, but got value {{value}}"
    found = [
        check(
            shortest < 0, "target_lengths to have " + value.format("least", 0), shortest
        )
    ]
    if targets.ndim == 1:
        total = target_lengths.sum()
        found.append(
            check(
                total != targets.shape[0],
                "tensor to have size {value} at dimension 0, but got size "
                f"{targets.shape[0]} for argument #2 'targets'",
                total,
            )
        )
    else:
        found.append(
            check(
                most > targets.shape[1],
                "tensor to have size at least {value} at dimension 1, but got size "
                f"{targets.shape[1]} for argument #2 'targets'",
                most,
            )
        )
    limit = log_probs.shape[0]
    return [
        *found,
        check(low < 0, "input_lengths to have " + value.format("least", 0), low),
        check(
            high > limit, "input_lengths to have " + value.format("most", limit), high
        ),
    ]


@op(
    grad_fn="CtcLossBackward0",
    saves=("log_probs", "targets", "result"),
    namespaces=(),
    method=False,
    out=False,
    differentiable=("log_probs",),
    checks=length_checks,
)
def ctc_nll(
    log_probs: Array,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
    blank: int,
    longest: int | None,
    zero_infinity: bool,
) -> Array:
    """The negative log-likelihood of each sequence's targets.

    `longest` bounds the target lengths where they are known beforehand.
    """
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional "
            f"tensor for argument #1 'log_probs' {_WHERE}"
        )
    if targets.ndim not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor "
            f"for argument #2 'targets' {_WHERE}"
        )
    floating_only(log_probs, "ctc_loss_cpu")
    if log_probs.dtype in HALF:
        raise NotImplementedError(
            f"\"ctc_loss_cpu\" not implemented for '{scalar_name(log_probs)}'"
        )
    batch, classes = log_probs.shape[1:]
    if not log_probs.size:
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    lengths = {"input_lengths": input_lengths, "target_lengths": target_lengths}
    for name, given in lengths.items():
        if given.shape != (batch,):
            raise RuntimeError(f"{name} must be of size batch_size")
    if targets.ndim == 2 and targets.shape[0] != batch:
        raise RuntimeError(
            f"Expected tensor to have size {batch} at dimension 0, but got size "
            f"{targets.shape[0]} for argument #2 'targets' {_WHERE}"
        )
    width = targets.shape[-1] if longest is None else min(longest, targets.shape[-1])
    if targets.ndim == 1:
        ends = jnp.cumsum(target_lengths)
        at = (ends - target_lengths)[:, None] + np.arange(width)
        rows = jnp.take(targets, at, mode="clip") if targets.size else at
    else:
        rows = targets[:, :width]
    # Padding may hold anything.
    padding = np.arange(width) >= target_lengths[:, None]
    rows = jnp.where(padding, blank, rows)
    return _loss(log_probs, rows, input_lengths, target_lengths, blank, zero_infinity)
