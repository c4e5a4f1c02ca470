"""The update rules of optimizers: one operator moves all parameters of a group.

Each takes the lists of parameters, gradients and state tensors and gives the new
values, list after list. Hyperparameters are runtime scalars (or tensors), so a program
outlives every change of the learning rate; what changes the formula is static.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.dtypes import from_array_dtype
from torchshim._core.meta import broadcast_shape
from torchshim._core.op import Array, Arrays, Operand, OptArrays, Scalar, op
from torchshim._core.promotion import check_result
from torchshim._ops._common import HALF
from torchshim._ops._reducing import is_exact, scalar_name

Results = tuple[Array, ...]


class Kind:
    """How PyTorch computes on tensors of one dtype: 16-bit values in float32, rounded
    after each of its operators."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.work = jnp.float32 if dtype in HALF else dtype

    def number(self, value: Any) -> Array:
        """A hyperparameter in the dtype of the computation."""
        if jnp.issubdtype(self.work, jnp.complexfloating):
            return jnp.asarray(value).astype(jnp.finfo(self.work).dtype)
        return jnp.asarray(value).astype(self.work)

    def rounded(self, value: Any) -> Array:
        return jnp.asarray(value).astype(self.dtype).astype(self.work)

    def lerp(self, start: Array, end: Array, weight: Any) -> Array:
        return self.rounded(start + self.number(weight) * (end - start))


def each_parameter(
    rule: Callable[..., tuple[Array | None, ...]],
    *lists: Sequence[Any],
    as_real: bool = True,
    alike: bool = True,
) -> Results:
    """`rule(kind, param, grad, ...)` for every parameter; the results list by list.

    PyTorch's rules see complex tensors as pairs of real numbers (`as_real`). States
    keep their shapes, which are those of the parameters (`alike`), and their dtypes.
    """
    rows: list[list[Array]] = []
    params, grads, *others = lists
    params = overwritten_last(params, grads)
    for arrays in zip(params, grads, *others, strict=True):
        dtype = arrays[0].dtype
        for state in arrays[2:]:
            if state is not None:
                check_kept(state, arrays[0].shape if alike else state.shape, dtype)
        pairs = as_real and jnp.issubdtype(dtype, jnp.complexfloating)
        kind = Kind(jnp.finfo(dtype).dtype if pairs else dtype)
        given = [a if a is None or not pairs else _pairs(a) for a in arrays]
        given = [a if a is None else a.astype(kind.work) for a in given]
        news = [o if o is None else o.astype(kind.dtype) for o in rule(kind, *given)]
        if pairs:
            news = [o if o is None else lax.complex(o[..., 0], o[..., 1]) for o in news]
        olds = (arrays[0], *arrays[2:])
        row = zip(news, olds, strict=False)
        rows.append([new.astype(old.dtype) for new, old in row if new is not None])
    return tuple(out for column in zip(*rows, strict=True) for out in column)


def check_kept(state: Array, shape: tuple[int, ...], dtype: Any) -> None:
    """Raises what PyTorch's first operator on a state does that does not fit."""
    have = tuple(state.shape)
    common = broadcast_shape([have, shape])
    if common != have:
        raise RuntimeError(
            f"output with shape {list(have)} doesn't match the broadcast shape "
            f"{list(common)}"
        )
    if common != shape:  # the state could be written, the parameter not
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape "
            f"{list(common)}"
        )
    check_result(from_array_dtype(dtype), from_array_dtype(state.dtype))


# Bytes from which on a copy of a parameter counts.
_LARGE = 1 << 20


def overwritten_last(params: Sequence[Array], grads: Sequence[Array]) -> list[Array]:
    """The parameters, the large ones as values that depend on all gradients.

    A program overwrites parameters in place. XLA orders that behind what the backward
    reads of them only where data flow so; otherwise it copies them first.
    """
    large = [p.size * p.dtype.itemsize >= _LARGE for p in params]
    if not any(large):
        return list(params)
    firsts = [g[(0,) * g.ndim].real.astype(jnp.float32) for g in grads if g.size]
    total = lax.stop_gradient(sum(firsts))
    never = (total != total) & (total == 0)  # which XLA does not find out
    return [
        jnp.where(never, jnp.zeros_like(p), p) if is_large else p
        for p, is_large in zip(params, large, strict=True)
    ]


def _pairs(array: Array) -> Array:
    if not jnp.issubdtype(array.dtype, jnp.complexfloating):
        return array
    return jnp.stack([array.real, array.imag], axis=-1)


def _decayed(
    kind: Kind, param: Array, grad: Array, weight_decay: Any, maximize: bool
) -> Array:
    """The gradient of the loss with its L2 penalty."""
    grad = -grad if maximize else grad
    if weight_decay is None:
        return grad
    return kind.rounded(grad + kind.number(weight_decay) * param)


def _decayed_apart(
    kind: Kind,
    param: Array,
    grad: Array,
    lr: Any,
    weight_decay: Any,
    decoupled: bool,
    maximize: bool,
) -> tuple[Array, Array]:
    """Parameter and gradient after a weight decay that may act on the former alone."""
    if not decoupled or weight_decay is None:
        return param, _decayed(kind, param, grad, weight_decay, maximize)
    param = kind.rounded(param * kind.number(1 - lr * weight_decay))
    return param, -grad if maximize else grad


def _blend_square(kind: Kind, average: Array, grad: Array, beta: Any) -> Array:
    """`beta * average + (1 - beta) * grad**2`."""
    kept = kind.rounded(average * kind.number(beta))
    return kind.rounded(kept + kind.number(1 - beta) * grad * grad)


def _correction(beta: Any, step: Any) -> Array:
    """What an average from zero lacks, as precise as a `step` that is a tensor."""
    step = jnp.asarray(step)
    return 1 - jnp.asarray(beta).astype(step.dtype) ** step


def _moves(*lists: str) -> Callable[..., Any]:
    """Declares a rule that gives new values to these lists.

    And a second operator, `…_tracked`, for steps that are differentiated: it gives the
    new values and leaves the writing to the caller.
    """

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        common: dict[str, Any] = {"namespaces": (), "method": False}
        op(fn, mutates=("params", *lists), **common)
        tracked = f"{fn.__name__}_tracked"
        return op(fn, name=tracked, grad_fn="AddBackward0", **common)

    return declare


@_moves("momentum_buffers")
def sgd_update(
    params: Arrays,
    grads: Arrays,
    momentum_buffers: OptArrays,
    lr: Operand,
    momentum: Scalar | None,
    dampening: Scalar,
    weight_decay: Operand | None,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> tuple[Array, ...]:
    """Stochastic gradient descent; the first buffers are the gradients."""

    def rule(kind: Kind, param: Array, grad: Array, buffer: Any) -> Any:
        grad = _decayed(kind, param, grad, weight_decay, maximize)
        if momentum is not None:
            mu = kind.number(momentum)
            if first:
                buffer = lax.stop_gradient(grad)
            else:
                kept = kind.rounded(buffer * mu)
                buffer = kind.rounded(kept + kind.number(1 - dampening) * grad)
            grad = kind.rounded(grad + mu * buffer) if nesterov else buffer
        return param - kind.number(lr) * grad, buffer

    return each_parameter(rule, params, grads, momentum_buffers, as_real=False)


@_moves("exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs")
def adam_update(
    params: Arrays,
    grads: Arrays,
    exp_avgs: Arrays,
    exp_avg_sqs: Arrays,
    max_exp_avg_sqs: OptArrays,
    step: Operand,
    lr: Operand,
    beta1: Operand,
    beta2: Operand,
    eps: Scalar,
    weight_decay: Operand | None,
    decoupled: bool,
    maximize: bool,
) -> tuple[Array, ...]:
    """Adam and AdamW: new parameters, averages and, for AMSGrad, maxima."""
    step_size = lr / _correction(beta1, step)
    root_correction = jnp.sqrt(_correction(beta2, step))

    def rule(
        kind: Kind, param: Array, grad: Array, average: Array, square: Array, top: Any
    ) -> Any:
        param, grad = _decayed_apart(
            kind, param, grad, lr, weight_decay, decoupled, maximize
        )
        average = kind.lerp(average, grad, 1 - beta1)
        square = _blend_square(kind, square, grad, beta2)
        if top is not None:
            top = jnp.maximum(top, square)
        root = kind.rounded(jnp.sqrt(square if top is None else top))
        root = kind.rounded(root / kind.number(root_correction))
        root = kind.rounded(root + kind.number(eps))
        return param - kind.number(step_size) * average / root, average, square, top

    return each_parameter(rule, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)


@op(namespaces=(), method=False, differentiable=False)
def total_norm(tensors: Arrays, norm_type: float) -> Array:
    """The norm of tensors as if they were one vector."""
    for tensor in filter(is_exact, tensors):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {scalar_name(tensor)}"
        )
    return _norm(jnp.stack([_norm(t, norm_type) for t in tensors]), norm_type)


def _norm(array: Array, order: float) -> Array:
    size = jnp.abs(array)
    dtype = size.dtype
    wide = jnp.float32 if dtype in HALF else dtype
    size = size.astype(wide)
    if order == float("inf"):
        found = jnp.max(size)
    elif order == -float("inf"):
        found = jnp.min(size)
    elif order == 0:
        found = jnp.sum(size != 0).astype(wide)
    elif order == 1:
        found = jnp.sum(size)
    elif order == 2:
        found = jnp.sqrt(jnp.sum(size * size))
    else:
        found = jnp.sum(size**order) ** (1.0 / order)
    return found.astype(dtype)


@op(namespaces=(), method=False, differentiable=False, mutates=("grads",))
def clip_by_norm(grads: Arrays, total: Array, max_norm: Scalar) -> tuple[Array, ...]:
    """Gradients scaled so that their norm `total` becomes at most `max_norm`."""
    ratio = jnp.asarray(max_norm).astype(total.dtype) / (total + 1e-6)
    scale = jnp.minimum(ratio, 1.0).astype(total.dtype)
    return tuple((g * scale.astype(jnp.finfo(g.dtype).dtype)) for g in grads)


@_moves("square_avgs", "momentum_buffers", "grad_avgs")
def rmsprop_update(
    params: Arrays,
    grads: Arrays,
    square_avgs: Arrays,
    momentum_buffers: OptArrays,
    grad_avgs: OptArrays,
    lr: Operand,
    alpha: Scalar,
    eps: Scalar,
    weight_decay: Operand | None,
    momentum: Scalar | None,
    maximize: bool,
) -> tuple[Array, ...]:
    """RMSprop, centred where there are averages of the gradient."""

    def rule(
        kind: Kind, param: Array, grad: Array, square: Array, buffer: Any, mean: Any
    ) -> Any:
        grad = _decayed(kind, param, grad, weight_decay, maximize)
        square = _blend_square(kind, square, grad, alpha)
        root = square
        if mean is not None:
            mean = kind.lerp(mean, grad, 1 - alpha)
            root = kind.rounded(square - mean * mean)
        root = kind.rounded(kind.rounded(jnp.sqrt(root)) + kind.number(eps))
        rate = kind.number(lr)
        if buffer is not None:
            buffer = kind.rounded(buffer * kind.number(momentum))
            buffer = kind.rounded(buffer + grad / root)
            return param - rate * buffer, square, buffer, mean
        return param - rate * grad / root, square, None, mean

    return each_parameter(rule, params, grads, square_avgs, momentum_buffers, grad_avgs)


@_moves("sums")
def adagrad_update(
    params: Arrays,
    grads: Arrays,
    sums: Arrays,
    step: Operand,
    lr: Operand,
    lr_decay: Scalar,
    eps: Scalar,
    weight_decay: Operand | None,
    maximize: bool,
) -> tuple[Array, ...]:
    """Adagrad: steps shrink with the sum of all squared gradients."""
    rate = lr / (1 + (step - 1) * lr_decay)

    def rule(kind: Kind, param: Array, grad: Array, total: Array) -> Any:
        grad = _decayed(kind, param, grad, weight_decay, maximize)
        total = kind.rounded(total + grad * grad)
        root = kind.rounded(kind.rounded(jnp.sqrt(total)) + kind.number(eps))
        return param - kind.number(rate) * grad / root, total

    return each_parameter(rule, params, grads, sums)


@_moves("square_avgs", "acc_deltas")
def adadelta_update(
    params: Arrays,
    grads: Arrays,
    square_avgs: Arrays,
    acc_deltas: Arrays,
    lr: Operand,
    rho: Scalar,
    eps: Scalar,
    weight_decay: Operand | None,
    maximize: bool,
) -> tuple[Array, ...]:
    """Adadelta: steps in the unit of the parameters."""

    def rule(kind: Kind, param: Array, grad: Array, square: Array, moved: Array) -> Any:
        grad = _decayed(kind, param, grad, weight_decay, maximize)
        square = _blend_square(kind, square, grad, rho)
        small = kind.number(eps)
        root = kind.rounded(jnp.sqrt(kind.rounded(square + small)))
        delta = kind.rounded(jnp.sqrt(kind.rounded(moved + small)))
        delta = kind.rounded(kind.rounded(delta / root) * grad)
        moved = _blend_square(kind, moved, delta, rho)
        return param - kind.number(lr) * delta, square, moved

    return each_parameter(rule, params, grads, square_avgs, acc_deltas)


@_moves("exp_avgs", "exp_infs")
def adamax_update(
    params: Arrays,
    grads: Arrays,
    exp_avgs: Arrays,
    exp_infs: Arrays,
    step: Operand,
    lr: Operand,
    beta1: Operand,
    beta2: Operand,
    eps: Scalar,
    weight_decay: Operand | None,
    maximize: bool,
) -> tuple[Array, ...]:
    """Adamax: Adam with the infinity norm."""
    step_size = lr / (1 - beta1**step)

    def rule(kind: Kind, param: Array, grad: Array, average: Array, top: Array) -> Any:
        grad = _decayed(kind, param, grad, weight_decay, maximize)
        average = kind.lerp(average, grad, 1 - beta1)
        top = jnp.maximum(
            kind.rounded(top * kind.number(beta2)),
            kind.rounded(jnp.abs(grad) + kind.number(eps)),
        )
        return param - kind.number(step_size) * average / top, average, top

    return each_parameter(rule, params, grads, exp_avgs, exp_infs)


@_moves("exp_avgs", "exp_avg_sqs")
def nadam_update(
    params: Arrays,
    grads: Arrays,
    exp_avgs: Arrays,
    exp_avg_sqs: Arrays,
    step: Operand,
    mu_product: Operand,
    mu: Operand,
    mu_next: Operand,
    lr: Operand,
    beta1: Operand,
    beta2: Operand,
    eps: Scalar,
    weight_decay: Operand | None,
    decoupled: bool,
    maximize: bool,
) -> tuple[Array, ...]:
    """NAdam: Adam with Nesterov's momentum; `mu_product` includes this step's `mu`."""
    of_grad = -lr * (1.0 - mu) / (1.0 - mu_product)
    of_average = -lr * mu_next / (1.0 - mu_product * mu_next)

    def rule(
        kind: Kind, param: Array, grad: Array, average: Array, square: Array
    ) -> Any:
        param, grad = _decayed_apart(
            kind, param, grad, lr, weight_decay, decoupled, maximize
        )
        average = kind.lerp(average, grad, 1 - beta1)
        square = _blend_square(kind, square, grad, beta2)
        root = kind.rounded(square / kind.number(1 - beta2**step))
        root = kind.rounded(kind.rounded(jnp.sqrt(root)) + kind.number(eps))
        param = kind.rounded(param + kind.number(of_grad) * grad / root)
        return param + kind.number(of_average) * average / root, average, square

    return each_parameter(rule, params, grads, exp_avgs, exp_avg_sqs)


@_moves("exp_avgs", "exp_avg_sqs")
def radam_update(
    params: Arrays,
    grads: Arrays,
    exp_avgs: Arrays,
    exp_avg_sqs: Arrays,
    step: Operand,
    lr: Operand,
    beta1: Operand,
    beta2: Operand,
    eps: Scalar,
    weight_decay: Operand | None,
    decoupled: bool,
    maximize: bool,
) -> tuple[Array, ...]:
    """RAdam: Adam that adapts only once the variance of its steps is known."""
    correction = jnp.asarray(1 - beta2**step)
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    ratio = ((length - 4) * (length - 2) * longest) / (
        (longest - 4) * (longest - 2) * length
    )
    known = length > 5.0
    rectified = jnp.sqrt(jnp.where(known, ratio, 1.0)) * jnp.sqrt(correction)

    def rule(
        kind: Kind, param: Array, grad: Array, average: Array, square: Array
    ) -> Any:
        param, grad = _decayed_apart(
            kind, param, grad, lr, weight_decay, decoupled, maximize
        )
        average = kind.lerp(average, grad, 1 - beta1)
        square = _blend_square(kind, square, grad, beta2)
        moved = kind.rounded(average / kind.number(1 - beta1**step))
        moved = kind.rounded(moved * kind.number(lr))
        root = kind.rounded(kind.rounded(jnp.sqrt(square)) + kind.number(eps))
        adaptive = moved * (kind.number(rectified) / root)
        return param - jnp.where(known, adaptive, moved), average, square

    return each_parameter(rule, params, grads, exp_avgs, exp_avg_sqs)


@_moves("averages")
def asgd_update(
    params: Arrays,
    grads: Arrays,
    averages: Arrays,
    eta: Operand,
    mu: Operand,
    lambd: Scalar,
    weight_decay: Operand | None,
    maximize: bool,
) -> tuple[Array, ...]:
    """Averaged gradient descent: the mean of the parameters over the last steps."""

    def rule(kind: Kind, param: Array, grad: Array, average: Array) -> Any:
        grad = _decayed(kind, param, grad, weight_decay, maximize)
        param = kind.rounded(param * kind.number(1 - lambd * eta))
        param = kind.rounded(param - kind.number(eta) * grad)
        blended = average + (param - average) * kind.number(mu)
        return param, jnp.where(jnp.asarray(mu) == 1, param, blended)

    return each_parameter(rule, params, grads, averages)


@_moves("previous", "step_sizes")
def rprop_update(
    params: Arrays,
    grads: Arrays,
    previous: Arrays,
    step_sizes: Arrays,
    eta_minus: Scalar,
    eta_plus: Scalar,
    smallest: Scalar,
    largest: Scalar,
    maximize: bool,
) -> tuple[Array, ...]:
    """Rprop: steps grow while the gradient keeps its sign."""

    def rule(kind: Kind, param: Array, grad: Array, before: Array, size: Array) -> Any:
        grad = -grad if maximize else grad
        agree = jnp.sign(grad * before)
        factor = jnp.where(agree < 0, kind.number(eta_minus), 1)
        factor = jnp.where(agree > 0, kind.number(eta_plus), factor)
        size = jnp.clip(size * factor, kind.number(smallest), kind.number(largest))
        grad = jnp.where(agree < 0, 0, grad)
        return param - jnp.sign(grad) * size, grad, size

    return each_parameter(rule, params, grads, previous, step_sizes)
