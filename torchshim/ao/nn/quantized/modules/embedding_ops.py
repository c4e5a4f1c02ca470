"""Embeddings with weights of integers."""

from __future__ import annotations

import importlib
from typing import Any

import torchshim
from torchshim import nn
from torchshim._quantized.schemes import QSCHEMES
from torchshim.ao.nn import qat
from torchshim.ao.nn.quantized.modules.utils import (
    _hide_packed_params_repr,
    _quantize_weight,
)
from torchshim.ops import quantized as ops

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]

_KNOWN = ("quint8", "quint4x2")


def _check_dtype(dtype: Any, text: str) -> None:
    if dtype.name not in _KNOWN:
        raise NotImplementedError(
            f"Unsupported dtype {text}! Supports quint8 and quint4x2."
        )


def _zeros(num_embeddings: int, embedding_dim: int, dtype: Any) -> Any:
    return torchshim._empty_per_channel_affine_quantized(
        [num_embeddings, embedding_dim],
        scales=torchshim.ones(num_embeddings, dtype=torchshim.float),
        zero_points=torchshim.zeros(num_embeddings, dtype=torchshim.float),
        axis=0,
        dtype=dtype,
    )


class EmbeddingPackedParams(nn.Module):
    """The weight of an embedding, with a scale for each row."""

    _version = 1

    def __init__(
        self, num_embeddings: int, embedding_dim: int, dtype: Any = None
    ) -> None:
        super().__init__()
        self.dtype = torchshim.quint8 if dtype is None else dtype
        if self.dtype.name not in _KNOWN:
            raise NotImplementedError(
                "Unsupported dtype on quantized embedding! Supports quint8 and "
                f"quint4x2. Got dtype: {dtype}"
            )
        self.set_weight(_zeros(num_embeddings, embedding_dim, self.dtype))

    def set_weight(self, weight: Any) -> None:
        """Takes another weight."""
        _check_dtype(self.dtype, "for quantized embedding prepack")
        self._packed_weight = ops.embedding_bag_prepack(weight)

    def _weight(self) -> Any:
        _check_dtype(self.dtype, "for quantized embedding unpack")
        return ops.embedding_bag_unpack(self._packed_weight)

    def forward(self, x: Any) -> Any:
        return x

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(nn.Module):
    """Rows of a weight of integers, in float32.

    >>> import torchshim as torch
    >>> m = Embedding(num_embeddings=10, embedding_dim=12)
    >>> m(torch.tensor([9, 6, 5])).shape
    torch.Size([3, 12])
    """

    _version = 1

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
        dtype: Any = None,
    ) -> None:
        super().__init__()
        dtype = torchshim.quint8 if dtype is None else dtype
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.dtype = dtype
        if _weight is None:
            _weight = _zeros(num_embeddings, embedding_dim, torchshim.quint8)
        elif list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: "
                f"expected {[num_embeddings, embedding_dim]}, got "
                f"{list(_weight.shape)}"
            )
        packed = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        self._packed_params = packed
        packed.set_weight(_weight)

    def forward(self, indices: Any) -> Any:
        run = ops.embedding_byte if self._bytes else ops.embedding_4bit
        return run(self._packed_params._packed_weight, indices)

    @property
    def _bytes(self) -> bool:
        return self.dtype.name != "quint4x2"

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def __repr__(self) -> str:
        return _hide_packed_params_repr(self, EmbeddingPackedParams)

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, "
            f"embedding_dim={self.embedding_dim}, dtype={self._packed_params.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Any) -> None:
        """Takes another weight."""
        self._packed_params.set_weight(w)

    def weight(self) -> Any:
        """The weight."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point with a qconfig, or trained so."""
        if hasattr(mod, "weight_fake_quant") and type(mod) is not qat.Embedding:
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float with fake quant only works for "
                "Embedding"
            )
        weight = _observed_weight(cls, mod, nn.Embedding)
        made = Embedding(mod.num_embeddings, mod.embedding_dim)
        made.set_weight(weight)
        return made

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Any:
        """The layer that a reference layer means."""
        ref = ref_embedding
        sizes = ref.num_embeddings, ref.embedding_dim, ref.padding_idx
        norm = ref.max_norm, ref.norm_type, ref.scale_grad_by_freq, ref.sparse
        return cls(*sizes, *norm, ref.get_quantized_weight(), ref.weight_dtype)


def _observed_weight(cls: Any, mod: Any, kind: Any) -> Any:
    """The weight of an embedding by its observer; AssertionError for other layers."""
    if hasattr(mod, "weight_fake_quant"):
        observer = mod.weight_fake_quant
    else:
        if type(mod) is not kind:
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float only works for {kind.__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError(
                f"{kind.__name__} input float module must have qconfig defined"
            )
        qconfig = mod.qconfig
        if qconfig is None or qconfig.weight is None:
            settings = importlib.import_module("torchshim.ao.quantization.qconfig")
            qconfig = settings.float_qparams_weight_only_qconfig
        observer = qconfig.weight()
    if observer.qscheme != QSCHEMES["per_channel_affine_float_qparams"]:
        raise AssertionError(
            f"{kind.__name__} quantization is only supported with "
            "float_qparams_weight_only_qconfig."
        )
    if observer.dtype.name not in _KNOWN:
        raise AssertionError(
            f"The only supported dtype for nnq.{kind.__name__} is torch.quint8 and "
            f"torch.quint4x2, got {observer.dtype}"
        )
    observer(mod.weight)
    return _quantize_weight(mod.weight.float(), observer)


class EmbeddingBag(Embedding):
    """Sums of rows of a weight of integers, in float32.

    >>> import torchshim as torch
    >>> m = EmbeddingBag(10, 12, include_last_offset=True, mode="sum")
    >>> m(torch.tensor([9, 6, 5, 7, 8]), torch.tensor([0, 2, 5])).shape
    torch.Size([2, 12])
    """

    _version = 1

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "sum",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode = mode
        self.pruned_weights = False
        self.include_last_offset = include_last_offset

    def forward(
        self,
        indices: Any,
        offsets: Any = None,
        per_sample_weights: Any = None,
        compressed_indices_mapping: Any = None,
    ) -> Any:
        run = ops.embedding_bag_byte if self._bytes else ops.embedding_bag_4bit
        return run(
            self._packed_params._packed_weight,
            indices,
            offsets,
            False,
            0,
            self.pruned_weights,
            per_sample_weights,
            compressed_indices_mapping,
            self.include_last_offset,
        )

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point with a qconfig, or trained so."""
        weight = _observed_weight(cls, mod, nn.EmbeddingBag)
        made = EmbeddingBag(
            mod.num_embeddings,
            mod.embedding_dim,
            max_norm=mod.max_norm,
            norm_type=mod.norm_type,
            scale_grad_by_freq=mod.scale_grad_by_freq,
            mode=mod.mode,
            sparse=mod.sparse,
            include_last_offset=mod.include_last_offset,
            dtype=weight.dtype,
        )
        made.set_weight(weight)
        return made

    @classmethod
    def from_reference(cls, ref_embedding_bag: Any) -> Any:
        """The layer that a reference layer means."""
        ref = ref_embedding_bag
        sizes = ref.num_embeddings, ref.embedding_dim, ref.max_norm, ref.norm_type
        rest = ref.scale_grad_by_freq, ref.mode, ref.sparse
        last = ref.include_last_offset, ref.weight_dtype
        return cls(*sizes, *rest, ref.get_quantized_weight(), *last)
