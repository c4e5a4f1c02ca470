"""Convolutions that say how their weights would be quantized."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim.ao.nn.quantized.reference.modules.utils import ReferenceQuantizedModule
from torchshim.nn import functional as F

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]


class _ConvNd(nn.modules.conv._ConvNd, ReferenceQuantizedModule):
    """What the convolutions share; stands before the class of the same dimensions."""

    _IS_REFERENCE = True
    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_qparams: Any = None,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, stride, padding, dilation
        rest = groups, bias, padding_mode, device, dtype
        super().__init__(*sizes, *rest)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def forward(self, x: Any) -> Any:
        run = getattr(F, f"conv{self._dims}d")
        space = self.stride, self.padding, self.dilation
        return run(x, self.get_weight(), self.bias, *space, self.groups)

    @classmethod
    def _like(cls, mod: Any, **options: Any) -> Any:
        sizes = mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride
        rest = mod.padding, mod.dilation, mod.groups, mod.bias is not None
        return cls(*sizes, *rest, mod.padding_mode, **options)

    @classmethod
    def from_float(cls, float_conv: Any, weight_qparams: Any) -> Any:
        """The layer with the parameters of one of floating point."""
        weight, bias = float_conv.weight, float_conv.bias
        options = {"device": weight.device, "dtype": weight.dtype}
        made = cls._like(float_conv, **options, weight_qparams=weight_qparams)
        made.weight = nn.Parameter(weight.detach())
        if bias is not None:
            made.bias = nn.Parameter(bias.detach())
        return made


class Conv1d(_ConvNd, nn.Conv1d):
    """A `Conv1d` of numbers with a weight that is rounded in each call."""


class Conv2d(_ConvNd, nn.Conv2d):
    """A `Conv2d` of numbers with a weight that is rounded in each call."""


class Conv3d(_ConvNd, nn.Conv3d):
    """A `Conv3d` of numbers with a weight that is rounded in each call."""


class _ConvTransposeNd(_ConvNd, nn.modules.conv._ConvTransposeNd):
    """What the transposed convolutions share."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_qparams: Any = None,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, stride, padding
        rest = output_padding, groups, bias, dilation, padding_mode, device, dtype
        nn.modules.conv._ConvTransposeNd.__init__(self, *sizes, *rest)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x: Any, output_size: Any = None) -> Any:
        if not isinstance(self.padding, tuple):
            raise AssertionError(
                f"Expected self.padding to be a tuple, got {type(self.padding)}"
            )
        space = self.stride, self.padding, self.kernel_size
        added = self._output_padding(x, output_size, *space, self._dims, self.dilation)
        run = getattr(F, f"conv_transpose{self._dims}d")
        options = self.stride, self.padding, added, self.groups, self.dilation
        return run(x, self.get_weight(), self.bias, *options)

    @classmethod
    def _like(cls, mod: Any, **options: Any) -> Any:
        sizes = mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride
        rest = mod.padding, mod.output_padding, mod.groups, mod.bias is not None
        return cls(*sizes, *rest, mod.dilation, mod.padding_mode, **options)


class ConvTranspose1d(_ConvTransposeNd, nn.ConvTranspose1d):
    """A `ConvTranspose1d` of numbers with a weight that is rounded in each call."""


class ConvTranspose2d(_ConvTransposeNd, nn.ConvTranspose2d):
    """A `ConvTranspose2d` of numbers with a weight that is rounded in each call."""


class ConvTranspose3d(_ConvTransposeNd, nn.ConvTranspose3d):
    """A `ConvTranspose3d` of numbers with a weight that is rounded in each call."""
