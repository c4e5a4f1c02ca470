"""Products, layers and attention of nested tensors of layout strided."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._functions.nested_nodes import named
from torchshim._functions.nested_strided import (
    Arrangement,
    check_contiguous,
    columns,
    contiguous,
    from_padded,
    greatest,
    handles,
    is_strided,
    refuse,
    strided,
    to_padded,
)
from torchshim._functions.nn_attention import no_kernel, sdp_switches
from torchshim._tensor import Tensor

# Products -----------------------------------------------------------------------------


def _product(a: Any, b: Any, rows: Any, inner: tuple[Any, Any], width: Any) -> Any:
    """The products of padded matrices, as a nested tensor of the true sizes."""
    for i, (left, right) in enumerate(zip(*inner, strict=True)):
        if left != right:
            sizes = f"{rows[i]}x{left} and {right}x{width[i]}"
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied ({sizes})"
            )
    depth = max(inner[0], default=0)
    left = to_padded(a, 0, (max(rows), depth)) if is_strided(a) else a
    right = to_padded(b, 0, (depth, max(width))) if is_strided(b) else b
    sizes = np.stack([np.array(rows), np.array(width)], 1)
    return from_padded(left.matmul(right), Arrangement(sizes), "Bmm")


def _matrices(tensor: Any) -> tuple[list[int], list[int]]:
    """The rows and columns of each matrix of a batch."""
    if is_strided(tensor):
        first, second = tensor._arrangement.sizes.T[-2:].tolist()
        return first, second
    count, rows, width = tensor.shape
    return [rows] * count, [width] * count


@handles("bmm")
def bmm(func: Any, input: Any, mat2: Any, **options: Any) -> Any:
    """As `torch.bmm`: the product of each two matrices."""
    for at, given in ((1, input), (2, mat2)):
        if given.dim() != 3:
            raise RuntimeError(f"batch{at} must be a 3D tensor")
    (rows, left), (right, width) = _matrices(input), _matrices(mat2)
    if len(rows) != len(right):
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 tensor to be: {len(rows)} "
            f"but got: {len(right)}."
        )
    return _product(input, mat2, rows, (left, right), width)


@handles("matmul", "__matmul__")
def matmul(func: Any, input: Any, other: Any) -> Any:
    """As `torch.matmul`, of two nested tensors."""
    if not is_strided(input) or not is_strided(other):
        words = ["nested" if is_strided(x) else "non-nested" for x in (input, other)]
        raise RuntimeError(
            f"Expected both to be nested, but got a {words[0]} self and {words[1]} "
            "other"
        )
    a, b = input._arrangement, other._arrangement
    for which, rank in (("1st", a.ndim + 1), ("2nd", b.ndim + 1)):
        if rank < 3:
            raise RuntimeError(
                "matmul: For nested tensors, only inputs with >= 3 dims are currently "
                f"supported. {which} input has rank: {rank}"
            )
    if a.ndim != b.ndim:
        raise RuntimeError("matmul: both inputs must have the same rank")
    if len(a.sizes) != len(b.sizes):
        raise RuntimeError(
            "matmul: Expected size for the 1st dimension of 2nd input tensor to be: "
            f"{len(a.sizes)} but got: {len(b.sizes)}."
        )
    if (a.sizes[:, -1] != b.sizes[:, -2]).any():
        raise RuntimeError(
            "matmul: Nested tensors cannot be matrix multiplied, last dimension of "
            f"self has sizes{_listed(a.sizes[:, -1])}second last dimension of mat2 has "
            f"sizes{_listed(b.sizes[:, -2])}"
        )
    if (a.sizes[:, :-2] != b.sizes[:, :-2]).any():
        raise RuntimeError(
            "matmul: For nested tensors, batch dimensions must have the same sizes"
        )
    rows, width = greatest(input), greatest(other)
    lead, depth = rows[:-2], int(a.sizes[:, -1].max(initial=0))
    left = to_padded(input, 0, (*lead, rows[-2], depth))
    right = to_padded(other, 0, (*lead, depth, width[-1]))
    sizes = columns(a, *a.sizes.T[:-1], b.sizes[:, -1])
    return from_padded(left.matmul(right), Arrangement(sizes), "Matmul")


def _listed(numbers: Any) -> str:
    lines = "".join(f" {n}\n" for n in numbers.tolist())
    return f"{lines}[ torch.LongTensor{{{len(numbers)}}} ]"


# Layers -------------------------------------------------------------------------------


def _width(tensor: Any) -> int:
    """The length of the last dimension, which all tensors have in common."""
    found = tensor._arrangement.common(-1)
    if found < 0:
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing "
            "dimension, instead last dimension equals: "
            f"{_listed(tensor._arrangement.sizes[:, -1])}"
        )
    return found


@handles("linear")
def linear(func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """As `nn.functional.linear`."""
    check_contiguous(input, "for now linear only supports contiguous nested tensor")
    if (input.dim(), weight.dim()) != (3, 2):
        raise RuntimeError(
            "Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested "
            f"tensor dim: {input.dim()}. Dense tensor dim: {weight.dim()}"
        )
    width = _width(input)
    if weight.shape[1] != width:
        raise RuntimeError(
            "Shape mismatch for NestedTensor Linear: Expected input's (a nested "
            f"tensor) 'last_dim' to equal 'weight.size(1), but got: "
            f"last_dim = {width}, and weight.size(1) = {weight.shape[1]}"
        )
    input = contiguous(input)
    made = func(input._v.view(-1, width), weight, bias).reshape(-1)
    laid = input._arrangement
    sizes = columns(laid, *laid.sizes.T[:-1], weight.shape[0])
    return strided(named(made, "Linear"), Arrangement(sizes))


@handles("layer_norm")
def layer_norm(
    func: Any,
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """As `nn.functional.layer_norm`, with a weight and a bias."""
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    shape, laid = tuple(normalized_shape), input._arrangement
    for at, length in enumerate(shape):
        common = laid.common(laid.ndim - len(shape) + at)
        if common < 0:
            raise RuntimeError(
                "normalized_shape extends into irregular dimensions for the nested "
                "tensor"
            )
        if common != length:
            raise RuntimeError(
                f"The shape at dimension {at}of normalized_shape doesn't match the "
                "input"
            )
    input = contiguous(input)
    made = func(input._v.view(-1, *shape), shape, weight, bias, eps)
    return input._like(named(made.reshape(-1), "NativeLayerNorm"))


@handles("embedding")
def embedding(func: Any, input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """As `nn.functional.embedding`, of nested indices."""
    input = contiguous(input)
    made = func(input._v, weight, *args, **kwargs)
    laid = input._arrangement
    sizes = columns(laid, *laid.sizes.T, weight.shape[1])
    return strided(made.reshape(-1), Arrangement(sizes))


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
    if not all(is_strided(t) for t in (query, key, value)):
        refuse("scaled_dot_product_attention of nested tensors and others")
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Nested tensors for query / key are not "
            "supported when is_causal=True"
        )
    _choice(func, query)
    if attn_mask is not None or dropout_p or enable_gqa:
        refuse("scaled_dot_product_attention with a mask, dropout or enable_gqa")
    long, wide = greatest(query), greatest(key)
    deep = max(long[-1], wide[-1])
    rows = to_padded(query, 0, (*long[:-1], deep))
    keys = to_padded(key, 0, (*wide[:-1], deep))
    values = to_padded(value, 0, (*wide[:-1], greatest(value)[-1]))
    made = func(rows, keys, values, seen(key, rows.ndim), scale=scale)
    laid = query._arrangement
    sizes = columns(laid, *laid.sizes.T[:-1], value._arrangement.sizes[:, -1])
    return from_padded(made, Arrangement(sizes))


def _choice(func: Any, query: Any, *args: Any, **kwargs: Any) -> int:
    """The number of the one kernel that PyTorch has for these on the CPU."""
    if query.device.type == "cpu" and not sdp_switches["math"]:
        raise no_kernel(sdp_switches["flash"])
    return 0


handles("_fused_sdp_choice")(_choice)


def seen(key: Any, ndim: int) -> Any:
    """Which keys of a padded batch there are, for all heads and queries."""
    laid = key._arrangement

    def make() -> np.ndarray:
        lengths = laid.sizes[:, -2]
        there = np.arange(lengths.max(initial=0)) < lengths[:, None]
        return there.reshape(len(lengths), *(1 for _ in range(ndim - 2)), -1)

    return laid.planned(("seen", ndim), key.device, make)


def lengths_mask(tensor: Any) -> Any:
    """Which steps of a padded batch of sequences are padding."""
    laid = tensor._arrangement

    def make() -> np.ndarray:
        lengths = laid.sizes[:, 0]
        return np.arange(lengths.max(initial=0)) >= lengths[:, None]

    return laid.planned("padding", tensor.device, make)


def through_padded(layer: Any, tensor: Any) -> Any:
    """A function of a padded batch and the mask of its padding, of a nested one."""
    made = layer(to_padded(tensor, 0.0), lengths_mask(tensor))
    laid = Arrangement(tensor._arrangement.sizes)
    if isinstance(made, Tensor):
        return from_padded(made, laid)
    first, *rest = made
    return from_padded(first, laid), *rest


_MASKED = "NestedTensor with mask is not supported yet"


@handles("_native_multi_head_attention")
def native_attention(
    func: Any,
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    """As of tensors that are padded; weights of what is padding are zero."""
    parameters = num_head, qkv_weight, qkv_bias, proj_weight, proj_bias
    if mask is not None:
        raise RuntimeError(_MASKED)
    if not all(is_strided(t) for t in (query, key, value)):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")

    def padded(rows: Any, padding: Any) -> Any:
        same = query is key is value
        others = (rows, rows) if same else (to_padded(key, 0.0), to_padded(value, 0.0))
        options = lengths_mask(key), need_weights, average_attn_weights, 1
        made, weights = func(rows, *others, embed_dim, *parameters, *options)
        if weights is None:
            return made, None
        unseen = padding[:, :, None]
        unseen = unseen if average_attn_weights else unseen[:, None]
        return made, weights.masked_fill(unseen, 0.0)

    return through_padded(padded, query)


@handles("_transform_bias_rescale_qkv")
def rescaled(func: Any, qkv: Any, qkv_bias: Any, num_heads: int) -> Any:
    """As of a tensor that is padded with zeros."""
    return func(to_padded(qkv, 0.0), qkv_bias, num_heads)


@handles("_transformer_encoder_layer_fwd")
def encoder_layer(
    func: Any, src: Any, *args: Any, mask: Any = None, **named: Any
) -> Any:
    """As of a tensor that is padded."""
    if mask is not None or (args[17:] and args[17] is not None):
        raise RuntimeError(_MASKED)
    named["mask_type"] = 1

    def padded(rows: Any, padding: Any) -> Any:
        return func(rows, *args[:17], mask=padding, **named)

    return through_padded(padded, src)
