"""Embeddings whose weight is rounded while they are trained."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim._quantized.schemes import QSCHEMES
from torchshim._tensor import Tensor
from torchshim.ao.nn.qat.modules.utils import check_configured, required
from torchshim.nn import functional as F

__all__ = ["Embedding", "EmbeddingBag"]


def _check_scheme(qconfig: Any, kind: str) -> None:
    scheme = qconfig.weight().qscheme
    if scheme != QSCHEMES["per_channel_affine_float_qparams"]:
        raise AssertionError(
            f"{kind} weights requires a qscheme of "
            f"torch.per_channel_affine_float_qparams Got {scheme}"
        )


class _Rounded(nn.Module):
    """What both share; stands before the class of floating point."""

    _FLOAT_MODULE: Any
    # What errors call it; which attributes are arguments, the weight as None.
    _kind: str
    _arguments: tuple[str | None, ...]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point with a `qconfig`; shares the weight."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f" qat.{cls.__name__}.from_float only works for "
                f"{cls._FLOAT_MODULE.__name__}"
            )
        check_configured(mod)
        _check_scheme(mod.qconfig, cls._kind)
        given = [getattr(mod, name or "weight") for name in cls._arguments]
        return cls(*given, qconfig=mod.qconfig)

    def to_float(self) -> Any:
        """A layer of floating point with this weight."""
        given = [name and getattr(self, name) for name in self._arguments]
        made = self._FLOAT_MODULE(*given)
        made.weight = nn.Parameter(self.weight.detach())
        return made.train(self.training)

    def _configure(self, qconfig: Any, made: dict[str, Any]) -> None:
        _check_scheme(required(qconfig), self._kind)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs=made)


class Embedding(_Rounded, nn.Embedding):
    """An `Embedding` with a weight that goes through `weight_fake_quant`."""

    _FLOAT_MODULE: Any = nn.Embedding
    _kind = "Embedding"
    _arguments = (
        *("num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type"),
        *("scale_grad_by_freq", "sparse", None),
    )

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        device: Any = None,
        dtype: Any = None,
        qconfig: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        norm = padding_idx, max_norm, norm_type
        options = scale_grad_by_freq, sparse, _weight
        super().__init__(num_embeddings, embedding_dim, *norm, *options, **made)
        self._configure(qconfig, made)

    def forward(self, input: Tensor) -> Tensor:
        norm = self.padding_idx, self.max_norm, self.norm_type
        weight = self.weight_fake_quant(self.weight)
        return F.embedding(input, weight, *norm, self.scale_grad_by_freq, self.sparse)


class EmbeddingBag(_Rounded, nn.EmbeddingBag):
    """An `EmbeddingBag` with a weight that goes through `weight_fake_quant`."""

    _FLOAT_MODULE: Any = nn.EmbeddingBag
    _kind = "Embedding Bag"
    _arguments = (
        *("num_embeddings", "embedding_dim", "max_norm", "norm_type"),
        *("scale_grad_by_freq", "mode", "sparse", None, "include_last_offset"),
        "padding_idx",
    )

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        options = max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight
        rest = include_last_offset, padding_idx
        super().__init__(num_embeddings, embedding_dim, *options, *rest, **made)
        self._configure(qconfig, made)

    def forward(
        self, input: Tensor, offsets: Any = None, per_sample_weights: Any = None
    ) -> Tensor:
        norm = self.max_norm, self.norm_type, self.scale_grad_by_freq
        rest = per_sample_weights, self.include_last_offset, self.padding_idx
        weight = self.weight_fake_quant(self.weight)
        return F.embedding_bag(
            input, weight, offsets, *norm, self.mode, self.sparse, *rest
        )
