"""Losses that PyTorch has as one operator; the others are functions over operators."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core import dtypes
from torchshim._core.checks import Check
from torchshim._core.meta import elementwise_strides
from torchshim._core.op import ANY, POSITIVE, Array, op
from torchshim._core.promotion import DEFAULT, check_result, promote_types
from torchshim._ops._common import (
    broadcast_shapes,
    check_fixed,
    is_integral,
    is_known,
    quotient,
    scalar_name,
    widened,
)
from torchshim._ops._formats import first_layout
from torchshim._ops.activation import floating_only


def check_labels(target: Array) -> None:
    if target.dtype != jnp.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target)}")


def reduced(loss: Array, reduction: str) -> Array:
    """The loss by element, its sum or its mean."""
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else quotient(loss.sum(), loss.size)


def _negated(log_p: Array, from_zero: bool) -> Array:
    """Negated log-probabilities: those that are zero give 0 or, by element, -0."""
    return 0 - log_p if from_zero else -log_p


def _of_pair(shape: Any, operands: Any) -> Any:
    """The memory order of losses by element: an element-wise result's of the pair."""
    return elementwise_strides(shape, operands[:2])


def _of_target(shape: Any, operands: Any) -> Any:
    """That of losses which PyTorch computes in a copy of the target."""
    return elementwise_strides(shape, operands[1:2])


def _pointwise(
    grad_fn: str, kernel_saves: tuple[str, ...], layout: Any = _of_pair, **rest: Any
) -> Any:
    return op(
        promote=DEFAULT,
        grad_fn=grad_fn,
        saves=kernel_saves,
        namespaces=(),
        method=False,
        out=False,
        layout=layout,
        **rest,
    )


def _alike(*arrays: Array | None) -> list[Any]:
    """The arrays in the widest of their dtypes."""
    wide = jnp.result_type(*(x for x in arrays if x is not None))
    return [None if x is None else x.astype(wide) for x in arrays]


_pair = ("input", "target")


@_pointwise("MseLossBackward0", _pair)
def mse_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    """Squared differences."""
    broadcast_shapes(input.shape, target.shape)
    floating_only(input, "mse_cpu")
    return reduced(jnp.square(input - target), reduction)


@_pointwise("SmoothL1LossBackward0", _pair, varies={"beta": POSITIVE})
def smooth_l1_loss(
    input: Array, target: Array, reduction: str = "mean", beta: float = 1.0
) -> Array:
    """Absolute differences, squared ones below `beta`."""
    if is_known(beta) and not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    broadcast_shapes(input.shape, target.shape)
    floating_only(input, "smooth_l1_cpu")
    z = input - target
    if is_known(beta) and beta == 0:
        return reduced(jnp.abs(z), reduction)
    # Where |z| is beta or more PyTorch differentiates |z| with beta's sign rule.
    near = ~(jnp.abs(z) >= beta)  # NaN, too, so that its gradient is NaN
    square = quotient(0.5 * jnp.square(jnp.where(near, z, 0)), beta)
    return reduced(jnp.where(near, square, jnp.abs(z) - 0.5 * beta), reduction)


# In a tensor like the input, too.
@_pointwise(
    "HuberLossBackward0", _pair, operands=("input",), varies={"delta": POSITIVE}
)
def huber_loss(
    input: Array, target: Array, reduction: str = "mean", delta: float = 1.0
) -> Array:
    """Squared differences, absolute ones above `delta`."""
    if is_known(delta) and not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if is_integral(input) and not is_integral(target):
        raise RuntimeError(
            f"result type {scalar_name(target)} can't be cast to the desired output "
            f"type {scalar_name(input)}"
        )
    input, target = _alike(input, target)
    broadcast_shapes(input.shape, target.shape)
    floating_only(input, "huber_cpu")
    z = input - target
    near = ~(jnp.abs(z) > delta)  # NaN, too
    square = 0.5 * jnp.square(jnp.where(near, z, 0))
    return reduced(
        jnp.where(near, square, delta * (jnp.abs(z) - 0.5 * delta)), reduction
    )


def _soft_margin_typecheck(input: Any, target: Any, *_: Any) -> None:
    check_fixed("soft_margin_loss", target=target)
    if input.dtype is not dtypes.bool_ and target.dtype.is_complex:
        check_result(promote_types(input.dtype, target.dtype), input.dtype)


# PyTorch computes it in a tensor like the input, whatever the target's dtype.
@_pointwise(
    "SoftMarginLossBackward0",
    _pair,
    first_layout,
    operands=("input",),
    real_gradients="soft_margin_loss",
    typecheck=_soft_margin_typecheck,
)
def soft_margin_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    """The logistic loss of labels 1 and -1."""
    if input.dtype == jnp.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    if is_integral(input):
        raise RuntimeError(
            "result type Float can't be cast to the desired output type "
            f"{scalar_name(input)}"
        )
    input, target = _alike(input, target)
    shape = broadcast_shapes(input.shape, target.shape)
    if shape != input.shape:
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape "
            f"{list(shape)}"
        )
    return reduced(_log_one_plus_exp(-target * input), reduction)


@jax.custom_jvp
def _log_one_plus_exp(z: Array) -> Array:
    return jnp.log1p(jnp.exp(z))


@_log_one_plus_exp.defjvp
def _log_one_plus_exp_jvp(primals: Any, tangents: Any) -> Any:
    (z,), (dz,) = primals, tangents
    return _log_one_plus_exp(z), dz * _odds(z)


@jax.custom_jvp
def _odds(z: Array) -> Array:
    return jnp.exp(z) / (1 + jnp.exp(z))


@_odds.defjvp
def _odds_jvp(primals: Any, tangents: Any) -> Any:
    # As PyTorch has it: a quotient, no difference of two numbers near 1.
    (z,), (dz,) = primals, tangents
    return _odds(z), dz * jnp.exp(z) / jnp.square(1 + jnp.exp(z))


# Binary cross entropy ----------------------------------------------------------------


@jax.custom_jvp
def _bce(x: Array, t: Array) -> Array:
    low = jnp.asarray(-100, x.dtype)
    return (t - 1) * jnp.maximum(jnp.log1p(-x), low) - t * jnp.maximum(jnp.log(x), low)


@_bce.defjvp
def _bce_jvp(primals: Any, tangents: Any) -> Any:
    # PyTorch bounds the denominator, not the logarithms, and nothing for the target.
    x, t = primals
    dx, dt = tangents
    by_x = (x - t) / jnp.maximum((1 - x) * x, jnp.asarray(1e-12, x.dtype))
    by_t = jnp.log(1 - x) - jnp.log(x)
    return _bce(x, t), by_x * dx + by_t * dt


def _bce_checks(
    input: Array, target: Array, weight: Any = None, reduction: str = "mean"
) -> list[Check]:
    return [
        Check(
            ~((x >= 0) & (x <= 1)).all(),
            RuntimeError,
            f"all elements of {name} should be between 0 and 1",
        )
        for name, x in (("input", input), ("target", target))
    ]


def _bce_typecheck(input: Any, target: Any, weight: Any, reduction: str) -> None:
    check_fixed("binary_cross_entropy", weight=weight)
    if input.dtype is not target.dtype:
        raise RuntimeError(
            f"Found dtype {target.dtype.scalar_name} but expected "
            f"{input.dtype.scalar_name}"
        )


@op(
    promote=DEFAULT,
    grad_fn="BinaryCrossEntropyBackward0",
    saves=("input", "target", "weight"),
    differentiable=("input", "target"),
    namespaces=(),
    method=False,
    out=False,
    layout=_of_pair,
    operands=("input", "target"),  # the weight is multiplied with in place
    checks=_bce_checks,
    typecheck=_bce_typecheck,
)
def binary_cross_entropy(
    input: Array, target: Array, weight: Array | None = None, reduction: str = "mean"
) -> Array:
    """The cross entropy of probabilities of two classes."""
    input, target, weight = _alike(input, target, weight)
    floating_only(input, "binary_cross_entropy")
    loss = _bce(input, jnp.broadcast_to(target, input.shape))
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)


def _logits_typecheck(
    input: Any, target: Any, weight: Any, pos_weight: Any, reduction: str
) -> None:
    kernel = "binary_cross_entropy_with_logits"
    check_fixed(kernel, weight=weight, pos_weight=pos_weight)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(
            f"\"log_sigmoid_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    if not (target.dtype.is_floating_point or target.dtype.is_complex):
        raise RuntimeError(
            f"result type {input.dtype.scalar_name} can't be cast to the desired "
            f"output type {target.dtype.scalar_name}"
        )


@op(
    promote=DEFAULT,
    grad_fn="BinaryCrossEntropyWithLogitsBackward0",
    saves=("input", "target", "weight", "pos_weight"),
    differentiable=("input", "target"),
    namespaces=(),
    method=False,
    out=False,
    layout=_of_target,
    operands=("target",),  # whose dtype the loss has, in PyTorch a copy of it
    typecheck=_logits_typecheck,
)
def binary_cross_entropy_with_logits(
    input: Array,
    target: Array,
    weight: Array | None = None,
    pos_weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """The cross entropy of two classes, given the logits of one."""
    input, target, weight, pos_weight = _alike(input, target, weight, pos_weight)
    log_sigmoid = -jnp.logaddexp(-input, jnp.zeros_like(input))
    if pos_weight is not None:
        _check_holds(input.shape, broadcast_shapes(pos_weight.shape, target.shape))
        log_sigmoid = ((pos_weight - 1) * target + 1) * log_sigmoid
    _check_holds(target.shape, input.shape)
    loss = (1 - target) * input - log_sigmoid
    if weight is not None:
        _check_holds(loss.shape, weight.shape)
        loss = loss * weight
    return reduced(loss, reduction)


def _check_holds(shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    """PyTorch multiplies in place: the product has the shape of the first factor."""
    both = broadcast_shapes(shape, other)
    if both != shape:
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape "
            f"{list(both)}"
        )


# Cross entropy of classes ------------------------------------------------------------


def _class_dim(x: Any) -> int:
    return 0 if x.ndim == 1 else 1


def _chosen(x: Array, target: Array) -> Array:
    """True at each sample's class. A comparison fuses, a gather and its scatter
    do not."""
    dim = _class_dim(x)
    classes = jax.lax.broadcasted_iota(target.dtype, x.shape, dim)
    return classes == jnp.expand_dims(target.reshape(_without(x)), dim)


def _without(x: Any) -> tuple[int, ...]:
    dim = _class_dim(x)
    return tuple(s for i, s in enumerate(x.shape) if i != dim)


def _target_checks(
    input: Array,
    target: Array,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    *rest: Any,
) -> list[Check]:
    classes = input.shape[_class_dim(input)]
    wide = target.astype(jnp.int64)
    bad = ((wide < 0) | (wide >= classes)) & (wide != ignore_index)
    if not bad.size:
        return []
    value = wide.reshape(-1)[jnp.argmax(bad.reshape(-1))]
    return [Check(bad.any(), IndexError, "Target {value} is out of bounds.", value)]


def _check_nll(input: Array, target: Array, weight: Any) -> None:
    have, want = list(target.shape), list(_without(input))
    if input.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if input.ndim != 1 and (target.ndim == 0 or input.shape[0] != target.shape[0]):
        size = target.shape[0] if target.ndim else 1
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
            f"({size})."
        )
    if input.ndim <= 2:
        if target.ndim > 1:
            raise RuntimeError(
                "0D or 1D target tensor expected, multi-target not supported"
            )
        if input.ndim == 1 and target.size != 1:
            raise ValueError(
                f"For 1D input, 1D target must have size 1, but got target size: "
                f"{target.shape[0]}"
            )
    elif input.ndim == 4:
        if target.ndim != 3:
            raise RuntimeError(
                "only batches of spatial targets supported (3D tensors) but got "
                f"targets of dimension: {target.ndim}"
            )
        if have != want:
            raise RuntimeError(
                f"size mismatch (got input: {list(input.shape)} , target: {have}"
            )
    elif have != want:
        raise RuntimeError(f"Expected target size {want}, got {have}")
    classes = input.shape[_class_dim(input)]
    if weight is not None and (weight.ndim != 1 or weight.size != classes):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no "
            f"classes but got weight tensor of shape: {list(weight.shape)}"
        )
    if target.dtype not in (jnp.int64, jnp.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {scalar_name(target)}"
        )
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(input)} but found {scalar_name(weight)}"
        )


def _nll_node(input: Any, target: Any, weight: Any, reduction: str, *rest: Any) -> str:
    n = len(getattr(input, "shape", (0, 0)))
    if n <= 2:
        return "NllLossBackward0"
    return "ViewBackward0" if n != 4 and reduction == "none" else "NllLoss2DBackward0"


def _nll_typecheck(input: Any, target: Any, weight: Any, *_: Any) -> None:
    kernel = "nll_loss_forward" if len(input.shape) <= 2 else "nll_loss2d_forward"
    check_fixed(kernel, weight=weight)


def _weights(input: Array, target: Array, weight: Any, ignore_index: int) -> Array:
    """The weight of each sample's class; 0 where the class is ignored."""
    target = target.reshape(_without(input))
    counted = target != ignore_index
    if weight is None:
        return counted.astype(input.dtype)
    classes = weight.shape[0]
    safe = jnp.clip(target.astype(jnp.int64), 0, max(classes - 1, 0))
    each = widened(weight)[safe] if classes else jnp.zeros(safe.shape, input.dtype)
    return jnp.where(counted, each, 0)


@op(
    grad_fn=_nll_node,
    saves=("input", "target", "weight"),
    differentiable=("input",),
    namespaces=(),
    method=False,
    out=False,
    checks=_target_checks,
    typecheck=_nll_typecheck,
)
def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Array:
    """The negative log-probability of each sample's class."""
    _check_nll(input, target, weight)
    kernel = "nll_loss_out_frame" if input.ndim <= 2 else "nll_loss2d_forward_out_frame"
    floating_only(input, kernel)
    x = widened(input)
    picked = jnp.where(_chosen(x, target), x, 0).sum(_class_dim(x))
    from_zero = reduction != "none" or x.ndim == 1  # as PyTorch's sums begin
    counted = target.reshape(picked.shape) != ignore_index
    if weight is not None or reduction == "mean":
        each = _weights(x, target, weight, ignore_index)
        picked = picked * each
    loss = _negated(jnp.where(counted, picked, 0), from_zero)
    if reduction == "sum":
        loss = loss.sum()
    elif reduction == "mean":
        loss = quotient(loss.sum(), each.sum())
    return loss.astype(input.dtype)


@op(
    grad_fn=lambda *args: "AddBackward0",
    saves=("input", "target", "weight"),
    differentiable=("input",),
    namespaces=(),
    method=False,
    out=False,
    checks=_target_checks,
    varies={"label_smoothing": POSITIVE},
    typecheck=_nll_typecheck,
)
def smoothed_nll_loss(
    input: Array,
    target: Array,
    weight: Array | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Array:
    """`nll_loss` with a part of each label spread over all classes."""
    _check_nll(input, target, weight)
    x = widened(input)
    dim = _class_dim(x)
    classes = x.shape[dim]
    each = _weights(x, target, weight, ignore_index)
    picked = jnp.where(_chosen(x, target), x, 0).sum(dim)
    counted = target.reshape(picked.shape) != ignore_index
    nll = -jnp.where(counted, picked * each, 0)
    if weight is None:
        spread = -x.sum(dim)
    else:
        shape = [classes if i == dim else 1 for i in range(x.ndim)]
        spread = -(x * widened(weight).reshape(shape)).sum(dim)
    spread = jnp.where(counted, spread, 0)
    if reduction == "mean":
        total = each.sum()
        nll, spread = (quotient(x.sum(), total) for x in (nll, spread))
    elif reduction == "sum":
        nll, spread = nll.sum(), spread.sum()
    loss = (1 - label_smoothing) * nll + label_smoothing / classes * spread
    return loss.astype(input.dtype)


@op(
    promote=DEFAULT,
    grad_fn=lambda i, t, w, reduction, s: (
        "DivBackward1" if reduction == "mean" else "NegBackward0"
    ),
    saves=("input", "target", "weight"),
    namespaces=(),
    method=False,
    out=False,
    layout=lambda shape, operands: None,
    varies={"label_smoothing": POSITIVE},
)
def soft_cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None,
    reduction: str,
    label_smoothing: float,
) -> Array:
    """The cross entropy of log-probabilities and probabilities."""
    dim = _class_dim(input)
    classes = input.shape[dim]
    if weight is not None and (weight.ndim != 1 or weight.size != classes):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} "
            f"classes or no classes but got weight tensor of shape: "
            f"{list(weight.shape)}"
        )
    if not is_known(label_smoothing) or label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / max(classes, 1)
    loss = input * target
    if weight is not None:
        shape = [classes if i == dim else 1 for i in range(input.ndim)]
        loss = loss * weight.reshape(shape)
    loss = loss.sum(dim)
    if reduction == "none":
        return -loss
    # PyTorch divides by the number of samples, which it takes of that of elements.
    if reduction == "mean" and not classes:
        return loss.sum() * jnp.nan
    return -reduced(loss, reduction)


@op(
    grad_fn="CloneBackward0",
    saves=(),
    name="_bounded_below",
    layout=first_layout,
    namespaces=(),
    method=False,
    out=False,
    varies={"low": ANY},
)
def _bounded_below(input: Array, low: float) -> Array:
    """No element below a bound, which the gradient does not see."""
    bounded = jnp.maximum(input, jnp.asarray(low, input.dtype))
    return input + jax.lax.stop_gradient(bounded - input)
