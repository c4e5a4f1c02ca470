"""Embeddings with weights of integers, a scale and a bias for each row.

https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/quantized/cpu/qembeddingbag.cpp
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim
from torchshim._core import dtypes
from torchshim._core.record import untracked
from torchshim._quantized.packed import EmbeddingWeight, expect, operator
from torchshim._quantized.products import check_backend
from torchshim._quantized.tensor import PerChannel
from torchshim.nn import functional as F

Rows = Callable[[Any], Any]


@operator("embedding_bag_prepack")
def embedding_bag_prepack(weight: Any) -> EmbeddingWeight:
    """The weight of an embedding, for `embedding_byte` and `embedding_bag_byte`."""
    check_backend(weight, "quantized::embedding_bag_prepack")
    if weight.dtype is not dtypes.NAMES["quint8"]:
        raise RuntimeError(
            "qembedding_bag_prepack currently only supports quint8 and quint4x2 weights"
        )
    scheme = weight._scheme
    if not isinstance(scheme, PerChannel) or not scheme.floats:
        raise RuntimeError(
            "Expect embedding_bag weights to be quantized using kPerChannelAffine"
            "FloatQParams"
        )
    return EmbeddingWeight(weight)


@operator("embedding_bag_unpack")
def embedding_bag_unpack(W_prepack: Any) -> Any:
    """The weight that a packed one was made of."""
    name = "quantized::embedding_bag_unpack"
    return expect(W_prepack, EmbeddingWeight, name, "W_prepack").unpack()


def _packed_rows(packed: Any, name: str) -> Rows:
    weight = expect(packed, EmbeddingWeight, f"quantized::{name}", "weight").unpack()
    scheme = weight._scheme

    def rows(at: Any) -> Any:
        scales, zeros = (t.index_select(0, at) for t in scheme[:2])
        codes = weight._v.index_select(0, at).float()
        return codes * scales[:, None] - (zeros * scales)[:, None]

    return rows


def _byte_rows(bits: int) -> Callable[[Any], Rows]:
    """Of a tensor of bytes that has scale and bias at the end of each row."""

    def of(weight: Any) -> Rows:
        def rows(at: Any) -> Any:
            return _decoded_bytes(weight.index_select(0, at), bits)

        return rows

    return of


def _check_indices(indices: Any) -> None:
    if indices.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(
            f"Expect 32 or 64 bit indices, but found {indices.dtype.scalar_name} "
            "instead."
        )


def _embedding(name: str) -> None:
    def embedding(weight: Any, indices: Any, pruned_weights: bool = False) -> Any:
        """Rows of a packed weight, in float32."""
        if indices.dim() > 2:
            raise RuntimeError(
                "qembedding/qembedding_bag operator supports 1 or 2d indices, got "
                f"{indices.dim()}"
            )
        _check_indices(indices)
        with untracked():
            made = _packed_rows(weight, name)(indices.reshape(-1))
            return made.view(*indices.shape, -1)

    operator(name)(embedding)


_embedding("embedding_byte")
_embedding("embedding_4bit")


def _bag(name: str, rows_of: Callable[[Any], Rows]) -> None:
    def embedding_bag(
        weight: Any,
        indices: Any,
        offsets: Any = None,
        scale_grad_by_freq: bool = False,
        mode: int = 0,
        pruned_weights: bool = False,
        per_sample_weights: Any = None,
        compressed_indices_mapping: Any = None,
        include_last_offset: bool = False,
    ) -> Any:
        """Sums of rows of a weight, in float32; rows that were pruned are zero.

        `mode` and `scale_grad_by_freq` change nothing, in PyTorch neither.
        """
        _check_indices(indices)
        rows, flat = rows_of(weight), indices.reshape(-1)
        if indices.dim() not in (1, 2):
            raise RuntimeError(
                "qembedding/qembedding_bag operator supports 1 or 2d indices, got "
                f"{indices.dim()}"
            )
        if indices.dim() == 1 and offsets is None:
            short = name.removesuffix("_rowwise_offsets")
            raise RuntimeError(f"{short} expects offsets to be set for 1D indices.")
        if indices.dim() == 2 and offsets is not None:
            raise RuntimeError(
                "embedding_bag_byte operator: input is 2D, then offsets has to be "
                "None, as input is treated is a mini-batch of fixed length sequences."
            )
        with untracked():
            mapping = compressed_indices_mapping
            there = None
            if pruned_weights and mapping is not None and mapping.numel() > 1:
                flat = mapping.index_select(0, flat.long()).long()
                there = (flat >= 0)[:, None]
                flat = flat.clamp(min=0)
            found = rows(flat)
            if there is not None:
                found = found.where(there, torchshim.zeros((), device=found.device))
            places = torchshim.arange(flat.numel(), device=flat.device)
            if indices.dim() == 2:
                places = places.view(indices.shape)
            if per_sample_weights is not None:
                per_sample_weights = per_sample_weights.detach().view(places.shape)
            return F.embedding_bag(
                places,
                found,
                None if offsets is None else offsets.long(),
                mode="sum",
                per_sample_weights=per_sample_weights,
                include_last_offset=include_last_offset,
            )

    operator(name)(embedding_bag)


for _name in ("embedding_bag_byte", "embedding_bag_4bit"):
    _bag(_name, lambda weight, name=_name: _packed_rows(weight, name))
for _kind, _bits in (("2bit", 2), ("4bit", 4), ("byte", 8)):
    _bag(f"embedding_bag_{_kind}_rowwise_offsets", _byte_rows(_bits))

# Rows as bytes: codes, then scale and bias of float32 or halves -----------------------


def _bytes_of(numbers: Any) -> Any:
    return numbers.contiguous().view(dtypes.uint8)


def _check_floats(weight: Any) -> Any:
    if weight.dtype not in (dtypes.float32, dtypes.float16):
        raise RuntimeError(
            "'embedding_bag_byte_prepack' only support float32 or float16."
        )
    return weight.detach().float()


@operator("embedding_bag_byte_prepack")
def embedding_bag_byte_prepack(weight: Any) -> Any:
    """Rows as codes of 8 bits, with scale and least element as float32 at the end."""
    with untracked():
        x = _check_floats(weight)
        least, most = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
        span = most - least
        codes = ((x - least) * (255.0 / (span + 1e-8))).round().to(dtypes.uint8)
        return torchshim.cat([codes, *map(_bytes_of, (span / 255.0, least))], -1)


def _pack_bits(bits: int) -> None:
    name = f"embedding_bag_{bits}bit_prepack"

    def prepack(
        weight: Any,
        optimized_qparams: bool = False,
        nbins: int = 200,
        ratio: float = 0.16,
    ) -> Any:
        """Rows as codes of some bits, with scale and least element as halves."""
        if optimized_qparams:
            raise NotImplementedError(
                f"quantized::{name} does not support optimized_qparams=True"
            )
        with untracked():
            x = _check_floats(weight)
            least = x.amin(-1, keepdim=True).half()
            span = x.amax(-1, keepdim=True) - least.float()
            most = (1 << bits) - 1
            scale = (span / most).half()
            scale = scale.masked_fill((scale == 0) | (1 / scale.float()).isinf(), 1)
            codes = ((x - least.float()) * (1 / scale.float())).round().clamp(0, most)
            each = 8 // bits
            columns = codes.shape[-1]
            if columns % each:
                raise RuntimeError(
                    f"qembeddingbag_{bits}bit_prepack only works for the number of "
                    f"columns a multiple of {each}"
                )
            codes = codes.to(dtypes.int32)
            parts = [codes[..., i::each] << (bits * i) for i in range(each)]
            packed = torchshim.stack(parts).sum(0).to(dtypes.uint8)
            return torchshim.cat([packed, *map(_bytes_of, (scale, least))], -1)

    operator(name)(prepack)


for _bits in (2, 4):
    _pack_bits(_bits)


def _decoded_bytes(packed: Any, bits: int) -> Any:
    """What rows of bytes stand for, in float32."""
    kind = dtypes.float32 if bits == 8 else dtypes.float16
    size = kind.itemsize
    codes, end = packed[..., : -2 * size], packed[..., -2 * size :].contiguous()
    scale, least = end.view(kind).float().split(1, -1)
    if bits < 8:
        wide, mask = codes.to(dtypes.int32), (1 << bits) - 1
        parts = [(wide >> (bits * i)) & mask for i in range(8 // bits)]
        codes = torchshim.stack(parts, -1).flatten(-2)
    return codes.float() * scale + least


def _unpacking(bits: int) -> None:
    name = "byte" if bits == 8 else f"{bits}bit"

    def unpack(weight: Any) -> Any:
        """What rows of bytes stand for, in float32."""
        with untracked():
            return _decoded_bytes(weight, bits)

    operator(f"embedding_bag_{name}_unpack")(unpack)


for _bits in (2, 4, 8):
    _unpacking(_bits)
