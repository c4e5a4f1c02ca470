"""Attention made of layers, each of which can be observed and quantized."""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

import torchshim
from torchshim import _warnings as warnings
from torchshim import nn
from torchshim.nn import functional as F

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention` with linear layers of its own for each operand."""

    _FLOAT_MODULE: Any = nn.MultiheadAttention
    __constants__ = ["batch_first"]  # noqa: RUF012

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
        options = add_bias_kv, add_zero_attn, kdim, vdim, batch_first
        made = {"device": device, "dtype": dtype}
        super().__init__(embed_dim, num_heads, dropout, bias, *options, **made)
        size = self.embed_dim
        self.linear_Q: Any = nn.Linear(size, size, bias=bias, **made)
        self.linear_K: Any = nn.Linear(self.kdim, size, bias=bias, **made)
        self.linear_V: Any = nn.Linear(self.vdim, size, bias=bias, **made)
        self.out_proj: Any = nn.Linear(size, size, bias=bias, **made)
        quantized = importlib.import_module("torchshim.ao.nn.quantized")
        stubs = importlib.import_module("torchshim.ao.quantization")
        self.q_scaling_product = quantized.FloatFunctional()
        self.quant_attn_output = stubs.QuantStub()
        self.quant_attn_output_weights = stubs.QuantStub()
        self.dequant_q = stubs.DeQuantStub()
        self.dequant_k = stubs.DeQuantStub()
        self.dequant_v = stubs.DeQuantStub()

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    @property
    def _linears(self) -> tuple[Any, Any, Any]:
        return self.linear_Q, self.linear_K, self.linear_V

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """The observed layer for one of floating point that has a qconfig."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"Expected type {cls._FLOAT_MODULE}, got {type(other)}"
            )
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        bias = other.in_proj_bias
        sizes = other.embed_dim, other.num_heads, other.dropout, bias is not None
        rest = other.bias_k is not None, other.add_zero_attn, other.kdim, other.vdim
        made = cls(*sizes, *rest, other.batch_first)
        made.bias_k, made.bias_v = other.bias_k, other.bias_v
        made.qconfig = other.qconfig
        made.out_proj.weight = other.out_proj.weight
        made.out_proj.bias = other.out_proj.bias
        size = other.embed_dim
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.split(size)
        else:
            weights = other.q_proj_weight, other.k_proj_weight, other.v_proj_weight
        biases = (None,) * 3 if bias is None else bias.split(size)
        for layer, weight, each in zip(made._linears, weights, biases, strict=True):
            layer.weight = nn.Parameter(weight, weight.requires_grad)
            layer.bias = None
            if each is not None:
                layer.bias = nn.Parameter(each, each.requires_grad)
        quantization = importlib.import_module("torchshim.ao.quantization")
        return quantization.prepare(made.eval(), inplace=True)

    def dequantize(self) -> Any:
        """The layer of floating point that a quantized one came from."""
        has_bias = self.linear_Q._weight_bias()[1] is not None
        sizes = self.embed_dim, self.num_heads, self.dropout, has_bias
        rest = self.bias_k is not None, self.add_zero_attn, self.kdim, self.vdim
        made = self._FLOAT_MODULE(*sizes, *rest, self.batch_first)
        if made._qkv_same_embed_dim != self._qkv_same_embed_dim:
            raise AssertionError(
                f"_qkv_same_embed_dim mismatch: {made._qkv_same_embed_dim} != "
                f"{self._qkv_same_embed_dim}"
            )
        for name in ("bias_k", "bias_v"):
            value = getattr(self, name)
            if value is not None:
                setattr(made, name, nn.Parameter(value.dequantize()))
        weight, bias = self.out_proj._weight_bias()
        made.out_proj.weight = nn.Parameter(weight.dequantize())
        if bias is not None:
            made.out_proj.bias = nn.Parameter(bias)
        parts = [layer._weight_bias() for layer in self._linears]
        weights = [weight.dequantize() for weight, _ in parts]
        with torchshim.no_grad():
            if made._qkv_same_embed_dim:
                made.in_proj_weight.copy_(torchshim.cat(weights))
            else:
                names = "q_proj_weight", "k_proj_weight", "v_proj_weight"
                for name, value in zip(names, weights, strict=True):
                    setattr(made, name, nn.Parameter(value))
            if made.in_proj_bias is not None:
                made.in_proj_bias.copy_(torchshim.cat([bias for _, bias in parts]))
        return made

    @classmethod
    def from_observed(cls, other: Any) -> NoReturn:
        """NotImplementedError: the quantized layer has it."""
        raise NotImplementedError(
            "It looks like you are trying to prepare an MHA module. Please, see the "
            "examples on quantizable MHAs."
        )

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        options = average_attn_weights, is_causal
        masks = key_padding_mask, need_weights, attn_mask
        return self._forward_impl(query, key, value, *masks, *options)

    def _forward_impl(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        if is_causal:
            if attn_mask is not None:
                raise AssertionError("Only allow causal mask or attn_mask")
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        length, batch, size = query.size()
        self._check(size, key, value)
        heads = batch * self.num_heads
        width = self.embed_dim // self.num_heads
        q, k, v = self.linear_Q(query), self.linear_K(key), self.linear_V(value)
        q = self.q_scaling_product.mul_scalar(q, float(width) ** -0.5)
        attn_mask = _mask_of(attn_mask, "attn_mask")
        if attn_mask is not None:
            attn_mask = _checked_mask(attn_mask, heads, query.size(0), key.size(0))
        padded = _mask_of(key_padding_mask, "key_padding_mask")
        masks = [attn_mask, padded]
        if self.bias_k is not None:
            k = torchshim.cat([k, self.bias_k.repeat(1, batch, 1)])
            bias_v: Any = self.bias_v
            v = torchshim.cat([v, bias_v.repeat(1, batch, 1)])
            masks = [_longer(mask) for mask in masks]
        q, k, v = (
            x.contiguous().view(-1, heads, width).transpose(0, 1) for x in (q, k, v)
        )
        if self.add_zero_attn:
            k, v = (_with_zeros(x) for x in (k, v))
            masks = [_longer(mask) for mask in masks]
        q, k, v = self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)
        weights = torchshim.bmm(q, k.transpose(1, 2))
        weights = _masked(weights, masks, batch, self.num_heads)
        weights = F.softmax(weights, dim=-1)
        weights = F.dropout(weights, p=self.dropout, training=self.training)
        output = torchshim.bmm(weights, v)
        if self.batch_first:
            output = output.view(batch, length, self.embed_dim)
        else:
            output = output.transpose(0, 1).contiguous()
            output = output.view(length, batch, self.embed_dim)
        output = self.out_proj(self.quant_attn_output(output))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return output, None
        weights = weights.view(batch, self.num_heads, length, k.size(1))
        return output, weights.mean(dim=1) if average_attn_weights else weights

    def _check(self, size: int, key: Any, value: Any) -> None:
        if self.embed_dim != size:
            raise AssertionError(f"embed_dim mismatch: {self.embed_dim} != {size}")
        if key.size()[:2] != value.size()[:2]:
            raise AssertionError(
                f"key and value size mismatch: key.size()={key.size()}, "
                f"value.size()={value.size()}"
            )
        if self.embed_dim % self.num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if (self.bias_k is None) != (self.bias_v is None):
            one, other = ("k", "v") if self.bias_v is None else ("v", "k")
            raise AssertionError(
                f"self.bias_{one} must be None when self.bias_{other} is None"
            )


def _mask_of(mask: Any, name: str) -> Any:
    """A mask, of booleans where it is of bytes."""
    if mask is None or mask.dtype != torchshim.uint8:
        return mask
    warnings.warn(
        f"Byte tensor for `{name}` in `nn.MultiheadAttention` is deprecated. Use bool "
        "tensor instead.",
        stacklevel=5,
    )
    return mask.to(torchshim.bool)


def _checked_mask(mask: Any, heads: int, length: int, keys: int) -> Any:
    """A mask of three dimensions; raises for other dtypes and sizes."""
    if not mask.is_floating_point() and mask.dtype != torchshim.bool:
        raise AssertionError(
            f"Only float and bool types are supported for attn_mask, not {mask.dtype}"
        )
    if mask.dim() not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    whole = (length, keys) if mask.dim() == 2 else (heads, length, keys)
    if tuple(mask.size()) != whole:
        raise RuntimeError(f"The size of the {mask.dim()}D attn_mask is not correct.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _longer(mask: Any) -> Any:
    """A mask for one more key."""
    return mask if mask is None else F.pad(mask, (0, 1))


def _with_zeros(x: Any) -> Any:
    """Keys or values with one of zeros at the end."""
    zeros = torchshim.zeros((x.size(0), 1, *x.size()[2:]))
    if x.is_quantized:
        scheme = x.q_scale(), x.q_zero_point(), x.dtype
        zeros = torchshim.quantize_per_tensor(zeros, *scheme)
    return torchshim.cat([x, zeros], dim=1)


def _masked(weights: Any, masks: Any, batch: int, heads: int) -> Any:
    """Attention with minus infinity where masks forbid it."""
    mask, padded = masks
    if mask is not None and mask.dtype == torchshim.bool:
        weights = weights.masked_fill(mask, float("-inf"))
    elif mask is not None:
        weights = weights + mask
    if padded is None:
        return weights
    length, keys = weights.size()[1:]
    if padded.size(0) != batch:
        raise AssertionError(
            f"key_padding_mask.size(0) must be {batch}, got {padded.size(0)}"
        )
    if padded.size(1) != keys:
        raise AssertionError(
            f"key_padding_mask.size(1) must be {keys}, got {padded.size(1)}"
        )
    weights = weights.view(batch, heads, length, keys)
    hidden = padded.unsqueeze(1).unsqueeze(2)
    return weights.masked_fill(hidden, float("-inf")).view(-1, length, keys)
