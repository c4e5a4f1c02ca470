"""Batch normalization and ReLU of integers."""

from __future__ import annotations

from typing import Any

from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn import quantized as nnq
from torchshim.ao.nn.quantized.modules import batchnorm

__all__ = ["BNReLU2d", "BNReLU3d"]


class _BNReLU(batchnorm._BatchNorm):
    """Stands before a batch normalization of integers."""

    _places: str

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def forward(self, input: Any) -> Any:
        if input.dim() != self._rank:
            raise ValueError(f"Input shape must be `(N, C, {self._places})`!")
        return super().forward(input)

    @classmethod
    def from_reference(
        cls, bn_relu: Any, output_scale: Any, output_zero_point: Any
    ) -> Any:
        """The layer with the parameters of fused ones of floating point."""
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)


class BNReLU2d(_BNReLU, nnq.BatchNorm2d):
    """A `BatchNorm2d` and a ReLU of integers."""

    _FLOAT_MODULE: Any = nni.BNReLU2d
    _operator = "batch_norm2d_relu"
    _places = "H, W"


class BNReLU3d(_BNReLU, nnq.BatchNorm3d):
    """A `BatchNorm3d` and a ReLU of integers."""

    _FLOAT_MODULE: Any = nni.BNReLU3d
    _operator = "batch_norm3d_relu"
    _places = "D, H, W"
