"""The rules of Adafactor, Muon and LBFGS, which look at more than one element."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.op import Array, Arrays, Operand, OptArrays, Scalar, op
from torchshim._ops.matmul import PRECISION
from torchshim._ops.optimizer import Kind, check_kept, each_parameter

_INNER: dict[str, Any] = {"namespaces": (), "method": False, "differentiable": False}


@op(mutates=("params", "row_vars", "col_vars", "variances"), **_INNER)
def adafactor_update(
    params: Arrays,
    grads: Arrays,
    row_vars: OptArrays,
    col_vars: OptArrays,
    variances: OptArrays,
    step: Scalar,
    lr: Operand,
    beta2_decay: Scalar,
    eps1: float | None,
    eps2: Scalar,
    d: Scalar,
    weight_decay: Scalar | None,
    maximize: bool,
) -> tuple[Array, ...]:
    """Adafactor: the squares of a matrix's gradient by rows and by columns."""
    step = jnp.asarray(step)
    weight = step**beta2_decay
    rate = jnp.minimum(lr, 1 / jnp.sqrt(step))

    def rule(
        kind: Kind, param: Array, grad: Array, row: Any, col: Any, var: Any
    ) -> Any:
        small = float(jnp.finfo(kind.dtype).eps) if eps1 is None else eps1
        grad = -grad if maximize else grad
        size = jnp.sqrt(jnp.sum(param * param)) / math.sqrt(param.size)
        alpha = jnp.maximum(kind.number(eps2), size) * kind.number(rate)
        if weight_decay is not None:
            param = kind.rounded(param * kind.number(1 - lr * weight_decay))
        square = grad * grad
        if row is not None:
            check_kept(row, (*grad.shape[:-1], 1), kind.dtype)
            check_kept(col, (*grad.shape[:-2], 1, grad.shape[-1]), kind.dtype)
            row = kind.lerp(row, jnp.mean(square, axis=-1, keepdims=True), weight)
            col = kind.lerp(col, jnp.mean(square, axis=-2, keepdims=True), weight)
            mean = jnp.maximum(jnp.mean(row, axis=-2, keepdims=True), small)
            estimate = jnp.matmul(row, col, precision=PRECISION) / mean
        else:
            check_kept(var, grad.shape, kind.dtype)
            estimate = var = kind.lerp(var, square, weight)
        update = grad * lax.rsqrt(jnp.maximum(estimate, small * small))
        clip = jnp.sqrt(jnp.sum(update * update)) / math.sqrt(update.size)
        alpha = alpha / jnp.maximum(clip / kind.number(d), 1)
        return param - alpha * update, row, col, var

    lists = row_vars, col_vars, variances
    return each_parameter(rule, params, grads, *lists, alike=False)


@op(mutates=("params", "momentum_buffers"), **_INNER)
def muon_update(
    params: Arrays,
    grads: Arrays,
    momentum_buffers: Arrays,
    lr: Operand,
    weight_decay: Scalar,
    momentum: Scalar,
    nesterov: bool,
    a: float,
    b: float,
    c: float,
    eps: float,
    ns_steps: int,
    scale_to_shape: str | None,
) -> tuple[Array, ...]:
    """Muon: momentum made nearly orthogonal."""

    def rule(kind: Kind, param: Array, grad: Array, buffer: Array) -> Any:
        buffer = kind.lerp(buffer, grad, 1 - momentum)
        update = kind.lerp(grad, buffer, momentum) if nesterov else buffer
        update = _orthogonal(update, (a, b, c), ns_steps, eps)
        rows, columns = param.shape
        if scale_to_shape == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1, rows / columns))
        param = kind.rounded(param * kind.number(1 - lr * weight_decay))
        return param - kind.number(lr * ratio) * update.astype(kind.work), buffer

    return each_parameter(rule, params, grads, momentum_buffers)


def _orthogonal(
    matrix: Array, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Array:
    """Newton and Schulz's iteration, in bfloat16 as PyTorch has it."""
    kind = Kind(jnp.bfloat16)
    a, b, c = coefficients
    x = kind.rounded(matrix)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    norm = jnp.maximum(kind.rounded(jnp.sqrt(jnp.sum(x * x))), kind.rounded(eps))
    x = kind.rounded(x / norm)
    # Numbers of bfloat16 in float32: products are exact, sums are rounded at the end.
    for _ in range(steps):
        gram = kind.rounded(jnp.matmul(x, x.T, precision=PRECISION))
        square = jnp.matmul(gram, gram, precision=PRECISION)
        gram = kind.rounded(b * gram + c * square)
        x = kind.rounded(a * x + jnp.matmul(gram, x, precision=PRECISION))
    return x.T if tall else x


@op(**_INNER)
def lbfgs_direction(
    grad: Array, dirs: Arrays, steps: Arrays, ro: Arrays, scale: Operand
) -> tuple[Array, Array]:
    """-(inverse Hessian) @ grad by what the last steps changed, oldest first.

    The second result are the coefficients of the first loop.
    """
    y, s, rho = jnp.stack(dirs), jnp.stack(steps), jnp.stack(ro)

    def back(q: Array, row: Any) -> tuple[Array, Array]:
        y, s, rho = row
        al = jnp.dot(s, q) * rho
        return q - al * y, al

    def forth(r: Array, row: Any) -> tuple[Array, None]:
        y, s, rho, al = row
        return r + s * (al - jnp.dot(y, r) * rho), None

    q, al = lax.scan(back, -grad, (y, s, rho), reverse=True)
    r = q * jnp.asarray(scale).astype(q.dtype)
    direction, _ = lax.scan(forth, r, (y, s, rho, al))
    return direction, al
