"""Convolutions whose weight is rounded while they are trained."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim._tensor import Tensor
from torchshim.ao.nn.intrinsic import _FusedModule
from torchshim.ao.nn.qat.modules.utils import check_configured, required

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _ConvNd(nn.modules.conv._ConvNd):
    """What the convolutions share; stands before the class of the same dimensions."""

    _FLOAT_MODULE: Any
    _FLOAT_CONV_MODULE: Any
    _FLOAT_RELU_MODULE: Any

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
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, stride, padding, dilation
        made = {"device": device, "dtype": dtype}
        super().__init__(*sizes, groups, bias, padding_mode, **made)
        self.qconfig = required(qconfig)
        self.weight_fake_quant = qconfig.weight(factory_kwargs=made)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point with a `qconfig`; shares parameters."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for "
                f"{cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}"
            )
        check_configured(mod)
        if isinstance(mod, _FusedModule):
            mod = mod[0]
        made = cls(*settings(mod), qconfig=mod.qconfig)
        made.weight = mod.weight
        made.bias = mod.bias
        return made

    def to_float(self) -> Any:
        """A layer of floating point with these parameters, fused as this one is."""
        cls = type(self)
        conv = plain(self, cls._FLOAT_CONV_MODULE)
        if not isinstance(self, _FusedModule):
            return conv
        if not hasattr(cls, "_FLOAT_RELU_MODULE"):
            raise AssertionError(
                f"{cls.__name__} must have _FLOAT_RELU_MODULE attribute"
            )
        fused = cls._FLOAT_MODULE(conv, cls._FLOAT_RELU_MODULE())
        return fused.train(self.training)


def settings(conv: Any) -> tuple[Any, ...]:
    """The arguments that a convolution was made with, up to the mode of padding."""
    sizes = conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride
    rest = conv.padding, conv.dilation, conv.groups, conv.bias is not None
    return *sizes, *rest, conv.padding_mode


def plain(conv: Any, kind: Any) -> Any:
    """A convolution of another class with the same parameters."""
    made = kind(*settings(conv))
    made.weight = nn.Parameter(conv.weight.detach())
    if conv.bias is not None:
        made.bias = nn.Parameter(conv.bias.detach())
    return made


class Conv1d(_ConvNd, nn.Conv1d):
    """A `Conv1d` with a weight that goes through `weight_fake_quant`."""

    _FLOAT_MODULE: Any = nn.Conv1d
    _FLOAT_CONV_MODULE: Any = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """A `Conv2d` with a weight that goes through `weight_fake_quant`."""

    _FLOAT_MODULE: Any = nn.Conv2d
    _FLOAT_CONV_MODULE: Any = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """A `Conv3d` with a weight that goes through `weight_fake_quant`."""

    _FLOAT_MODULE: Any = nn.Conv3d
    _FLOAT_CONV_MODULE: Any = nn.Conv3d
