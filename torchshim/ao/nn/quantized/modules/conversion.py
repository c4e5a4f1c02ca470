"""Layers between numbers and codes."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim import nn

__all__ = ["DeQuantize", "Quantize"]


class Quantize(nn.Module):
    """Quantizes its input by a scale and a zero point, which are buffers.

    >>> import torchshim as torch
    >>> m = Quantize(1.0, 2, torch.qint8)
    >>> m(torch.tensor([1.0, -1.0])).int_repr()
    tensor([3, 1], dtype=torch.int8)
    """

    scale: Any
    zero_point: Any

    def __init__(
        self, scale: float, zero_point: int, dtype: Any, factory_kwargs: Any = None
    ) -> None:
        made = nn.factory_kwargs(factory_kwargs)
        super().__init__()
        self.register_buffer("scale", torchshim.tensor([scale], **made))
        made.pop("dtype", None)
        zero = torchshim.tensor([zero_point], dtype=torchshim.long, **made)
        self.register_buffer("zero_point", zero)
        self.dtype = dtype

    def forward(self, X: Any) -> Any:
        scheme = float(self.scale), int(self.zero_point)
        return torchshim.quantize_per_tensor(X, *scheme, self.dtype)

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer with the scale that a layer's observer has found."""
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError(
                f"Module {type(mod).__name__} must have activation_post_process "
                "attribute"
            )
        observer = mod.activation_post_process
        scale, zero_point = observer.calculate_qparams()
        scheme = scale.float().item(), zero_point.long().item()
        return Quantize(*scheme, observer.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Gives what a quantized tensor stands for."""

    def forward(self, Xq: Any) -> Any:
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A new layer."""
        return DeQuantize()
