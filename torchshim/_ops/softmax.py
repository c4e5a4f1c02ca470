"""Exponentials along a dimension as parts of their sum, and their logarithms."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.dtypes import dtype as DType
from torchshim._core.op import Array, op
from torchshim._ops import _shapes
from torchshim._ops._reducing import (
    cast,
    check_asked_along,
    is_complex,
    is_exact,
    not_implemented,
    wide,
)
from torchshim._ops.view_geometry import wrap_dim


def softmax_input(
    name: str, input: Array, dim: int, dtype: DType | None
) -> tuple[Array, int]:
    axis = wrap_dim(dim, input.ndim)
    x = cast(input, dtype)
    if x.size and (is_exact(x) or is_complex(x)):
        last = "_lastdim" if axis == max(input.ndim, 1) - 1 else ""
        raise not_implemented(f"{name}{last}_kernel_impl", x)
    return x, axis


@op(
    grad_fn="SoftmaxBackward0",
    saves=("result",),
    namespaces=("torch", "special"),
    out="exact",
    unfollowed=True,
    typecheck=check_asked_along,
    shape=_shapes.same,
)
def softmax(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """Exponentials along a dimension, divided by their sum."""
    x, axis = softmax_input("softmax", input, dim, dtype)
    if not x.size:
        return x
    w = wide(x)
    return softmax_of(w, axis if w.ndim else None).astype(x.dtype)


@op(
    grad_fn="LogSoftmaxBackward0",
    saves=("result",),
    namespaces=("torch", "special"),
    out="exact",
    unfollowed=True,
    typecheck=check_asked_along,
    shape=_shapes.same,
)
def log_softmax(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """The logarithm of `softmax`, without loss of small values."""
    x, axis = softmax_input("log_softmax", input, dim, dtype)
    if not x.size:
        return x
    w = wide(x)
    return _log_softmax(w, axis if w.ndim else None).astype(x.dtype)


def _shifted(x: Array, axis: int | None) -> Array:
    return x - jnp.max(x, axis=axis, keepdims=True, initial=-jnp.inf)


# The derivatives in terms of the results: fewer exponentials in backward.
@partial(jax.custom_jvp, nondiff_argnums=(1,))
def softmax_of(x: Array, axis: int | None) -> Array:
    e = jnp.exp(_shifted(x, axis))
    return e / jnp.sum(e, axis=axis, keepdims=True)


@softmax_of.defjvp
def _softmax_derivative(axis: Any, primals: Any, tangents: Any) -> Any:
    y, (t,) = softmax_of(*primals, axis), tangents
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


@op(
    name="_masked_softmax",
    grad_fn="MaskedSoftmaxBackward0",
    saves=("mask", "result"),
    method=False,
    out=False,
)
def masked_softmax(
    input: Array, mask: Array, dim: int | None = None, mask_type: int | None = None
) -> Array:
    """`softmax` of what a mask leaves, zero where it is True.

    A mask of two dimensions, of scores (0) or of keys (1), is broadcast to input
    (batch, heads, L, L); others have the input's shape, and need no type (2). Where it
    leaves nothing the result is NaN.
    """
    axis = wrap_dim(input.ndim - 1 if dim is None else dim, input.ndim)
    _check_mask(input, mask, mask_type)
    x = wide(input)
    if mask_type == 1 and mask.ndim == 2 != x.ndim:
        mask = mask[:, None, None, :]
    kept = jnp.where(mask, -jnp.inf, x)
    return softmax_of(kept, axis if x.ndim else None).astype(input.dtype)


def _check_mask(input: Array, mask: Array, mask_type: int | None) -> None:
    if mask.dtype != jnp.bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    shape, given = input.shape, mask.shape
    if (input.ndim, mask.ndim) != (4, 2):
        mask_type = 2
    if mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    elif mask_type not in (0, 1, 2):
        raise RuntimeError(
            "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 "
            "(default_mask)"
        )
    elif mask_type == 2:
        if given != shape:
            raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    elif shape[2] != shape[3]:
        raise RuntimeError(_MASK_SHAPE[mask_type])
    elif given != (shape[2:] if mask_type == 0 else (shape[0], shape[2])):
        raise RuntimeError(_MASK_SHAPE[mask_type])


_MASK_SHAPE = (
    "For mask_type == 0 mask shape should be (L, L)",
    "For mask_type == 1 mask shape should be (B, L)",
)
