"""Attention with scores and masks as functions: `torch.nn.attention.flex_attention`.

Computed densely: functions are mapped over all scores, blocks save no work; XLA fuses
the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import torchshim
from torchshim._functions._arguments import warn_once
from torchshim._tensor import Tensor
from torchshim.nn.attention._block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE,
)
from torchshim.nn.attention._block_mask import (
    BlockMask,
    and_masks,
    applied,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    sliced_mask_mod,
)
from torchshim.nn.attention._block_mask import (
    _get_mod_type as _get_mod_type,
)
from torchshim.nn.attention._block_mask import (
    _ModificationType as _ModificationType,
)
from torchshim.nn.attention._block_mask import (
    _vmap_for_bhqkv as _vmap_for_bhqkv,
)

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

# What published code annotates its functions with.
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
# The block size of a mask that serves every length.
_ANY_LENGTH = 1 << 30


def _identity(
    score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor
) -> Tensor:
    """The scores as they are."""
    return score


class FlexKernelOptions(TypedDict, total=False):
    """Hints for PyTorch's kernels: there are none here to take them."""


class AuxRequest(NamedTuple):
    """What else `flex_attention` is to give."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for: logarithms of the sums of exponentials, maxima of scores."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, gqa: bool) -> None:
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, but got "
            f"query.device: {query.device}, key.device: {key.device}, and "
            f"value.device: {value.device} instead."
        )
    dims = query.dim(), key.dim(), value.dim()
    if min(dims) < 2:
        raise ValueError(
            "Expected query, key, and value to all be  at least 2 dimensional, but "
            f"got query.dim: {dims[0]}, key.dim: {dims[1]} and value.dim: {dims[2]} "
            "instead."
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    if dims != (4, 4, 4):
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    check_heads(query.size(-3), key.size(-3), gqa)


def check_heads(heads: int, given: int, gqa: bool) -> None:
    """Raises where so many heads of queries do not go with those `given` of keys."""
    if not gqa and heads != given:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={given}. Try setting enable_gqa=True for GQA."
        )
    if gqa and heads % given:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={given}."
        )


def _check_blocks(query: Tensor, key: Tensor, block_mask: BlockMask | None) -> None:
    batch, given = query.size(0), key.size(0)
    if batch != given:
        if block_mask is None:
            raise ValueError(
                "Expect query and key/value to have the same batch size, or non-none "
                f"block_mask, but got block_mask=None, Bq={batch}, and Bkv={given}."
            )
        blocks = block_mask.kv_num_blocks.size(0)
        if blocks != batch:
            raise ValueError(
                "Expect query and key/value to have the same batch size, or block_mask "
                f"and query to have the same batch size, but got Bq={batch}, "
                f"Bkv={given}, B_block_mask={blocks}."
            )
    if block_mask is None:
        return
    if block_mask.mask_mod is sliced_mask_mod:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if block_mask.BLOCK_SIZE == (_ANY_LENGTH, _ANY_LENGTH):
        return
    lengths, known = (query.size(-2), key.size(-2)), block_mask.shape[-2:]
    if lengths != tuple(known):
        smaller = lengths[0] > known[0] or lengths[1] > known[1]
        advice = (
            "likely need to create a new block mask."
            if smaller
            else "can either 1. create a new block mask with the correct length, or "
            "2. 'adjust' the existing block mask to the correct length by calling "
            "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block "
            "mask to the upper left corner, which does not work for all mask_mods!"
        )
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got "
            f"q_len={lengths[0]} and kv_len={lengths[1]}. As the block mask was "
            f"created for a {'smaller' if smaller else 'larger'} length than you're "
            f"using it for, you {advice}"
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention whose scores go through `score_mod(score, b, h, q_idx, kv_idx)`.

    Inputs of shape (batch, heads, steps, features). Of `block_mask`, the function
    decides what is hidden. `kernel_options` are hints and change no result. Unlike
    PyTorch's, gradients flow on the CPU too. Follows
    ``torch.nn.attention.flex_attention.flex_attention``.

    >>> import torchshim as torch
    >>> x = torch.ones(1, 1, 2, 4)
    >>> def causal(score, b, h, q_idx, kv_idx):
    ...     return torch.where(q_idx >= kv_idx, score, -float("inf"))
    >>> flex_attention(x, x, x, score_mod=causal).shape
    torch.Size([1, 1, 2, 4])
    """
    _check_shapes(query, key, value, enable_gqa)
    _check_blocks(query, key, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, "
            "please use return_aux=AuxRequest(lse=True) instead."
        )
    groups = query.size(1) // key.size(1)
    if groups != 1:
        key = torchshim.repeat_interleave(key, groups, dim=1)
        value = torchshim.repeat_interleave(value, groups, dim=1)
    wide = torchshim.float64 if query.dtype == torchshim.float64 else torchshim.float32
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = query.to(wide) @ key.to(wide).transpose(-2, -1) * factor
    shape, device = tuple(scores.shape), scores.device
    if score_mod is not None:
        scores = applied(score_mod, shape, device, scores).to(wide)
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        allowed = applied(block_mask.mask_mod, shape, device)
        scores = torchshim.where(allowed, scores, -math.inf)
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    weights = torchshim.softmax(torchshim.masked_fill(scores, hidden, 0.0), -1)
    weights = torchshim.masked_fill(weights, hidden, 0.0)
    output = weights.to(query.dtype) @ value.to(query.dtype)
    if not return_lse and return_aux is None:
        return output
    if return_lse:
        warn_once(
            "return_lse is deprecated and will be removed in v2.10. Please use "
            "return_aux=AuxRequest(lse=True) instead.",
            category=FutureWarning,
        )
        return output, torchshim.logsumexp(scores, -1)
    assert return_aux is not None
    lse = torchshim.logsumexp(scores, -1) if return_aux.lse else None
    maxima = scores.amax(-1) if return_aux.max_scores else None
    return output, AuxOutput(lse, maxima)
