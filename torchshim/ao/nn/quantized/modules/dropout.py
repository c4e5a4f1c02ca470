"""Dropout of integers, which drops nothing."""

from __future__ import annotations

from typing import Any

from torchshim import nn

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """Gives its input, in training, too."""

    def forward(self, input: Any) -> Any:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The layer for one of floating point."""
        return cls(mod.p, mod.inplace)
