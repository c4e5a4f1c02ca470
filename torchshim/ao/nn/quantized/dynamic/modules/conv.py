"""Convolutions with weights of integers, whose inputs are rounded as they come."""

from __future__ import annotations

from typing import Any

from torchshim import _warnings as warnings
from torchshim.ao.nn.quantized.modules import conv
from torchshim.ops import quantized as ops

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]


class _Dynamic(conv._ConvNd):
    """Stands before a convolution of integers."""

    _NNIQAT_CONV_BN_MODULE: Any = None
    _NNI_CONV_RELU_MODULE: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"The current implementation of the {self._get_name()} module has poor "
            "numerical accuracy and its use is not recommended",
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def forward(self, input: Any, reduce_range: bool = True) -> Any:
        run = getattr(ops, f"{self._operator}_dynamic")
        return run(self._padded(input), self._packed_params, reduce_range)


class Conv1d(_Dynamic, conv.Conv1d):
    """A convolution over sequences of numbers with a quantized weight."""


class Conv2d(_Dynamic, conv.Conv2d):
    """A convolution over images of numbers with a quantized weight."""


class Conv3d(_Dynamic, conv.Conv3d):
    """A convolution over volumes of numbers with a quantized weight."""


class ConvTranspose1d(_Dynamic, conv.ConvTranspose1d):
    """A transposed convolution over sequences of numbers with a quantized weight."""


class ConvTranspose2d(_Dynamic, conv.ConvTranspose2d):
    """A transposed convolution over images of numbers with a quantized weight."""


class ConvTranspose3d(_Dynamic, conv.ConvTranspose3d):
    """A transposed convolution over volumes of numbers with a quantized weight."""
