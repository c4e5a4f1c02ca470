"""Losses of several classes with a margin."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from torchshim._core.checks import Check
from torchshim._core.op import ANY, Array, op
from torchshim._ops._common import (
    check_fixed,
    quotient,
    refuse_half,
    scalar_name,
    widened,
)
from torchshim._ops.activation import floating_only
from torchshim._ops.loss import check_labels, reduced


def _margin_checks(input: Array, target: Array, *rest: Any) -> list[Check]:
    classes = input.shape[-1] if input.ndim else 1
    bad = (target < 0) | (target >= classes)
    return [Check(bad.any(), RuntimeError, "target out of range")]


@op(
    grad_fn="MultiMarginLossBackward0",
    saves=("input", "target", "weight"),
    differentiable=("input",),
    namespaces=(),
    method=False,
    out=False,
    checks=_margin_checks,
    varies={"margin": ANY},
    typecheck=lambda input, target, p, margin, weight, reduction: check_fixed(
        "multi_margin_loss", weight=weight
    ),
)
def multi_margin_loss(
    input: Array,
    target: Array,
    p: int,
    margin: float,
    weight: Array | None,
    reduction: str,
) -> Array:
    """How far other classes come within a margin of the right one."""
    if input.ndim > 2 or input.shape[-1:] == (0,):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but "
            f"got: {list(input.shape)}"
        )
    samples = input.shape[0] if input.ndim == 2 else 1
    classes = input.shape[-1] if input.ndim else 1
    if target.ndim > 1 or target.size != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the "
            "number of input samples (batch size). Expected target size "
            f"[{samples}], but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    if weight is not None and (weight.ndim > 1 or weight.size != classes):
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        )
    floating_only(input, "multi_margin_loss_cpu_kernel")
    refuse_half("multi_margin_loss_cpu_kernel", input)
    check_labels(target)
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(input)} but found {scalar_name(weight)}"
        )
    x = widened(input).reshape(samples, classes)
    at = target.reshape(samples).astype(jnp.int64)
    right = jnp.arange(classes) == at[:, None]
    own = jnp.where(right, x, 0).sum(1, keepdims=True)
    z = margin - own + x
    inside = (z > 0) & ~right
    z = jnp.where(inside, z, 0)
    each = z if p == 1 else z * z
    if weight is not None:
        each = each * widened(weight).reshape(-1)[jnp.clip(at, 0, classes - 1)][:, None]
    loss = quotient(each.sum(1), classes)
    if reduction == "none" and target.ndim == 0:
        loss = loss.reshape(())
    return reduced(loss, reduction).astype(input.dtype)


def _multilabel_checks(input: Array, target: Array, *rest: Any) -> list[Check]:
    classes = input.shape[-1] if input.ndim else 1
    text = "argument #2 'target' is out of range"
    bad = (target < -1) | (target >= classes)
    return [Check(bad.any(), RuntimeError, text)]


@op(
    grad_fn="MultilabelMarginLossBackward0",
    saves=("input", "target"),
    differentiable=("input",),
    namespaces=(),
    method=False,
    out=False,
    checks=_multilabel_checks,
)
def multilabel_margin_loss(input: Array, target: Array, reduction: str) -> Array:
    """How far other classes come within 1 of each right one; -1 ends a label list."""
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but "
            f"got: {list(input.shape)}"
        )
    if target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: "
            f"{list(input.shape)}"
        )
    floating_only(input, "multilabel_margin_loss_forward_out_frame")
    refuse_half("multilabel_margin_loss_forward_out_frame", input)
    check_labels(target)
    classes = input.shape[-1] if input.ndim else 1
    x = widened(input).reshape(-1, classes)
    labels = target.reshape(-1, classes)
    valid = jnp.cumsum(labels < 0, 1) == 0
    hot = (labels[:, :, None] == jnp.arange(classes)) & valid[:, :, None]
    own = jnp.where(hot, x[:, None, :], 0).sum(2)
    other = ~hot.any(1)
    z = 1 - own[:, :, None] + x[:, None, :]
    counted = (z > 0) & valid[:, :, None] & other[:, None, :]
    loss = quotient(jnp.where(counted, z, 0).sum((1, 2)), classes)
    if reduction == "none" and input.ndim <= 1:
        loss = loss.reshape(())
    return reduced(loss, reduction).astype(input.dtype)
