"""What PyTorch calls the kernels of attention, which programs compare with another."""

from __future__ import annotations

import math
from typing import Any

from torchshim._autocast import autocast_whole
from torchshim._core import dtypes
from torchshim._derived import fns, public
from torchshim._functions.creation import empty_like
from torchshim._functions.nn_attention import (
    check_kernels,
    dropout_mask_for,
    is_fused,
    sdp_switches,
)
from torchshim._functions.ranges import eye
from torchshim._structseq import structseq
from torchshim._tensor import Tensor

Flash = structseq(
    "_scaled_dot_product_flash_attention_for_cpu", ("output", "logsumexp")
)
_NAMESPACES = ("torch", "ops.aten")


@public(namespaces=_NAMESPACES)
def _fused_sdp_choice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> int:
    """Which kernel PyTorch takes on the CPU, as a number of `SDPBackend`.

    >>> import torchshim as torch
    >>> q = torch.ones(1, 1, 2, 2)
    >>> torch._fused_sdp_choice(q, q, q), torch._fused_sdp_choice(q, q, q, None, 0.5)
    (1, 0)
    """
    if not dropout_p and query.dtype.is_floating_point:
        if is_fused(query, key, value, attn_mask, enable_gqa):
            return 1
    if not sdp_switches["math"]:
        check_kernels(query, key, value, attn_mask, dropout_p, enable_gqa)
    return 0


@public(namespaces=_NAMESPACES)
def _scaled_dot_product_attention_math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attention and its weights; a mask is added to the scores, a bool one too.

    >>> import torchshim as torch
    >>> q = torch.ones(1, 2, 2)
    >>> torch._scaled_dot_product_attention_math(q, q, q)[1]
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    if attn_mask is not None and attn_mask.dtype is dtypes.bool_:
        attn_mask = attn_mask.to(query.dtype)
    if dropout_mask is None:
        dropout_mask = dropout_mask_for(query, key, dropout_p)
    given = attn_mask, float(dropout_p), is_causal, scale, enable_gqa, dropout_mask
    # Each key's share of the unit vectors is its weight.
    length = key.size(-2)
    units = eye(length, dtype=value.dtype, device=value.device)
    units = units.expand(*value.shape[:-2], length, length)
    return (
        fns.attention(query, key, value, *given),
        fns.attention(query, key, units, *given),
    )


@public(namespaces=_NAMESPACES)
def _scaled_dot_product_flash_attention_for_cpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention, and the logarithm of the sum that each query's softmax divides by.

    >>> import torchshim as torch
    >>> q = torch.zeros(1, 1, 2, 2)
    >>> torch._scaled_dot_product_flash_attention_for_cpu(q, q, q)[1]
    tensor([[[0.6931, 0.6931]]])
    """
    name = "scaled_dot_product_attention_flash_attention"
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise RuntimeError(f"{name}: Accept only 4 dims inputs shape of {{B, H, T, K}}")
    if dropout_p:
        raise RuntimeError(f"{name}: Currently do not support dropout > 0")
    if attn_mask is not None and attn_mask.dtype is not query.dtype:
        raise RuntimeError(f"{name}: Attention mask is the same data type as query")
    output = fns.fused_attention(query, key, value, attn_mask, is_causal, scale)
    q, k = (each.float() if each.dtype.itemsize < 4 else each for each in (query, key))
    factor = query.size(-1) ** -0.5 if scale is None else scale
    scores = fns.matmul(q * factor, k.transpose(-2, -1))
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        hidden = fns.triu(scores.new_ones(scores.shape[-2:], dtype=dtypes.bool_), 1)
        scores = fns.masked_fill(scores, hidden, -float("inf"))
    return Flash((output, fns.logsumexp(scores, -1).detach()))


# Inference of whole layers ------------------------------------------------------------


@public(namespaces=_NAMESPACES)
def _transform_bias_rescale_qkv(
    qkv: Tensor, qkv_bias: Tensor, num_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, which are scaled, keys and values, of all heads, out of one product.

    That is of shape (B, L, 3 * D), they of (B, num_heads, L, D / num_heads).

    >>> import torchshim as torch
    >>> qkv, bias = torch.ones(1, 1, 12), torch.ones(12)
    >>> q, k, v = torch._transform_bias_rescale_qkv(qkv, bias, 1)
    >>> q, k
    (tensor([[[[1., 1., 1., 1.]]]]), tensor([[[[2., 2., 2., 2.]]]]))
    """
    batch, length, _ = qkv.size(0), qkv.size(1), qkv.size(2)
    width = qkv_bias.size(0) // 3
    if width % num_heads:
        raise RuntimeError(
            "Expected D % num_head == 0 to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to "
            "PyTorch.)"
        )
    deep = width // num_heads
    biased = (qkv + qkv_bias).view(batch, length, 3, num_heads, deep)
    q, k, v = biased.permute(2, 0, 3, 1, 4).contiguous().unbind(0)
    return q / math.sqrt(deep), k, v


@public(namespaces=_NAMESPACES)
@autocast_whole("_native_multi_head_attention")
def _native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """What `nn.MultiheadAttention` computes in inference: the result and the weights.

    `query`, `key` and `value` are of shape (B, L, embed_dim), or nested. `mask` says
    what is left out: scores (`mask_type` 0), keys (1), or scores of each head (2).

    >>> import torchshim as torch
    >>> x, w, b = torch.ones(1, 2, 2), torch.ones(6, 2), torch.zeros(6)
    >>> torch._native_multi_head_attention(x, x, x, 2, 1, w, b, torch.eye(2), b[:2])
    (tensor([[[2., 2.],
             [2., 2.]]]), tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]]))
    """
    _check_projections(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    if query is key is value:
        qkv = fns.linear(query, qkv_weight)
    else:
        weights = qkv_weight.chunk(3)
        given = zip((query, key, value), weights, strict=True)
        qkv = fns.cat([fns.linear(x, weight) for x, weight in given], 2)
    if not qkv.numel():
        return empty_like(query), None
    q, k, v = _transform_bias_rescale_qkv(qkv, qkv_bias, num_head)
    scores = fns.matmul(q, k.transpose(-2, -1))
    if mask is None:
        weights = fns.softmax(scores, -1)
    else:
        weights = fns._masked_softmax(scores, mask.to(dtypes.bool_), 3, mask_type)
    rows = fns.matmul(weights, v).transpose(1, 2).reshape(-1, embed_dim)
    projected = fns.addmm(proj_bias, rows, proj_weight.t())
    result = projected.view(*query.shape[:2], -1)
    if not need_weights:
        return result, None
    return result, weights.sum(1) / num_head if average_attn_weights else weights


def _check_projections(
    query: Any, key: Any, value: Any, width: int, heads: int, weight: Any, bias: Any
) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {tensor.dim()}-D tensor")
        if name == "query" and tensor.size(2) != width:
            raise RuntimeError(
                f"passed-in embed_dim {width} didn't match last dim of query "
                f"{tensor.size(2)}"
            )
    if not query.shape == key.shape == value.shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    for name, tensor, ndim in (("qkv_weight", weight, 2), ("qkv_bias", bias, 1)):
        if tensor.dim() != ndim:
            raise RuntimeError(
                f"expected {ndim}-D `{name}`, got {tensor.dim()}-D tensor"
            )
        if name == "qkv_weight" and tensor.size(0) != 3 * width:
            raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
        if name == "qkv_weight" and tensor.size(1) != width:
            raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if bias.size(0) != 3 * width:
        raise RuntimeError(
            "expected `qkv_bias` first dim and first dim of query to be equal"
        )
    if width % heads:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


@public(namespaces=_NAMESPACES)
def _transformer_encoder_layer_fwd(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """What `nn.TransformerEncoderLayer` computes in inference.

    >>> import torchshim as torch
    >>> x, one, zero = torch.tensor([[[1.0, 2.0]]]), torch.ones(2), torch.zeros(2)
    >>> w = torch.eye(2)
    >>> torch._transformer_encoder_layer_fwd(
    ...     x, 2, 1, w.repeat(3, 1), zero.repeat(3), w, zero, False, False, 0.0,
    ...     one, zero, one, zero, w, zero, w, zero)
    tensor([[[-1.,  1.]]])
    """

    def first(x: Tensor) -> Any:
        return fns.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: Tensor) -> Any:
        return fns.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def fed(x: Tensor) -> Any:
        x = fns.linear(x, ffn_weight_1, ffn_bias_1)
        x = fns.gelu(x) if use_gelu else fns.relu(x)
        return fns.linear(x, ffn_weight_2, ffn_bias_2)

    if not src.numel():
        return src.clone()
    x = first(src) if norm_first else src
    projections = qkv_weight, qkv_bias, proj_weight, proj_bias
    options = mask, False, True, mask_type
    attended, _ = _native_multi_head_attention(
        *(x, x, x, embed_dim, num_heads), *projections, *options
    )
    x = _onto(attended, src)
    if norm_first:
        return _onto(fed(second(x)), x)
    x = first(x)
    return second(_onto(fed(x), x))


def _onto(x: Tensor, other: Tensor) -> Any:
    """Their sum in the dtype of `x`, which autocast may have made another one."""
    return (x + other).to(x.dtype)
