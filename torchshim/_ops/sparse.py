"""What sparse tensors are made of: products, sums and gathers by index.

A sparse tensor (`_functions/sparse_tensor.py`) is an index tensor and a values tensor;
these operators take both. The patterns that results have are found on the host, so that
they are arguments here.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.op import Array, Scalar, op
from torchshim._ops._common import widened
from torchshim._ops.matmul import rounded

_PRIVATE: dict[str, Any] = {"namespaces": (), "method": False, "out": False}


def _summed(terms: Array, groups: Array, count: int) -> Array:
    """The sums of the terms of each group."""
    if terms.dtype == bool:
        return jnp.zeros((count, *terms.shape[1:]), bool).at[groups].max(terms)
    return rounded(jax.ops.segment_sum(widened(terms), groups, count), terms)


def _product(indices: Array, values: Array, dense: Array, count: int) -> Array:
    """The product of a sparse matrix of `count` rows and a dense vector or matrix."""
    rows = jnp.take(widened(dense), indices[1], axis=0, mode="clip")
    terms = widened(values).reshape(-1, *(1 for _ in dense.shape[1:])) * rows
    return rounded(jax.ops.segment_sum(terms, indices[0], count), dense)


def _product_of_dense(indices: Array, values: Array, dense: Array, count: int) -> Array:
    """The product of a dense matrix and a sparse one of `count` columns."""
    return _product(indices[::-1], values, dense.T, count).T


def _plus_product(
    input: Array,
    indices: Array,
    values: Array,
    dense: Array,
    beta: Scalar,
    alpha: Scalar,
    count: int,
) -> Array:
    """`beta * input + alpha * (sparse @ dense)`."""
    product = _product(indices, values, dense, count)
    kind = product.dtype
    added = jnp.asarray(beta, kind) * input
    return jnp.broadcast_to(added, product.shape) + jnp.asarray(alpha, kind) * product


for _name, _node, _function in (
    ("sparse_mm", "MmBackward0", _product),
    ("sparse_mv", "MvBackward0", _product),
    ("sparse_only_mm", "SparseAddmmBackward0", _product),
    ("dense_sparse_mm", "MmBackward0", _product_of_dense),
    ("sparse_plus_mm", "AddmmBackward0", _plus_product),
    ("sparse_addmm", "SparseAddmmBackward0", _plus_product),
):
    op(name=_name, grad_fn=_node, **_PRIVATE)(_function)


@op(grad_fn="SparseMmReduceImplBackward0", **_PRIVATE)
def sparse_mm_reduce(
    indices: Array, values: Array, dense: Array, count: int, reduce: str
) -> Array:
    """As a product, by the sum, mean, greatest or least of each row's terms.

    Of equal terms the first has the gradient.
    """
    rows = indices[0]
    gathered = jnp.take(dense, indices[1], axis=0, mode="clip")
    terms = values.reshape(-1, *(1 for _ in dense.shape[1:])) * gathered
    n = len(rows)
    if reduce in ("sum", "mean") or not n:
        total = jax.ops.segment_sum(terms, rows, count)
        if reduce != "mean":
            return total
        number = jax.ops.segment_sum(jnp.ones_like(rows), rows, count)[:, None]
        return total / jnp.maximum(number, 1).astype(total.dtype)
    extreme = jax.ops.segment_max if reduce == "amax" else jax.ops.segment_min
    known = jax.lax.stop_gradient(terms)
    best = jnp.take(extreme(known, rows, count), rows, axis=0)
    order = jnp.where((known == best) | jnp.isnan(known), jnp.arange(n)[:, None], n)
    first = jax.ops.segment_min(order, rows, count)  # beyond `n`: a row without terms
    chosen = jnp.take_along_axis(terms, jnp.minimum(first, n - 1), axis=0)
    return jnp.where(first < n, chosen, 0)


@op(grad_fn="CoalesceBackward0", **_PRIVATE)
def sparse_sum_values(values: Array, groups: Array, count: int) -> Array:
    """The sums of the values of each group."""
    return _summed(values, groups, count)


@op(grad_fn="AddBackward0", **_PRIVATE)
def sparse_merged_values(
    values: Array, others: Array, places: Array, count: int
) -> Array:
    """The values of two tensors, each added to what is at its place."""
    kind = jnp.promote_types(values.dtype, others.dtype)
    terms = [values.astype(kind), others.astype(kind)]
    return _summed(jnp.concatenate(terms), places, count)


@op(grad_fn="CoalesceBackward0", **_PRIVATE)
def sparse_take_values(values: Array, order: Array) -> Array:
    """The values in another order."""
    return values[order]


@op(grad_fn="SparseSparseMatmulBackward0", **_PRIVATE)
def sparse_pair_values(
    a: Array, b: Array, left: Array, right: Array, groups: Array, count: int
) -> Array:
    """The sums over pairs of values of two tensors, by group."""
    return _summed(a[left] * b[right], groups, count)


@op(grad_fn="ToDenseBackward0", **_PRIVATE)
def sparse_to_dense(indices: Array, values: Array, shape: tuple[int, ...]) -> Array:
    """A dense tensor with the values at their places, added up."""
    at = tuple(indices)
    dense = jnp.zeros(shape, widened(values).dtype)
    if not at:
        return values.any(0) if values.dtype == bool else values.sum(0, values.dtype)
    if values.dtype == bool:
        return dense.at[at].max(values)
    return rounded(dense.at[at].add(widened(values), mode="drop"), values)


@op(grad_fn="SparseMaskBackward0", **_PRIVATE)
def sparse_mask_values(dense: Array, indices: Array) -> Array:
    """The elements of a dense tensor at the places of a sparse one."""
    if not len(indices):  # the one element, or none
        return jnp.broadcast_to(dense, (indices.shape[1], *dense.shape))
    return dense[tuple(indices)]


@op(grad_fn="SparseSampledAddmmBackward0", **_PRIVATE)
def sparse_sampled_values(
    values: Array,
    indices: Array,
    mat1: Array,
    mat2: Array,
    beta: Scalar,
    alpha: Scalar,
) -> Array:
    """`beta * values + alpha * (mat1 @ mat2)` at the places of a sparse matrix."""
    rows, columns = mat1[indices[0]], mat2.T[indices[1]]
    kind = values.dtype
    product = jnp.asarray(alpha, kind) * (rows * columns).sum(-1)
    return jnp.asarray(beta, kind) * values + product


def _softmax(values: Array, groups: Array, count: int) -> tuple[Array, Array]:
    """The exponents of a softmax within each group, and the sums of their powers."""
    wide = widened(values)
    highest = lax.stop_gradient(jax.ops.segment_max(wide, groups, count))
    shifted = wide - highest[groups]
    return shifted, jax.ops.segment_sum(jnp.exp(shifted), groups, count)[groups]


@op(grad_fn="SparseSoftmaxBackward0", **_PRIVATE)
def sparse_softmax(values: Array, groups: Array, count: int) -> Array:
    """The softmax of the values of each group."""
    shifted, total = _softmax(values, groups, count)
    return rounded(jnp.exp(shifted) / total, values)


@op(grad_fn="SparseLogSoftmaxBackward0", **_PRIVATE)
def sparse_log_softmax(values: Array, groups: Array, count: int) -> Array:
    """The logarithms of the softmax of the values of each group."""
    shifted, total = _softmax(values, groups, count)
    return rounded(shifted - jnp.log(total), values)


def _same(values: Array) -> Array:
    """The values, under the name of what made a sparse tensor of them."""
    return values


#: Nodes of what changes a sparse tensor's indices, or its form, and no value.
NODES = (
    "SparseCooTensorWithDimsAndTensors SparseCompressedTensor Values T Transpose "
    "Permute Unsqueeze Squeeze Select IndexSelect Cat Stack SparseMask Sum SparseSum "
    "ToSparse ToSparseCsr ToSparseCsc ToSparseBsr ToSparseBsc NarrowCopy Mm"
).split()
for _node in NODES:
    op(
        name=f"sparse_node_{_node}",
        grad_fn=f"{_node}Backward{int(_node in ('Sum', 'ToSparse'))}",
        saves=(),
        curved=False,
        **_PRIVATE,
    )(_same)
