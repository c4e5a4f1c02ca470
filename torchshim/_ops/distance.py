"""Distances of vectors from one another, and the angles between them."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.dtypes import get_default_dtype
from torchshim._core.op import ANY, ORDER, POSITIVE, Array, op
from torchshim._core.promotion import DEFAULT
from torchshim._ops._common import (
    broadcast_shapes,
    is_known,
    refuse_half,
    scalar_name,
    widened,
)
from torchshim._ops.arithmetic import check_difference
from torchshim._ops.matmul import PRECISION
from torchshim._ops.norm import p_norm
from torchshim._ops.views import wrap_dim


@op(
    promote=DEFAULT,
    grad_fn="SumBackward1",
    saves=("x1", "x2", "intermediate"),
    namespaces=("torch", "nn.functional"),
    method=False,
    out=False,
    layout=lambda shape, operands: None,
    varies={"eps": POSITIVE},
)
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-08) -> Array:
    """The cosine of the angle between vectors along a dimension."""
    if not jnp.issubdtype(x1.dtype, jnp.floating):
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is "
            f"{scalar_name(x1)}"
        )
    if is_known(eps) and not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = jnp.broadcast_to(x1, shape), jnp.broadcast_to(x2, shape)
    axis = wrap_dim(dim, len(shape))
    axes = (axis,) if shape else ()

    def unit(x: Array) -> Array:
        # The bound takes no part in the derivative.
        size = p_norm(x, 2, axes)
        bounded = size + jax.lax.stop_gradient(eps - size)
        return x / jnp.where(size >= eps, size, bounded)

    return (unit(x1) * unit(x2)).sum(axes)


@op(
    grad_fn="NormBackward1",
    saves=("intermediate", "result"),
    namespaces=("torch", "nn.functional"),
    method=False,
    out=False,
    layout=lambda shape, operands: None,
    typecheck=lambda x1, x2, *rest: check_difference(x1, x2, 1),
    varies={"p": ORDER, "eps": ANY},
)
def pairwise_distance(
    x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Array:
    """The norm of the difference of vectors along the last dimension."""
    broadcast_shapes(x1.shape, x2.shape)
    z = x1 - x2
    if not jnp.issubdtype(z.dtype, jnp.inexact):
        z = z.astype(get_default_dtype().np)
    z = z + jnp.asarray(eps, z.dtype)
    kind, z = z.real.dtype, widened(z)
    out = p_norm(z, p, (z.ndim - 1,)) if z.ndim else jnp.abs(z)
    return (out if keepdim or not z.ndim else out.squeeze(-1)).astype(kind)


_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


def _cdist_node(x1: Any, x2: Any, p: float, compute_mode: str) -> str:
    by_product = _MODES.get(compute_mode)
    if by_product is None:
        by_product = max(x1.shape[-2], x2.shape[-2]) > 25
    return "ViewBackward0" if by_product and p == 2 else "CdistBackward0"


@op(
    grad_fn=_cdist_node,
    saves=("x1", "x2", "result"),
    method=False,
    out=False,
    varies={"p": ORDER},
)
def cdist(
    x1: Array,
    x2: Array,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Array:
    """The distance of each row of one matrix from each row of another."""
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    both = (("X1", x1), ("X2", x2))
    for name, x in both:
        if x.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D"
            )
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            "X1 and X2 must have the same number of columns. X1: "
            f"{x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    for name, x in both:
        if not jnp.issubdtype(x.dtype, jnp.floating):
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: "
                f"{scalar_name(x)}"
            )
    if is_known(p) and not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype != x2.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x1)} but found {scalar_name(x2)}"
        )
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    a = widened(jnp.broadcast_to(x1, batch + x1.shape[-2:]))
    b = widened(jnp.broadcast_to(x2, batch + x2.shape[-2:]))
    by_product = _MODES[compute_mode]
    if by_product is None:
        by_product = max(a.shape[-2], b.shape[-2]) > 25
    if is_known(p) and p == 2 and by_product and a.shape[-1]:
        out = _euclidean(a, b)
    else:
        if a.size and b.size:
            refuse_half("cdist", x1)
        out = _distance(a[..., :, None, :] - b[..., None, :, :], p)
    return out.astype(x1.dtype)


def _distance(z: Array, p: float) -> Array:
    if not is_known(p) or p != math.inf:
        return p_norm(z, p, (z.ndim - 1,)).squeeze(-1)
    return _largest(z)


@jax.custom_jvp
def _largest(z: Array) -> Array:
    return jnp.max(jnp.abs(z), -1, initial=0)


@_largest.defjvp
def _largest_jvp(primals: Any, tangents: Any) -> Any:
    # Each of several largest differences gets the whole gradient, unless it is 0.
    (z,), (dz,) = primals, tangents
    largest = _largest(z)
    hit = (jnp.abs(z) == largest[..., None]) | jnp.isnan(z)
    return largest, (jnp.where(hit, jnp.sign(z), 0) * dz).sum(-1)


def _euclidean(a: Array, b: Array) -> Array:
    """Distances by one product of matrices; their derivative is 0 where they are."""

    def distance(a: Array, b: Array) -> Array:
        cross = jnp.einsum("...ik,...jk->...ij", a, b, precision=PRECISION)
        squares = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :]
        return jnp.sqrt(jnp.maximum(squares - 2 * cross, 0))

    @jax.custom_jvp
    def value(a: Array, b: Array) -> Array:
        return distance(a, b)

    @value.defjvp
    def slope(primals: Any, tangents: Any) -> Any:
        (a, b), (da, db) = primals, tangents
        out = value(a, b)
        inner = (
            (a * da).sum(-1)[..., :, None]
            + (b * db).sum(-1)[..., None, :]
            - jnp.einsum("...ik,...jk->...ij", da, b, precision=PRECISION)
            - jnp.einsum("...ik,...jk->...ij", a, db, precision=PRECISION)
        )
        zero = out == 0
        return out, jnp.where(zero, 0, inner / jnp.where(zero, 1, out))

    return value(a, b)


@op(
    grad_fn="PdistBackward0",
    saves=("input", "result"),
    namespaces=("torch", "nn.functional"),
    method=False,
    out=False,
    varies={"p": ORDER},
)
def pdist(input: Array, p: float = 2) -> Array:
    """The distance of each pair of rows."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not jnp.issubdtype(input.dtype, jnp.floating):
        raise RuntimeError("pdist only supports floating-point dtypes")
    if is_known(p) and not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = input.shape[0]
    if n > 1 and input.size:
        refuse_half("pdist", input)
    first, second = jnp.triu_indices(n, 1)
    return _distance(input[first] - input[second], p)
