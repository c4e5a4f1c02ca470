"""Products, layers and attention of nested tensors of layout jagged."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.ragged import SymInt
from torchshim._functions import nn_attention
from torchshim._functions.composed import planned
from torchshim._functions.creation import placed
from torchshim._functions.joining import cat, stack
from torchshim._functions.nested_elements import on_values
from torchshim._functions.nested_nodes import named
from torchshim._functions.nested_tensor import (
    fits,
    from_padded,
    handles,
    is_jagged,
    lengths_of,
    padded_length,
    refuse,
    strict,
    to_padded,
    view_of,
)

# Products -----------------------------------------------------------------------------


@handles("matmul", "__matmul__")
def matmul(func: Any, input: Any, other: Any) -> Any:
    """As `torch.matmul`, where PyTorch has it of nested tensors."""
    if is_jagged(input) and is_jagged(other):
        made = _both_nested(input, other)
    elif is_jagged(input):
        made = _by_dense(input, other)
    else:
        made = _of_dense(input, other)
    if made is None:
        size = input._size if is_jagged(input) else input.shape
        raise RuntimeError(
            f"matmul(): not supported between inputs of shapes {size} and {other.shape}"
        )
    return _named(made, "Matmul")


def _named(made: Any, node: str) -> Any:
    if is_jagged(made):
        return made._like(named(made._v, node))
    return named(made, node)


@handles("__rmatmul__")
def _rmatmul(func: Any, self: Any, other: Any) -> Any:
    return matmul(func, other, self)


def _by_dense(nested: Any, dense: Any) -> Any:
    ndim = len(nested._size)
    if nested._ragged_idx >= ndim - 1:
        return None
    if ndim >= 3 and ndim == dense.ndim:
        padded = to_padded(nested, 0.0, padded_length(nested))
        return from_padded(padded.matmul(dense), nested)
    if dense.ndim == 2 and ndim > 2:
        return nested._like(nested._v.matmul(dense))
    return None


def _of_dense(dense: Any, nested: Any) -> Any:
    ndim = len(nested._size)
    if nested._ragged_idx < 2:
        return None
    if ndim >= 3 and ndim == dense.ndim:
        padded = to_padded(nested, 0.0, padded_length(nested))
        return from_padded(dense.matmul(padded), nested)
    if dense.ndim == 2 and ndim > 2:
        return nested._like(dense.matmul(nested._v))
    return None


def _both_nested(a: Any, b: Any) -> Any:
    ndims = len(a._size), len(b._size)
    if min(ndims) > 3 and fits(a, b._size):
        return a._like(a._v.matmul(b._v))
    same = a._size[a._ragged_idx] == b._size[b._ragged_idx]
    if ndims == (3, 3) and (a._ragged_idx, b._ragged_idx) == (2, 1) and same:
        pairs = zip(a.unbind(), b.unbind(), strict=True)
        return stack([x.matmul(y) for x, y in pairs])
    return None


@handles("bmm")
def bmm(func: Any, input: Any, mat2: Any, **options: Any) -> Any:
    """As `torch.bmm`."""
    if options.get("out") is not None:
        refuse("bmm with out=")
    if input.dim() != 3:
        raise ValueError("bmm(): input must be 3D")
    if mat2.dim() != 3:
        raise ValueError("bmm(): mat2 must be 3D")
    return _named(matmul(func, input, mat2), "Bmm")


# Layers -------------------------------------------------------------------------------


@handles("linear")
def linear(func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """As `nn.functional.linear`."""
    form = "linear_default(input: jt, weight: t, bias: t?)"
    strict(input, form, "input")
    return input._like(named(func(input._v, weight, bias), "Linear"))


@handles("embedding")
def embedding(func: Any, input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """As `nn.functional.embedding`, of nested indices."""
    form = (
        "embedding_default(weight: t, indices: jt, padding_idx: any?, "
        "scale_grad_by_freq: any?, sparse: any?)"
    )
    strict(input, form, "indices")
    return input._like(func(input._v, weight, *args, **kwargs))


@handles("rms_norm")
def rms_norm(
    func: Any, input: Any, normalized_shape: Any, *args: Any, **kw: Any
) -> Any:
    """As `nn.functional.rms_norm`, behind the ragged dimension."""
    if len(normalized_shape) > len(input._size) - input._ragged_idx - 1:
        raise ValueError(
            "rms_norm(): Normalization over the ragged dim not supported for nested "
            "tensors"
        )
    return on_values(func, input, normalized_shape, *args, **kw)


@handles("layer_norm")
def layer_norm(
    func: Any,
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    **options: Any,
) -> Any:
    """As `nn.functional.layer_norm`; over the ragged dimension by true lengths."""
    ndim = len(input._size)
    if ndim <= 2:
        raise RuntimeError(
            "layer_norm(): not supported for NestedTensor objects with 2 or fewer "
            "dimensions"
        )
    if ndim == len(normalized_shape):
        raise RuntimeError(
            "layer_norm(): not supported when normalizing over the batch dimension for "
            "NestedTensor"
        )
    if not any(isinstance(size, SymInt) for size in normalized_shape):
        return input._like(func(input._v, normalized_shape, weight, bias, eps))
    if input._lengths is not None:
        raise RuntimeError(
            "layer_norm(): not supported where lengths is not None if operating on the "
            "ragged dimension for NestedTensor"
        )
    if input._ragged_idx != 1 or len(normalized_shape) != ndim - 1:
        refuse("layer_norm over the ragged dimension and some others")
    length = max(input._get_max_seqlen(), 1)
    padded = to_padded(input, 0.0, length).flatten(2)
    there, counts = _present(input, length, padded.shape[2])
    mean = padded.sum((1, 2), keepdim=True) / counts
    centred = (padded - mean) * there
    variance = centred.square().sum((1, 2), keepdim=True) / counts
    made = centred / (variance + eps).sqrt()
    made = from_padded(made.unflatten(-1, tuple(input._size[2:])), input)
    return _named(made, "NativeLayerNorm")


def _present(tensor: Any, length: int, width: int) -> tuple[Any, Any]:
    """Which rows of a padded tensor hold elements, and how many elements these are."""
    device = tensor.device

    def make(offsets: np.ndarray) -> Any:
        lengths = np.diff(offsets)[:, None, None]
        there = np.arange(length)[None, :, None] < lengths
        return placed(there, device), placed(lengths * width, device)

    return planned(("present", length, width), make, tensor._offsets)


# Attention ----------------------------------------------------------------------------


@handles("scaled_dot_product_attention")
def attention(
    func: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """As `nn.functional.scaled_dot_product_attention`, of each tensor of a batch."""
    _check_attention(query, key, value, attn_mask)
    options: dict[str, Any] = {"dropout_p": dropout_p, "scale": scale}
    if query.dim() > 3 and query._ragged_idx == 1:
        made = func(query._v, key._v, value._v, is_causal=is_causal, **options)
        return view_of(
            *(made, query._offsets, query._lengths, 1),
            *(query._maybe_min_seqlen, query._maybe_max_seqlen),
        )
    if query.dim() != 4 or not nn_attention.sdp_switches["math"]:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found."
        )
    if enable_gqa or any(t._lengths is not None for t in (query, key, value)):
        refuse("scaled_dot_product_attention with enable_gqa or holes")
    if dropout_p:
        return _one_by_one(func, query, key, value, is_causal, options)
    long, wide = (max(int(lengths_of(t).max(initial=0)), 1) for t in (query, key))
    rows = to_padded(query, 0.0, long)
    keys, values = (to_padded(t, 0.0, wide) for t in (key, value))
    mask = _attended(query, key, long, wide, is_causal)
    return from_padded(func(rows, keys, values, mask, **options), query)


def _one_by_one(
    func: Any, query: Any, key: Any, value: Any, is_causal: bool, options: Any
) -> Any:
    """Each tensor of the batch by itself, as dropout has to draw for each."""
    parts = zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    made = [func(q, k, v, is_causal=is_causal, **options) for q, k, v in parts]
    return query._like(_joined(made).transpose(0, 1))


def _joined(parts: list[Any]) -> Any:
    return cat([part.transpose(0, 1) for part in parts])


def _attended(query: Any, key: Any, long: int, wide: int, is_causal: bool) -> Any:
    """Which keys each query of a padded batch sees."""
    device = query.device

    def make(offsets: np.ndarray) -> Any:
        lengths = np.diff(offsets)[:, None, None, None]
        seen = np.arange(wide) < lengths
        if is_causal:
            seen = seen & np.tril(np.ones((long, wide), bool))
        return placed(np.broadcast_to(seen, (len(lengths), 1, long, wide)), device)

    return planned(("attended", long, wide, is_causal), make, key._offsets)


def _check_attention(query: Any, key: Any, value: Any, attn_mask: Any) -> None:
    given = query, key, value
    if not all(is_jagged(t) for t in given):
        a, b, c = (t.is_nested for t in given)
        raise ValueError(
            "Expected query, key, and value to be nested tensors, but got "
            f"query.is_nested: {a}, key.is_nested: {b}, and value.is_nested: {c} "
            "instead."
        )
    for what, words in (("dtype", "dtype"), ("device", "device type")):
        a, b, c = (getattr(t, what) for t in given)
        if not a == b == c:
            raise ValueError(
                f"Expected query, key, and value to have the same {words}, but got "
                f"query.{what}: {a}, key.{what}: {b}, and value.{what}: {c} instead."
            )
    a, b, c = (t.dim() for t in given)
    if min(a, b, c) < 3:
        raise ValueError(
            "Expected query, key, and value to all be at least 3 dimensional, but got "
            f"query.dim: {a}, key.dim: {b} and value.dim: {c} instead."
        )
    a, b, c = (t._ragged_idx for t in given)
    if not a == b == c:
        raise ValueError(
            "Expected query, key, and value to all be ragged on the same dimension, "
            f"but got ragged dims {a}, {b}, and {c}, respectively."
        )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
