"""Rows of a table by number, masks of dropout, and attention."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.checks import Check
from torchshim._core.dtypes import bfloat16, float16, from_array_dtype
from torchshim._core.naming import tensor_type
from torchshim._core.op import ANY, ORDER, POSITIVE, Array, Scalar, op
from torchshim._core.precision import precision
from torchshim._ops import _shapes
from torchshim._ops._common import (
    broadcast_shapes,
    is_known,
    quotient,
    widened,
)
from torchshim._ops._formats import first_layout
from torchshim._ops.indexing import outside
from torchshim._ops.matmul import rounded
from torchshim._ops.norm import p_norm

# -- rows of a table ------------------------------------------------------------------


def _check_indices(dtype: Any, name: str) -> None:
    _check_kind("indices", dtype, ("int64", "int32"), name)


def _check_kind(what: str, dtype: Any, allowed: tuple[str, ...], name: str) -> None:
    if dtype not in map(jnp.dtype, allowed):
        place = 2 if name == "embedding_renorm_" else 1
        names = ", ".join(from_array_dtype(jnp.dtype(k)).scalar_name for k in allowed)
        got = tensor_type(from_array_dtype(dtype))
        raise RuntimeError(
            f"Expected tensor for argument #{place} '{what}' to have one of the "
            f"following scalar types: {names}; but got {got} instead "
            f"(while checking arguments for {name})"
        )


def _row_checks(weight: Array, indices: Array, *rest: Any) -> list[Check]:
    bad = (indices < 0) | (indices >= weight.shape[0])
    return [Check(bad.any(), IndexError, "index out of range in self")]


@jax.custom_jvp
def _slowed(x: Array, factor: Array) -> Array:
    """`x`, with its derivative times a factor."""
    return x


@_slowed.defjvp
def _slowed_jvp(primals: Any, tangents: Any) -> Any:
    x, factor = primals
    return _slowed(x, factor), tangents[0] * factor


@jax.custom_jvp
def _still(x: Array, moves: Array) -> Array:
    """`x`, with a derivative of zero except where it moves: not even a NaN."""
    return x


@_still.defjvp
def _still_jvp(primals: Any, tangents: Any) -> Any:
    x, moves = primals
    return _still(x, moves), jnp.where(moves, tangents[0], 0)


def _rows(weight: Array, indices: Array) -> Array:
    return jnp.take(weight, indices, axis=0, mode="clip")


def frequencies(indices: Array, rows: int) -> Array:
    counts = jnp.zeros(rows, jnp.int64).at[indices.reshape(-1)].add(1, mode="drop")
    return counts[jnp.clip(indices, 0, max(rows - 1, 0))]


def _counts_by_rank(indices: Array, rows: int) -> Array:
    """What PyTorch's bags divide gradients by: not how often each index occurs.

    The third smallest index, say, is given the frequency of the third of all indices
    when these are sorted.
    """
    order = jnp.sort(indices)
    new = jnp.concatenate([order[:1] != order[:1], order[1:] != order[:-1]])
    rank = jnp.cumsum(new)
    counts = frequencies(order, rows)[rank]
    by_row = jnp.zeros(rows, counts.dtype).at[order].set(counts, mode="drop")
    return by_row[jnp.clip(indices, 0, max(rows - 1, 0))]


def _sparse_rows(
    weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> tuple[str, bool] | None:
    return ("embedding_rows", padding_idx >= 0) if sparse else None


@op(
    grad_fn="EmbeddingBackward0",
    saves=("indices",),
    differentiable=("weight",),
    method=False,
    out=False,
    checks=_row_checks,
    shape=_shapes.rows,
    sparse_grad=_sparse_rows,
    real_gradients="embedding",
)
def embedding(
    weight: Array,
    indices: Array,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Rows of a matrix by number."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices.dtype, "embedding")
    if indices.size and not weight.shape[0]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    out = _rows(weight, indices)
    if scale_grad_by_freq:
        counts = frequencies(indices, weight.shape[0])
        out = _slowed(out, (1 / jnp.maximum(counts, 1).astype(out.dtype))[..., None])
    if padding_idx >= 0:
        out = _still(out, (indices != padding_idx)[..., None])
    return out


@op(
    grad_fn="EmbeddingRenormBackward0",
    saves=(),
    differentiable=False,
    namespaces=(),
    method=False,
    out=False,
    inplace=True,
    checks=_row_checks,
    varies={"max_norm": POSITIVE, "norm_type": ORDER},
)
def embedding_renorm(
    input: Array, indices: Array, max_norm: float, norm_type: float
) -> Array:
    """The rows that are named made no longer than a norm."""
    if input.ndim != 2:
        raise RuntimeError("'self' must be 2-D")
    _check_indices(indices.dtype, "embedding_renorm_")
    used = (
        jnp.zeros(input.shape[0], bool).at[indices.reshape(-1)].set(True, mode="drop")
    )
    x = widened(input)
    size = p_norm(x, norm_type, (1,))
    shorter = (x * (max_norm / (size + 1e-7))).astype(input.dtype)
    return jnp.where(used[:, None] & (size > max_norm), shorter, input)


_MODES = ("sum", "mean", "max")


def _sum_checks(weight: Array, indices: Array, offsets: Array, *rest: Any) -> Any:
    dtype = jnp.result_type(weight)
    if not ends(dtype, rest[-2]):
        return _max_checks(weight, indices, offsets)
    # PyTorch says where, too.
    text = "Index of input takes value {value} which is not in the valid range"
    rows = weight.shape[0]
    found = outside(indices, 0, rows, f"{text} [0, {rows})", RuntimeError)
    return found + _offset_checks(indices, offsets)


def _max_checks(weight: Array, indices: Array, offsets: Array, *rest: Any) -> Any:
    text = (
        "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
        "{value}"
    )
    found = outside(indices, 0, weight.shape[0], text, RuntimeError)
    return found + _offset_checks(indices, offsets)


def _offset_checks(indices: Array, offsets: Array) -> list[Check]:
    found: list[Check] = []
    if offsets.shape[0]:
        first, last = offsets[0], offsets[-1]
        found.append(
            Check(
                first != 0,
                RuntimeError,
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch "
                "has "
                "to start from position 0. However, got {value}\n[ torch.LongTensor{} "
                "]",
                first,
            )
        )
        found.append(
            Check(
                last > indices.shape[0],
                RuntimeError,
                "offsets[-1] can not be greater than input's length "
                f"{indices.shape[0]} but got offsets[-1] of {{value}}",
                last,
            )
        )
    return found


def _sparse_bags(*args: Any) -> tuple[str, bool] | None:
    *_, padding_idx, sparse = args
    return ("embedding_bag_rows", padding_idx >= 0) if sparse else None


@op(
    grad_fn="EmbeddingBagBackward0",
    saves={
        "weight": ("indices", "offsets", "per_sample_weights"),
        "per_sample_weights": ("indices", "offsets", "weight"),
    },
    differentiable=("weight", "per_sample_weights"),
    namespaces=(),
    method=False,
    out=False,
    checks=_sum_checks,
    sparse_grad=_sparse_bags,
)
def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool,
    mode: str,
    per_sample_weights: Array | None,
    include_last_offset: bool,
    padding_idx: int,
    sparse: bool,
) -> Array:
    """Rows of a matrix by number, added up bag by bag."""
    bag, bags, rows = _bags(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        per_sample_weights,
        include_last_offset,
        padding_idx,
        ends(weight.dtype, padding_idx),
    )
    out = jnp.zeros((bags + 1, rows.shape[1]), rows.dtype).at[bag].add(rows)[:bags]
    if mode == "mean":
        sizes = jnp.zeros(bags + 1, jnp.int64).at[bag].add(1)[:bags]
        out = quotient(out, jnp.maximum(sizes, 1).astype(out.dtype)[:, None])
    return rounded(out, weight)


@op(
    grad_fn="EmbeddingBagBackward0",
    saves=("weight", "indices", "offsets"),
    differentiable=("weight",),
    namespaces=(),
    method=False,
    out=False,
    checks=_max_checks,
)
def embedding_bag_max(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool,
    include_last_offset: bool,
    padding_idx: int,
) -> Array:
    """The largest elements of rows of a matrix, bag by bag."""
    bag, bags, rows = _bags(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        None,
        include_last_offset,
        padding_idx,
        False,
    )
    count, width = rows.shape
    best = jnp.full((bags + 1, width), -jnp.inf, rows.dtype)
    best = jax.lax.stop_gradient(best.at[bag].max(rows))
    hit = rows == best[bag]
    # Of equal elements the first is the largest.
    place = jnp.where(hit, jnp.arange(count)[:, None], count)
    first = jnp.full((bags + 1, width), count).at[bag].min(place)
    own = hit & (first[bag] == jnp.arange(count)[:, None])
    rows = jnp.where(own, rows, 0)
    out = jnp.zeros((bags + 1, width), rows.dtype).at[bag].add(rows)[:bags]
    return rounded(out, weight)


def _bags(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool,
    per_sample_weights: Array | None,
    include_last_offset: bool,
    padding_idx: int,
    ends: bool,
) -> tuple[Array, int, Array]:
    """The bag of each index, the number of bags, and the rows that go into them."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(jnp.result_type(indices, offsets), "embedding_bag")
    floats = ("float16", "bfloat16", "float32", "float64")
    _check_kind("weight", weight.dtype, floats, "embedding_bag")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        mine, its = (
            tensor_type(from_array_dtype(x.dtype)) for x in (weight, per_sample_weights)
        )
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor "
            f"for argument #1 'per_sample_weights'; but type {mine} does not equal "
            f"{its} (while checking arguments for embedding_bag)"
        )
    indices = indices.astype(offsets.dtype) if indices.dtype == bool else indices
    offsets = offsets.astype(indices.dtype) if offsets.dtype == bool else offsets
    bag, bags = bags_of(indices, offsets, include_last_offset, padding_idx, ends)
    rows = widened(_rows(weight, indices))
    if scale_grad_by_freq:
        counts = _counts_by_rank(indices, weight.shape[0])
        rows = _slowed(rows, (1 / jnp.maximum(counts, 1).astype(rows.dtype))[:, None])
    if per_sample_weights is not None:
        rows = rows * widened(per_sample_weights)[:, None]
    return bag, bags, rows


def ends(dtype: Any, padding_idx: int) -> bool:
    """Whether a last offset ends the last bag of a sum or mean.

    It does in PyTorch's fast kernels, which know no padding; in the others, and in
    those of maxima, the last bag has all that is left.
    """
    return dtype != jnp.float64 and padding_idx < 0


def bags_of(
    indices: Array,
    offsets: Array,
    include_last_offset: bool,
    padding_idx: int,
    ends: bool,
) -> tuple[Array, int]:
    """The bag of each index, the number of bags for those that are in none; that."""
    if include_last_offset and not offsets.shape[0]:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    count = indices.shape[0]
    starts = offsets[:bags]
    # How many bags have started, less one.
    marks = jnp.zeros(count + 1, jnp.int64).at[starts].add(1, mode="drop")
    bag = jnp.cumsum(marks)[:count] - 1
    if include_last_offset and ends:
        bag = jnp.where(jnp.arange(count) < offsets[-1], bag, bags)
    return jnp.where(indices != padding_idx, bag, bags), bags


# -- dropout --------------------------------------------------------------------------


@op(
    grad_fn="MulBackward0",
    saves=("mask",),
    differentiable=("input",),
    namespaces=(),
    method=False,
    out=False,
    inplace=True,
    layout="preserve",
)
def masked_scale(input: Array, mask: Array, kept: Scalar) -> Array:
    """Where the mask is false 0; elsewhere divided by the share that is kept."""
    share = jnp.asarray(kept, input.dtype)
    return input * (mask.astype(input.dtype) / share)


@op(
    grad_fn="AddBackward0",
    saves=("mask",),
    differentiable=("input",),
    namespaces=(),
    method=False,
    out=False,
    inplace=True,
    layout="preserve",
)
def masked_affine(input: Array, mask: Array, kept: Scalar) -> Array:
    """Alpha dropout: what is dropped takes SELU's limit, mean and variance stay."""
    q = jnp.asarray(kept, jnp.float64)
    alpha = 1.7580993408473766
    a = 1 / jnp.sqrt((alpha * alpha * (1 - q) + 1) * q)
    noise = mask.astype(input.dtype)
    scale, shift = a.astype(input.dtype), (alpha * a).astype(input.dtype)
    added = (noise - 1) * shift + (alpha * a * (1 - q)).astype(input.dtype)
    return input * (noise * scale) + added


# -- attention ------------------------------------------------------------------------


def _check_attention(
    query: Array, key: Array, value: Array, attn_mask: Array | None
) -> None:
    if not query.dtype == key.dtype == value.dtype:
        a, b, c = (from_array_dtype(x.dtype).cpp_name for x in (query, key, value))
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {a} key.dtype: {b} and value.dtype: {c} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} "
            "instead."
        )
    kind = from_array_dtype(query.dtype)
    if kind.is_complex:
        raise NotImplementedError(
            f"\"softmax_lastdim_kernel_impl\" not implemented for '{kind.scalar_name}'"
        )
    if not kind.is_floating_point:
        # Scaling makes scores floats, which values of integers do not go with.
        raise RuntimeError(
            f"expected scalar type Float but found {kind.scalar_name}"
            if query.ndim > 2
            else "expected m1 and m2 to have the same dtype, but got: float != "
            f"{kind.cpp_name}"
        )
    if attn_mask is not None:
        if attn_mask.dtype != jnp.bool_ and attn_mask.dtype != query.dtype:
            if attn_mask.dtype != jnp.float32:
                given = from_array_dtype(attn_mask.dtype).cpp_name
                raise RuntimeError(
                    "Expected attn_mask dtype to be bool or float or to match query "
                    f"dtype, but got attn_mask.dtype: {given} and  query.dtype: "
                    f"{kind.cpp_name} instead."
                )


@op(
    grad_fn="ScaledDotProductFlashAttentionForCpuBackward0",
    saves=("query", "key", "value", "attn_mask"),
    namespaces=(),
    method=False,
    out=False,
    layout=first_layout,
    varies={"scale": ANY},
)
def fused_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    is_causal: bool,
    scale: float | None,
) -> Array:
    """`attention` where PyTorch computes it by one kernel, which takes both masks."""
    _check_attention(query, key, value, attn_mask)
    heads = query.shape[1] // max(key.shape[1], 1)
    if heads > 1:
        key, value = (jnp.repeat(each, heads, axis=1) for each in (key, value))
    return _attend(query, key, value, attn_mask, 0.0, is_causal, scale, None)


def _attention_node(query: Any, *rest: Any) -> str:
    if query.dtype in (float16, bfloat16):
        return "ToCopyBackward0"  # computed in float32
    return "MmBackward0" if len(query.shape) == 2 else "UnsafeViewBackward0"


@op(
    grad_fn=_attention_node,
    saves=("query", "key", "value", "attn_mask", "dropout_mask"),
    differentiable=("query", "key", "value", "attn_mask"),
    namespaces=(),
    method=False,
    out=False,
    varies={"scale": ANY, "dropout_p": (0.0, 1.0)},
)
def attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    dropout_mask: Array | None,
) -> Array:
    """`softmax(query @ key.T * scale + mask) @ value`."""
    _check_attention(query, key, value, attn_mask)
    if attn_mask is not None and is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set "
            "when is_causal=True"
        )
    if enable_gqa and query.ndim >= 3 and key.ndim >= 3:
        heads, given = query.shape[-3], key.shape[-3]
        if given != heads and given and heads % given == 0:
            key = jnp.repeat(key, heads // given, axis=-3)
            value = jnp.repeat(value, heads // value.shape[-3], axis=-3)
    if query.shape[-1] != key.shape[-1]:
        count = math.prod(query.shape[:-2])
        width = query.shape[-1]
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{count}, {width}] but got: [{count}, {key.shape[-1]}]."
            if query.ndim > 2
            else "mat1 and mat2 shapes cannot be multiplied "
            f"({query.shape[0]}x{width} and {key.shape[1]}x{key.shape[0]})"
        )
    broadcast_shapes(query.shape[:-2], key.shape[:-2])
    if key.shape[-2] != value.shape[-2]:
        length, rows = query.shape[-2], key.shape[-2]
        count = math.prod(query.shape[:-2])
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{count}, {rows}] but got: [{count}, {value.shape[-2]}]."
            if query.ndim > 2
            else "mat1 and mat2 shapes cannot be multiplied "
            f"({length}x{rows} and {value.shape[-2]}x{value.shape[-1]})"
        )
    return _attend(
        query, key, value, attn_mask, dropout_p, is_causal, scale, dropout_mask
    )


def _attend(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    dropout_mask: Array | None,
) -> Array:
    q, k, v = widened(query), widened(key), widened(value)
    factor = scale if scale is not None else 1 / math.sqrt(max(q.shape[-1], 1))
    scores = jnp.einsum("...ld,...sd->...ls", q, k, precision=precision.matmul) * factor
    if is_causal:
        length, size = scores.shape[-2:]
        allowed = jnp.tril(jnp.ones((length, size), bool))
        scores = jnp.where(allowed, scores, -jnp.inf)
    if attn_mask is not None:
        broadcast_shapes(scores.shape, attn_mask.shape)
        if attn_mask.dtype == jnp.bool_:
            scores = jnp.where(attn_mask, scores, -jnp.inf)
        else:
            scores = scores + widened(attn_mask)
    if dropout_mask is None:
        weights = _safe_softmax(scores)
    else:
        weights = _safe_softmax(scores)
        kept = 1 - dropout_p if not is_known(dropout_p) or dropout_p < 1 else 1
        weights = weights * (dropout_mask.astype(weights.dtype) / kept)
    out = jnp.einsum("...ls,...sd->...ld", weights, v, precision=precision.matmul)
    return rounded(out, query)


def _safe_softmax(scores: Array) -> Array:
    """The softmax; rows in which everything is masked become 0."""
    masked = jnp.all(scores == -jnp.inf, axis=-1, keepdims=True)
    finite = jnp.where(masked, 0, scores)
    return jnp.where(masked, 0, jax.nn.softmax(finite, axis=-1))
