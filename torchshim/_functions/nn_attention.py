"""Attention of `nn.functional`: of single heads, and of several with projections."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from torchshim import _warnings as warnings
from torchshim._core import dtypes
from torchshim._core.meta import Meta
from torchshim._core.random import engine_of
from torchshim._derived import fns
from torchshim._functions.creation import zeros, zeros_like
from torchshim._functions.draws import Draw, drawn
from torchshim._tensor import Tensor

# The kernels that users allow: `torch.backends.cuda`, `nn.attention.sdpa_kernel`.
sdp_switches = {
    "cudnn": True,
    "flash": True,
    "mem_efficient": True,
    "math": True,
    "overrideable": True,
    "fp16_bf16_reduction": False,
}


def check_kernels(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    enable_gqa: bool,
) -> None:
    """PyTorch's errors where the only kernel for all arguments is not allowed."""
    if query.device.type != "cpu":
        names = "cudnn", "flash", "mem_efficient", "overrideable"
        found = fits = any(sdp_switches[name] for name in names)
    else:
        found = sdp_switches["flash"]
        fused = is_fused(query, key, value, attn_mask, enable_gqa, alone=True)
        fits = not dropout_p and query.dtype.is_floating_point and fused
    if not (found and fits):
        raise no_kernel(found)


def no_kernel(found: bool) -> RuntimeError:
    """PyTorch's error where no kernel is allowed, or none that is `found` fits."""
    if found:
        return RuntimeError("No available kernel.  Aborting execution.")
    return RuntimeError(
        "No viable backend for scaled_dot_product_attention was found. This is "
        "likely due to turning off both the math kernel and the fused kernels."
    )


def is_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    enable_gqa: bool,
    alone: bool = False,
) -> bool:
    """Whether PyTorch computes it by one kernel, if there is no dropout.

    `alone`: where no other is allowed, it takes more.
    """
    given = (query, key, value) if mask is None else (query, key, value, mask)
    if not all(isinstance(each, Tensor) for each in given):
        return False
    q, k, v = query._tmeta, key._tmeta, value._tmeta
    if not len(q.shape) == len(k.shape) == len(v.shape) == 4:
        return False
    batch, heads, length, width = q.shape
    groups = k.shape[1]
    return (
        k.shape == v.shape
        and (batch, width) == (k.shape[0], k.shape[3])
        and (heads == groups or (enable_gqa and groups > 0 and heads % groups == 0))
        and (alone or 0 not in (length, k.shape[2]))
        and q.strides[3] == k.strides[3] == v.strides[3] == 1
        and (
            mask is None
            or _fits(mask._tmeta, (batch, heads, length, k.shape[2]), alone)
        )
        and q.device.type != "meta"
        and sdp_switches["flash"]
    )


def _fits(mask: Meta, shape: tuple[int, ...], alone: bool) -> bool:
    """Whether the kernel takes a mask for scores of this shape."""
    return (
        len(mask.shape) in (2, 4)
        and all(
            size in (1, full)
            for size, full in zip(mask.shape[::-1], shape[::-1], strict=False)
        )
        and (alone or mask.strides[-1] == 1)
        and not mask.requires_grad
    )


def dropout_mask_for(query: Tensor, key: Tensor, dropout_p: float) -> Tensor | None:
    """Which weights are kept; None where all are."""
    if dropout_p > 1:
        raise RuntimeError(
            f"dropout probability has to be between 0 and 1, but got {dropout_p:g}"
        )
    if dropout_p <= 0:
        return None
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    shape = (*batch, query.size(-2), key.size(-2))
    engine = engine_of(None, "dropout", query.device)
    draw = Draw("bernoulli", (1 - float(dropout_p),))
    return drawn(draw, shape, dtypes.bool_, query.device, engine)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Values averaged by how well their keys match each query.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.scaled_dot_product_attention.html

    >>> import torchshim as torch
    >>> q, v = torch.zeros(1, 1, 2), torch.tensor([[[1.0], [3.0]]])
    >>> torch.nn.functional.scaled_dot_product_attention(q, torch.ones(1, 2, 2), v)
    tensor([[[2.]]])
    """
    if attn_mask is not None and attn_mask.__class__ is not Tensor:
        bias = getattr(attn_mask, "_as_attn_mask", None)
        if bias is not None:
            attn_mask, is_causal = bias(query.device, is_causal)
    if not sdp_switches["math"]:
        check_kernels(query, key, value, attn_mask, dropout_p, enable_gqa)
    if dropout_p == 0 and is_fused(query, key, value, attn_mask, enable_gqa):
        return fns.fused_attention(query, key, value, attn_mask, is_causal, scale)
    if enable_gqa and query.size(-3) % max(key.size(-3), 1):
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in "
        )
    mask = dropout_mask_for(query, key, dropout_p)
    return fns.attention(
        query,
        key,
        value,
        attn_mask,
        float(dropout_p),
        is_causal,
        scale,
        enable_gqa,
        mask,
    )


# Arguments of several heads ----------------------------------------------------------


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether the inputs have a batch dimension; raises where they do not agree."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{dims}-D query tensor"
        )
    which = f"For {'batched' if dims == 3 else 'unbatched'} ({dims}-D) `query`"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"{which}, expected `key` and `value` to be {dims}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"{which}, expected `key_padding_mask` to be `None` or {dims - 1}-D but "
            f"found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"{which}, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if dims == 2 and attn_mask.dim() == 3:
            expected = num_heads, query.shape[0], key.shape[0]
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {expected} but got "
                    f"{attn_mask.shape}"
                )
    return dims == 3


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """A mask to be added to scores: where a bool one is True, minus infinity."""
    if mask is None:
        return None
    is_float = mask.dtype.is_floating_point
    if mask.dtype is not dtypes.bool_ and not is_float:
        raise AssertionError(
            f"only bool and floating types of {mask_name} are supported"
        )
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use "
            "same type for both instead.",
            stacklevel=2,
        )
    if is_float:
        return mask
    return fns.masked_fill(zeros_like(mask, dtype=target_type), mask, -math.inf)


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a tensor; None for None."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _check_key_padding_mask(mask: Any, src_len: int, bsz: int) -> None:
    for dim, expected in enumerate((bsz, src_len)):
        if mask.shape[dim] != expected:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got "
                f"{mask.shape[dim]}"
            )


def _functional(name: str) -> Callable[..., Any]:
    """A function of `torch.nn.functional`, or what a script has put in its place."""
    return getattr(sys.modules["torchshim.nn.functional"], name)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by one weight for all three, in as few products."""
    width = q.size(-1)
    linear = _functional("linear")
    if k is v and q is k:
        return tuple(linear(q, w, b).chunk(3, -1))
    if k is v:
        w_q, w_kv = w.split([width, width * 2])
        b_q, b_kv = (None, None) if b is None else b.split([width, width * 2])
        keys, values = linear(k, w_kv, b_kv).chunk(2, -1)
        return linear(q, w_q, b_q), keys, values
    weights = w.chunk(3)
    biases = (None,) * 3 if b is None else b.chunk(3)
    triples = zip((q, k, v), weights, biases, strict=True)
    return tuple(linear(*each) for each in triples)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by a weight for each."""
    width = q.size(-1)
    named = (("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v))
    for name, x, weight, _ in named:
        expected = width, x.size(-1)
        if tuple(weight.shape) != expected:
            raise AssertionError(
                f"expecting {name} weights shape of {expected}, but got {weight.shape}"
            )
    for name, _, _, bias in named:
        if bias is not None and tuple(bias.shape) != (width,):
            raise AssertionError(
                f"expecting {name} bias shape of {(width,)}, but got {bias.shape}"
            )
    linear = _functional("linear")
    return tuple(linear(x, weight, bias) for _, x, weight, bias in named)


def _check_attn_mask(mask: Tensor, two: tuple[int, ...], three: tuple[int, ...]) -> Any:
    """The mask with three dimensions, or PyTorch's error about its shape."""
    if mask.dim() not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    expected = two if mask.dim() == 2 else three
    if tuple(mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be "
            f"{expected}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _check_biases(bias_k: Any, bias_v: Any, static_k: Any, static_v: Any) -> bool:
    """Whether there are biases to add as one more key and value."""
    if bias_k is None and bias_v is None:
        return False
    for name, bias, other in (("k", bias_k, bias_v), ("v", bias_v, bias_k)):
        if bias is not None and other is None:
            missing = "v" if name == "k" else "k"
            raise AssertionError(f"bias_{name} is set but bias_{missing} is None")
    if static_k is not None:
        raise AssertionError("bias cannot be added to static key.")
    if static_v is not None:
        raise AssertionError("bias cannot be added to static value.")
    return True


def _as_heads(
    x: Tensor, static: Tensor | None, name: str, heads: int, width: int
) -> Any:
    """(steps, batch, features) as (batch * heads, steps, features of a head)."""
    if static is None:
        return x.reshape(x.size(0), heads, width).transpose(0, 1)
    for dim, expected in ((0, heads), (2, width)):
        if static.size(dim) != expected:
            raise AssertionError(
                f"expecting static_{name}.size({dim}) of {expected}, but got "
                f"{static.size(dim)}"
            )
    return static


def _check_embedding(
    query: Tensor, key: Tensor, value: Tensor, expected: int, heads: int, apart: bool
) -> int:
    """The width of a head."""
    embed_dim = query.size(-1)
    if embed_dim != expected:
        raise AssertionError(
            f"was expecting embedding dimension of {expected}, but got {embed_dim}"
        )
    if embed_dim // heads * heads != embed_dim:
        raise AssertionError(
            f"embed_dim {embed_dim} not divisible by num_heads {heads}"
        )
    if apart and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's "
            f"{value.shape[:2]}"
        )
    if not apart and key.shape != value.shape:
        raise AssertionError(
            f"key shape {key.shape} does not match value shape {value.shape}"
        )
    return embed_dim // heads


def _separate_weights(*given: Tensor | None) -> list[Tensor]:
    """The weights of queries, keys and values, none of which may be missing."""
    weights: list[Tensor] = []
    for name, weight in zip("qkv", given, strict=True):
        if weight is None:
            raise AssertionError(
                f"use_separate_proj_weight is True but {name}_proj_weight is None"
            )
        weights.append(weight)
    return weights


def _attention_weights(
    q: Any, k: Any, attn_mask: Tensor | None, dropout_p: float
) -> Tensor:
    """What each query takes of each value."""
    scores = q * math.sqrt(1.0 / float(q.size(-1)))
    if attn_mask is None:
        scores = fns.bmm(scores, k.transpose(-2, -1))
    else:
        scores = fns.baddbmm(attn_mask, scores, k.transpose(-2, -1))
    weights = _functional("softmax")(scores, dim=-1)
    if dropout_p > 0.0:
        weights = _functional("dropout")(weights, p=dropout_p)
    return weights


def _for_heads(key_padding_mask: Any, num_heads: int) -> Tensor:
    """(batch, steps) as (batch * heads, 1, steps)."""
    bsz, src_len = key_padding_mask.shape
    mask = key_padding_mask.reshape(bsz, 1, 1, src_len)
    return mask.expand(-1, num_heads, -1, -1).reshape(bsz * num_heads, 1, src_len)


def _by_head(attn_mask: Any, bsz: int, num_heads: int) -> Tensor:
    """(1, 1, steps, steps) for all, or a mask for each head of each batch."""
    if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
        return attn_mask.unsqueeze(0)
    return attn_mask.reshape(bsz, num_heads, *attn_mask.shape[-2:])


def _one_more(x: Any, bias: Any, bsz: int) -> Tensor:
    """Keys or values and, as their last step, the bias of each batch."""
    return fns.cat([x, bias.repeat(1, bsz, 1)])


def _masks(
    query: Tensor,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    is_causal: bool,
    need_weights: bool,
) -> tuple[Tensor | None, Tensor | None, bool]:
    """Both masks as numbers to add, and whether causality stands for the first."""
    key_padding_mask = _canonical_mask(
        key_padding_mask,
        "key_padding_mask",
        _none_or_dtype(attn_mask),
        "attn_mask",
        query.dtype,
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the "
            "Transformer module method `generate_square_subsequent_mask` to create "
            "this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
    return attn_mask, key_padding_mask, False


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    separate: tuple[Tensor | None, ...] | None,
    packed: Tensor | None,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The three inputs by their own weights or, where these are None, by one of all."""
    if separate is not None:
        weights = _separate_weights(*separate)
        biases = () if bias is None else bias.chunk(3)
        return _in_projection(query, key, value, *weights, *biases)
    if packed is None:
        raise AssertionError(
            "use_separate_proj_weight is False but in_proj_weight is None"
        )
    return _in_projection_packed(query, key, value, packed, bias)


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads, as `nn.MultiheadAttention` computes it.

    `query`, `key` and `value` are of shape (steps, batch, features) or, without a
    batch, (steps, features). Gives the output and, with `need_weights`, the weights of
    shape (batch, steps, steps), or of each head. The errors about shapes are PyTorch's
    AssertionErrors.

    >>> import torchshim as torch
    >>> x, w = torch.ones(5, 2, 4), torch.zeros(12, 4)
    >>> out, weights = torch.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, w, None, None, None, False, 0.0, torch.zeros(4, 4), None
    ... )
    >>> out.shape, weights[0, 0]
    (torch.Size([5, 2, 4]), tensor([0.2000, 0.2000, 0.2000, 0.2000, 0.2000]))
    """
    is_batched = _mha_shape_check(
        query, key, value, key_padding_mask, attn_mask, num_heads
    )
    if not is_batched:
        # The same object stays the same: self-attention needs one product then.
        given = {id(x): x.unsqueeze(1) for x in (query, key, value)}
        query, key, value = (given[id(x)] for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.shape
    heads = bsz * num_heads
    attn_mask, key_padding_mask, is_causal = _masks(
        query, attn_mask, key_padding_mask, is_causal, need_weights
    )
    width = _check_embedding(
        query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight
    )
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _projected(
        query,
        key,
        value,
        separate if use_separate_proj_weight else None,
        in_proj_weight,
        in_proj_bias,
    )
    if attn_mask is not None:
        sizes = tgt_len, key.shape[0]
        attn_mask = _check_attn_mask(attn_mask, sizes, (heads, *sizes))
    biased = _check_biases(bias_k, bias_v, static_k, static_v)
    if biased:
        k, v = _one_more(k, bias_k, bsz), _one_more(v, bias_v, bsz)
    q = _as_heads(q, None, "q", heads, width)
    k = _as_heads(k, static_k, "k", heads, width)
    v = _as_heads(v, static_v, "v", heads, width)
    if add_zero_attn:
        kind = {"dtype": k.dtype, "device": k.device}
        nothing = zeros(heads, 1, width, **kind)
        k, v = fns.cat([k, nothing], 1), fns.cat([v, nothing], 1)
    # Nothing masks the keys that were added.
    added = (0, biased + bool(add_zero_attn))
    if attn_mask is not None and any(added):
        attn_mask = _functional("pad")(attn_mask, added)
    if key_padding_mask is not None:
        if any(added):
            key_padding_mask = _functional("pad")(key_padding_mask, added)
        _check_key_padding_mask(key_padding_mask, k.size(1), bsz)
        padding = _for_heads(key_padding_mask, num_heads)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        weights = _attention_weights(q, k, attn_mask, dropout_p)
        output = fns.bmm(weights, v).transpose(0, 1)
        weights = weights.view(bsz, num_heads, tgt_len, k.size(1))
        if average_attn_weights:
            weights = weights.mean(1)
        if not is_batched:
            weights = weights.squeeze(0)
    else:
        q, k, v = (x.reshape(bsz, num_heads, x.size(1), width) for x in (q, k, v))
        if attn_mask is not None:
            attn_mask = _by_head(attn_mask, bsz, num_heads)
        attention = _functional("scaled_dot_product_attention")
        output = attention(q, k, v, attn_mask, dropout_p, is_causal)
        output = output.permute(2, 0, 1, 3)
    output = output.reshape(tgt_len * bsz, embed_dim)
    output = _functional("linear")(output, out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, bsz, output.size(1))
    return (output if is_batched else output.squeeze(1)), weights
