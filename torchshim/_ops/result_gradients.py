"""Gradients by PyTorch's formulas that hold the operator's result.

Gradients are computed from operands. Where a result, or an operand beside it, was
overwritten through `.data`, PyTorch's formula makes something else of that: it is
recorded in their place (`SavedValues.from_result`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.dtypes import dtype as DType
from torchshim._core.gradients import RESULT_REPLACED, result_formula
from torchshim._core.op import Array, op
from torchshim._ops._linalg import adjoint
from torchshim._ops._reducing import ALL, UNSAID, Dims, axes_of, count, wide
from torchshim._ops.statistics import degrees


def _formula(name: str, node: str, *saves: str, **fields: Any) -> Callable[..., Any]:
    """Declares the gradient of an operator: of what arrived, its result and arguments.

    `node`: the name of what PyTorch's formula calls last; `saves`: what it holds beside
    the first two.
    """
    return op(
        name=result_formula(name),
        grad_fn=f"{node}Backward0",
        saves=("grad", "output", *saves),
        namespaces=(),
        method=False,
        out=False,
        **fields,
    )


# Of formulas that look at the values for a choice only.
_CHOICE = {"differentiable": ("grad",)}


@_formula("exp", "Mul")
def _exp(grad: Array, output: Array, input: Array) -> Array:
    return grad * jnp.conj(output)


@_formula("exp2", "Mul")
def _exp2(grad: Array, output: Array, input: Array) -> Array:
    return grad * jnp.conj(output) * np.log(2).astype(output.real.dtype)


@_formula("expm1", "Mul")
def _expm1(grad: Array, output: Array, input: Array) -> Array:
    return grad * (jnp.conj(output) + 1)


@_formula("sigmoid", "SigmoidBackward")
def _sigmoid(grad: Array, output: Array, input: Array) -> Array:
    return grad * jnp.conj((1 - output) * output)


@_formula("tanh", "TanhBackward")
def _tanh(grad: Array, output: Array, input: Array) -> Array:
    return grad * jnp.conj(1 - output * output)


@_formula("tan", "Mul")
def _tan(grad: Array, output: Array, input: Array) -> Array:
    return grad * jnp.conj(1 + output * output)


@_formula("sqrt", "Div")
def _sqrt(grad: Array, output: Array, input: Array) -> Array:
    return grad / (2 * jnp.conj(output))


@_formula("rsqrt", "Mul")
def _rsqrt(grad: Array, output: Array, input: Array) -> Array:
    return -0.5 * grad * jnp.conj(output * output * output)


@_formula("reciprocal", "Mul")
def _reciprocal(grad: Array, output: Array, input: Array) -> Array:
    return -grad * jnp.conj(output * output)


@_formula("relu", "ThresholdBackward")
def _relu(grad: Array, output: Array, input: Array) -> Array:
    return jnp.where(output <= 0, 0, grad)


@_formula("softmax", "SoftmaxBackwardData")
def _softmax(
    grad: Array, output: Array, input: Array, dim: int, dtype: DType | None = None
) -> Array:
    y, g = wide(output), wide(grad)
    total = jnp.sum(y * g, axis=dim if y.ndim else None, keepdims=True)
    return (y * g - y * total).astype(input.dtype)


@_formula("log_softmax", "LogSoftmaxBackwardData")
def _log_softmax(
    grad: Array, output: Array, input: Array, dim: int, dtype: DType | None = None
) -> Array:
    y, g = wide(output), wide(grad)
    total = jnp.sum(g, axis=dim if y.ndim else None, keepdims=True)
    return (g - jnp.exp(y) * total).astype(input.dtype)


@_formula("ndtri", "Mul")
def _ndtri(grad: Array, output: Array, input: Array) -> Array:
    return grad * math.sqrt(2 * math.pi) * jnp.exp(output * output / 2)


@_formula("i0e", "Mul", "input")
def _i0e(grad: Array, output: Array, input: Array) -> Array:
    return grad * (lax.bessel_i1e(input) - jnp.sign(input) * output)


# Along a dimension --------------------------------------------------------------------


def _from_behind(function: Any, value: Array, dim: int) -> Array:
    return jnp.flip(function(jnp.flip(value, dim), axis=dim), dim)


@_formula("cumprod", "Div", "input")
def _cumprod(
    grad: Array, output: Array, input: Array, dim: int, *, dtype: DType | None = None
) -> Array:
    """By quotients up to the first zero, of which the rest is a product without it."""
    if not input.ndim or input.shape[dim] <= 1:
        return grad.astype(input.dtype)
    y, g = wide(output), wide(grad)
    x = jnp.conj(wide(input).astype(y.dtype))
    zero = x == 0
    zeros = jnp.cumsum(zero, dim)
    products = jnp.where(zeros == 0, jnp.conj(y) * g, 0)
    before = _from_behind(jnp.cumsum, products, dim) / jnp.where(zero, 1, x)
    first = zero & (zeros == 1)
    rest = jnp.cumprod(jnp.where((zeros == 1) & ~zero, x, 1), dim)
    behind = jnp.sum(jnp.where(zeros == 1, rest * g, 0), dim, keepdims=True)
    ones = jnp.ones_like(lax.slice_in_dim(y, 0, 1, axis=dim))
    until = lax.slice_in_dim(y, 0, y.shape[dim] - 1, axis=dim)
    behind = behind * jnp.conj(jnp.concatenate([ones, until], dim))
    found = jnp.where(zeros == 0, before, jnp.where(first, behind, 0))
    return found.astype(input.dtype)


@_formula("logcumsumexp", "Sub", "input")
def _logcumsumexp(grad: Array, output: Array, input: Array, dim: int) -> Array:
    if not input.size or not input.ndim:
        return grad
    x, y, g = wide(input), wide(output), wide(grad)

    def part(given: Array, there: Array) -> Array:
        logs = jnp.where(there, jnp.log(jnp.where(there, given, 1)), _lowest(given))
        dim_ = dim % x.ndim
        return jnp.exp(_from_behind(lax.cumlogsumexp, logs - y, dim_) + x)

    if jnp.iscomplexobj(x):
        return jnp.conj(part(jnp.conj(g), g != 0)).astype(input.dtype)
    return (part(g, g > 0) - part(-g, g < 0)).astype(input.dtype)


def _lowest(value: Array) -> Any:
    # Half of it, as complex infinities would give NaN.
    return jnp.finfo(value.dtype).min / 2


# Of matrices --------------------------------------------------------------------------


@_formula("linalg_inv", "Mm")
def _inv(grad: Array, output: Array, A: Array) -> Array:
    transposed = adjoint(output)
    return -(transposed @ (grad @ transposed))


@_formula("linalg_cholesky", "LinalgSolveTriangular")
def _cholesky(grad: Array, output: Array, A: Array, *, upper: bool = False) -> Array:
    L, g = (adjoint(v) if upper else v for v in (output, grad))
    found = jnp.tril(adjoint(L) @ g)
    found = 0.5 * (found + adjoint(jnp.tril(found, -1)))
    solve = functools.partial(lax.linalg.triangular_solve, L, lower=True)
    found = solve(found, left_side=True, transpose_a=True, conjugate_a=True)
    return solve(found, left_side=False)


# Of reductions ------------------------------------------------------------------------


def _kept(value: Array, input: Array, dim: Any, keepdim: bool) -> Array:
    """What a reduction gave, or what arrived there, with the dimensions it is over."""
    if keepdim:
        return wide(value)
    return jnp.expand_dims(wide(value), axes_of(dim, input.ndim))


@_formula("logsumexp", "Mul", "input")
def _logsumexp(
    grad: Array, output: Array, input: Array, dim: Dims, keepdim: bool = False
) -> Array:
    y, g = (_kept(v, input, dim, keepdim) for v in (output, grad))
    return (g * jnp.conj(jnp.exp(wide(input) - y))).astype(input.dtype)


@_formula("prod", "Mul", "input")
def _prod(
    grad: Array,
    output: Array,
    input: Array,
    dim: int = ALL,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """By the quotient of result and input, or the others' product with zeros."""
    if not input.ndim:
        return grad.astype(input.dtype)
    y, g = (_kept(v, input, dim, keepdim) for v in (output, grad))
    x = wide(input).astype(y.dtype)
    whole = dim is ALL
    rows = x.reshape(-1) if whole else jnp.moveaxis(x, dim, -1)
    ones = jnp.ones_like(rows[..., :1])
    before = jnp.cumprod(jnp.concatenate([ones, rows[..., :-1]], -1), -1)
    after = jnp.concatenate([rows[..., 1:], ones], -1)
    others = before * jnp.cumprod(after[..., ::-1], -1)[..., ::-1]
    others = others.reshape(x.shape) if whole else jnp.moveaxis(others, -1, dim)
    # Any zero at all decides, whichever product it is in.
    zeros = jnp.any(x == 0)
    quotients = y / jnp.where(zeros, 1, x)
    return (g * jnp.conj(jnp.where(zeros, others, quotients))).astype(input.dtype)


def _extreme(grad: Array, output: Array, input: Array) -> Array:
    mask = jnp.where(jnp.isnan(output), jnp.isnan(input), input == output)
    share = wide(grad) / jnp.sum(mask)
    return jnp.where(mask, share, 0).astype(input.dtype)


for _name in ("max.whole", "min.whole", "median.whole", "nanmedian.whole"):
    _formula(_name, "EvenlyDistribute", "input", **_CHOICE)(_extreme)


def _shares(equal: Array, dim: Dims) -> Array:
    """What each element that is equal to a result gets of what arrives there."""
    number = jnp.sum(equal, axis=axes_of(dim, equal.ndim), keepdims=True)
    # (XLA takes zeros of a mask for zeros, whatever they are divided by.)
    return jnp.where(number == 0, jnp.nan, equal / number)


def _extreme_along(
    grad: Array, output: Array, input: Array, dim: Dims = (), keepdim: bool = False
) -> Array:
    y, g = (_kept(v, input, dim, keepdim) for v in (output, grad))
    return (g * _shares(input == y, dim)).astype(input.dtype)


for _name in ("amax", "amin"):
    _formula(_name, "Div", "input", **_CHOICE)(_extreme_along)


@_formula("std.dim", "Mul", "input")
def _std(
    grad: Array,
    output: Array,
    input: Array,
    dim: Dims = ALL,
    unbiased: bool = UNSAID,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Array:
    y, g = (_kept(v, input, dim, keepdim) for v in (output, grad))
    x, axes = wide(input), axes_of(dim, input.ndim)
    number = max(count(input, axes) - degrees(dim, unbiased, correction), 0)
    g = jnp.where(y == 0, 0, g / (2 * y))
    mean = jnp.mean(x, axis=axes, keepdims=True)
    scale = jnp.asarray(number, y.dtype)
    return (2 / scale * g * (x - mean)).astype(input.dtype)


@_formula("vector_norm", "Mul", "input")
def _vector_norm(
    grad: Array,
    output: Array,
    input: Array,
    ord: Any = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    y, g = (_kept(v, input, dim, keepdim) for v in (output, grad))
    x, p = wide(input).astype(jnp.result_type(y.dtype, input.dtype)), float(ord)
    size = jnp.abs(x)
    if p == 0:
        out = jnp.zeros_like(x)
    elif p == 1:
        out = jnp.sign(x) * g
    elif p == 2:
        out = jnp.where(y == 0, 0, g * (x / y))
    elif math.isinf(p):
        equal = (size == y) | (jnp.isnan(size) & jnp.isnan(y))
        out = jnp.sign(x) * (_shares(equal, dim) * g)
    elif p < 1:
        scaled = jnp.where(x == 0, 0, jnp.sign(x) * size ** (p - 1))
        out = scaled * g * y ** (1 - p)
    else:
        scaled = jnp.sign(x) * size ** (p - 1) if p < 2 else x * size ** (p - 2)
        out = scaled * jnp.where(y == 0, 0, g / y ** (p - 1))
    return out.astype(input.dtype)


@_formula("norm", "Mul", "input")
def _norm(
    grad: Array,
    output: Array,
    input: Array,
    p: Any = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Array:
    if p == "nuc":
        raise NotImplementedError(RESULT_REPLACED.format("norm(p='nuc')"))
    order = 2 if p in (None, "fro") else p
    return _vector_norm(grad, output, input, order, dim, keepdim, dtype=dtype)
