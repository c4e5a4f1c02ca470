"""Attention over sequences packed one after another: `torch.nn.attention.varlen`.

PyTorch has kernels for it on GPUs only, and refuses it on the CPU; so does torchshim,
on every device. `torch.nn.attention.flex_attention` with a mask of documents computes
the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from torchshim._tensor import Tensor
from torchshim.nn.attention.flex_attention import check_heads

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What is returned beside the result: the logarithms of the sums."""

    lse: bool = False


def _refuse(
    query: Tensor, key: Tensor, window_size: Any, paged: bool, gqa: bool, name: str
) -> NoReturn:
    check_heads(query.size(1), key.size(2 if paged else 1), gqa)
    window = list(window_size)
    if len(window) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window)}")
    backend = query.device.type.upper()
    raise NotImplementedError(
        f"Could not run '{name}' with arguments from the '{backend}' backend. PyTorch "
        "has it on GPUs only and torchshim nowhere: use flex_attention with a mask of "
        "documents"
    )


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Refused, as PyTorch refuses it on the CPU: NotImplementedError.

    ValueError where the numbers of heads or the window are wrong.
    """
    paged = block_table is not None
    name = "aten::_flash_attention_forward"
    _refuse(query, key, window_size, paged, enable_gqa, name)


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Refused, as `varlen_attn` is."""
    paged = block_table is not None
    name = "aten::_flash_attention_forward_no_dropout_inplace"
    _refuse(query, key, window_size, paged, enable_gqa, name)
