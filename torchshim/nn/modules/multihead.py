"""Attention of several heads."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._functions.nested_strided_layers import through_padded
from torchshim._functions.nested_tensor import is_jagged
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn import init
from torchshim.nn.modules.linear import NonDynamicallyQuantizableLinear, new_parameter
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads, with projections before and after.

    Inputs of shape (steps, batch, features), with `batch_first` (batch, steps,
    features), or without a batch (steps, features). Gives the output and, unless
    `need_weights=False`, the weights, averaged over the heads or not. A bool mask is
    True where nothing is attended to; a float mask is added to the scores. Follows
    ``torch.nn.MultiheadAttention``.

    >>> import torchshim as torch
    >>> m = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.zeros(3, 5, 8)
    >>> output, weights = m(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    __module__ = "torchshim.nn.modules.activation"  # as files name it
    __constants__ = ["batch_first"]  # noqa: RUF012

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != self.embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        same = self._qkv_same_embed_dim
        widths = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        if same:
            shape = 3 * embed_dim, embed_dim
            self.in_proj_weight = new_parameter(shape, device, dtype)
        for name, inputs in widths.items():
            shape = embed_dim, inputs
            value = None if same else new_parameter(shape, device, dtype)
            self.register_parameter(f"{name}_proj_weight", value)
        if not same:
            self.register_parameter("in_proj_weight", None)
        value = new_parameter(3 * embed_dim, device, dtype) if bias else None
        self.register_parameter("in_proj_bias", value)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        if add_bias_kv:
            self.bias_k = new_parameter((1, 1, embed_dim), device, dtype)
            self.bias_v = new_parameter((1, 1, embed_dim), device, dtype)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            assert self.out_proj.bias is not None
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Modules saved by the oldest versions of PyTorch lack the field.
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if query.is_nested or key.is_nested or value.is_nested:
            mask = attn_mask if key_padding_mask is None else key_padding_mask
            why = self._why_not_nested(query, key, value, mask)
            if why:
                raise AssertionError(
                    "MultiheadAttention does not support NestedTensor outside of its "
                    f"fast path. The fast path was not hit because {why}"
                )
            return self._of_nested(query, need_weights, average_attn_weights)
        batched = query.dim() == 3
        masks = [m for m in (attn_mask, key_padding_mask) if m is not None]
        fused = self._is_fused(query, key, value) and not any(
            torchshim.is_floating_point(m) for m in masks
        )
        key_padding_mask = F._canonical_mask(
            key_padding_mask,
            "key_padding_mask",
            F._none_or_dtype(attn_mask),
            "attn_mask",
            query.dtype,
        )
        attn_mask = F._canonical_mask(
            attn_mask, "attn_mask", None, "", query.dtype, False
        )
        transposed = self.batch_first and batched
        if transposed:
            # The same object stays the same: self-attention needs one product then.
            given = {id(x): x.transpose(1, 0) for x in (query, key, value)}
            query, key, value = (given[id(x)] for x in (query, key, value))
        # A row that sees nothing is NaN in PyTorch's kernel, as in what gives weights.
        weighed = need_weights or (fused and bool(masks))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=weighed,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal and not fused,
        )
        if transposed:
            output = output.transpose(1, 0)
        output = output.contiguous() if fused else output
        return output, weights if need_weights else None

    def _why_not_nested(self, query: Any, key: Any, value: Any, mask: Any) -> str:
        """Why PyTorch has no kernel here, which nested tensors need."""
        weight, bias = self.in_proj_weight, self.in_proj_bias
        reasons = (
            (
                query.dim() != 3,
                f"input not batched; expected query.dim() of 3 but got {query.dim()}",
            ),
            (
                query is not key or key is not value,
                "non-self attention was used (query, key, and value are not the same "
                "Tensor)",
            ),
            (weight is None, "in_proj_weight was None"),
            (
                weight is not None and query.dtype != weight.dtype,
                f"dtypes of query ({query.dtype}) and self.in_proj_weight "
                f"({getattr(weight, 'dtype', None)}) don't match",
            ),
            (self.training, "training is enabled"),
            (self.num_heads % 2 != 0, "self.num_heads is not even"),
            (not self.batch_first, "batch_first was not True"),
            (self.bias_k is not None, "self.bias_k was not None"),
            (self.bias_v is not None, "self.bias_v was not None"),
            (self.add_zero_attn, "add_zero_attn was enabled"),
            (
                mask is not None,
                "supplying both src_key_padding_mask and src_mask at the same time"
                + " " * 34
                + "is not supported with NestedTensor input",
            ),
            (torchshim.is_autocast_enabled(), "autocast is enabled"),
            (is_jagged(query), "some Tensor argument has_torch_function"),
            (
                needs_grad(query, *self.parameters()),
                "grad is enabled and at least one of query or the input/output "
                "projection weights or biases requires_grad",
            ),
            (bias is None, "in_proj_bias was None"),
        )
        return next((reason for met, reason in reasons if met), "")

    def _of_nested(self, x: Any, need_weights: bool, average: bool) -> Any:
        """Self-attention of each sequence of a nested tensor."""

        def padded(rows: Tensor, padding: Tensor) -> Any:
            output, weights = self(
                *(rows, rows, rows, padding, need_weights),
                average_attn_weights=average,
            )
            if weights is None:
                return output, None
            unseen = padding[:, :, None] if average else padding[:, None, :, None]
            return output, weights.masked_fill(unseen, 0.0)

        return through_padded(padded, x)

    def _is_fused(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether PyTorch takes its kernel for inference here.

        Its results are the same, but contiguous, it leaves `is_causal` alone, and rows
        that see nothing are NaN.
        """
        return (
            not self.training
            and query.dim() == 3
            and query is key
            and key is value
            and self.batch_first
            and self._qkv_same_embed_dim
            and self.in_proj_bias is not None
            and self.num_heads % 2 == 0
            and self.bias_k is None
            and self.bias_v is None
            and not self.add_zero_attn
            and not needs_grad(query, *self.parameters())
        )

    def merge_masks(
        self,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        query: Tensor,
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and its kind: None, 1 for padding alone, 2 for others."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length)
            merged = merged.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask.view(batch, 1, 1, length)
            merged = merged + padding.expand(-1, self.num_heads, -1, -1)
        return merged, 2


def needs_grad(*tensors: Tensor) -> bool:
    """Whether the gradient of what is made of these is recorded."""
    return torchshim.is_grad_enabled() and any(t.requires_grad for t in tensors)
