"""What PyTorch calls the kernels of attention, which programs compare with another."""

from __future__ import annotations

from typing import Any

from torchshim._core import dtypes
from torchshim._derived import fns, public
from torchshim._functions.nn_attention import (
    check_kernels,
    dropout_mask_for,
    is_fused,
    sdp_switches,
)
from torchshim._functions.ranges import eye
from torchshim._structseq import structseq
from torchshim._tensor import Tensor

_Flash = structseq(
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
    return _Flash((output, fns.logsumexp(scores, -1).detach()))
