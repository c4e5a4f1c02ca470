"""Embeddings that say how their weights would be quantized."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim.ao.nn.quantized.reference.modules.utils import ReferenceQuantizedModule
from torchshim.nn import functional as F

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(nn.Embedding, ReferenceQuantizedModule):
    """An `Embedding` with a weight that is rounded in each call."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        device: Any = None,
        dtype: Any = None,
        weight_qparams: Any = None,
    ) -> None:
        norm = padding_idx, max_norm, norm_type, scale_grad_by_freq
        options = sparse, _weight, False, device, dtype
        super().__init__(num_embeddings, embedding_dim, *norm, *options)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    def forward(self, input: Any) -> Any:
        norm = self.padding_idx, self.max_norm, self.norm_type
        rest = self.scale_grad_by_freq, self.sparse
        return F.embedding(input, self.get_weight(), *norm, *rest)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: Any) -> Any:
        """The layer with the weight of one of floating point."""
        sizes = mod.num_embeddings, mod.embedding_dim, mod.padding_idx
        norm = mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.sparse
        made = mod.weight.device, mod.weight.dtype, weight_qparams
        return cls(*sizes, *norm, mod.weight, *made)


class EmbeddingBag(nn.EmbeddingBag, ReferenceQuantizedModule):
    """An `EmbeddingBag` with a weight that is rounded in each call."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
        weight_qparams: Any = None,
    ) -> None:
        norm = max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight
        options = include_last_offset, padding_idx, device, dtype
        super().__init__(num_embeddings, embedding_dim, *norm, *options)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    def forward(
        self, input: Any, offsets: Any = None, per_sample_weights: Any = None
    ) -> Any:
        norm = self.max_norm, self.norm_type, self.scale_grad_by_freq
        rest = per_sample_weights, self.include_last_offset, self.padding_idx
        options = *norm, self.mode, self.sparse, *rest
        return F.embedding_bag(input, self.get_weight(), offsets, *options)

    @classmethod
    def from_float(
        cls, mod: Any, weight_qparams: Any, use_precomputed_fake_quant: bool = False
    ) -> Any:
        """The layer with the weight of one of floating point."""
        sizes = mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type
        rest = mod.scale_grad_by_freq, mod.mode, mod.sparse, mod.weight
        made = mod.weight.device, mod.weight.dtype, weight_qparams
        last = mod.include_last_offset, mod.padding_idx
        return cls(*sizes, *rest, *last, *made)
