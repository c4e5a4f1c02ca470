"""Exponentials along a dimension as parts of their sum, and their logarithms."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.dtypes import dtype as DType
from torchshim._core.op import Array, op
from torchshim._ops import _shapes
from torchshim._ops._reducing import cast, is_complex, is_exact, not_implemented, wide
from torchshim._ops.view_geometry import wrap_dim


def _softmax_input(
    name: str, input: Array, dim: int, dtype: DType | None
) -> tuple[Array, int]:
    axis = wrap_dim(dim, input.ndim)
    x = cast(input, dtype)
    if is_exact(x) or is_complex(x):
        last = "_lastdim" if input.ndim and axis == input.ndim - 1 else ""
        raise not_implemented(f"{name}{last}_kernel_impl", x)
    return x, axis


@op(
    grad_fn="SoftmaxBackward0",
    saves=("result",),
    namespaces=("torch", "special"),
    out="exact",
    shape=_shapes.same,
)
def softmax(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """Exponentials along a dimension, divided by their sum."""
    x, axis = _softmax_input("softmax", input, dim, dtype)
    w = wide(x)
    return _softmax(w, axis if w.ndim else None).astype(x.dtype)


@op(
    grad_fn="LogSoftmaxBackward0",
    saves=("result",),
    namespaces=("torch", "special"),
    out="exact",
    shape=_shapes.same,
)
def log_softmax(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """The logarithm of `softmax`, without loss of small values."""
    x, axis = _softmax_input("log_softmax", input, dim, dtype)
    w = wide(x)
    return _log_softmax(w, axis if w.ndim else None).astype(x.dtype)


def _shifted(x: Array, axis: int | None) -> Array:
    return x - jnp.max(x, axis=axis, keepdims=True, initial=-jnp.inf)


# The derivatives in terms of the results: fewer exponentials in backward.
@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _softmax(x: Array, axis: int | None) -> Array:
    e = jnp.exp(_shifted(x, axis))
    return e / jnp.sum(e, axis=axis, keepdims=True)


@_softmax.defjvp
def _softmax_derivative(axis: Any, primals: Any, tangents: Any) -> Any:
    y, (t,) = _softmax(*primals, axis), tangents
    yt = y * t
    return y, yt - y * jnp.sum(yt, axis=axis, keepdims=True)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _log_softmax(x: Array, axis: int | None) -> Array:
    d = _shifted(x, axis)
    return d - jnp.log(jnp.sum(jnp.exp(d), axis=axis, keepdims=True))


@_log_softmax.defjvp
def _log_softmax_derivative(axis: Any, primals: Any, tangents: Any) -> Any:
    y, (t,) = _log_softmax(*primals, axis), tangents
    return y, t - jnp.sum(jnp.exp(y) * t, axis=axis, keepdims=True)
