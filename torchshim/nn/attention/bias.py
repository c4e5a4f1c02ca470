"""Causal masks that stand for themselves, as `torch.nn.attention.bias`."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """From which corner of the scores the causal mask begins."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A causal mask, for `attn_mask` of `scaled_dot_product_attention`.

    Made by `causal_upper_left` and `causal_lower_right`.
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(
                f"variant must be a CausalVariant, got {type(variant).__name__}"
            )
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when "
                "seq_len_q > seq_len_kv!",
                stacklevel=2,
            )

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Attention takes the mask as it is, and gives plain tensors."""
        if func is torchshim.nn.functional.scaled_dot_product_attention:
            with torchshim._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def _materialize(self, device: Any = None) -> Tensor:
        """The bool mask: True where attention is allowed."""
        lower = self.variant == CausalVariant.LOWER_RIGHT
        whole = torchshim.ones(
            self.seq_len_q, self.seq_len_kv, device=device, dtype=torchshim.bool
        )
        return torchshim.tril(
            whole, diagonal=self.seq_len_kv - self.seq_len_q if lower else 0
        )

    def _as_attn_mask(self, device: Any, is_causal: bool) -> tuple[Tensor | None, bool]:
        """The mask and `is_causal` of `scaled_dot_product_attention` in its place."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        if (
            self.seq_len_q == self.seq_len_kv
            or self.variant == CausalVariant.UPPER_LEFT
        ):
            return None, True
        return self._materialize(device), False

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask that lets the first query see the first key, and so on.

    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask that lets the last query see all keys, the one before one less.

    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
