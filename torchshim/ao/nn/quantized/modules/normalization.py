"""Normalization of integers."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim import nn
from torchshim.ao.nn.quantized.modules.utils import observed_scheme
from torchshim.ops import quantized as ops

__all__ = [
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
]


class _Norm(nn.Module):
    """What these share; stands before the class of floating point."""

    weight: Any
    bias: Any

    def _keep(
        self, weight: Any, bias: Any, scale: Any, zero_point: Any, made: Any
    ) -> None:
        self.weight = weight
        self.bias = bias
        self.register_buffer("scale", torchshim.tensor(scale, **made))
        self.register_buffer("zero_point", torchshim.tensor(zero_point, **made))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def _of(cls, mod: Any, scale: float, zero_point: int) -> Any:
        raise NotImplementedError

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        return cls._of(mod, *observed_scheme(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The layer for one of floating point."""
        return cls._of(mod, float(scale), int(zero_point))


class LayerNorm(_Norm, nn.LayerNorm):
    """`LayerNorm` of a quantized tensor, by the scale of the result."""

    def __init__(
        self,
        normalized_shape: Any,
        weight: Any,
        bias: Any,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        affine = elementwise_affine
        super().__init__(normalized_shape, eps, affine, **made)
        self._keep(weight, bias, scale, zero_point, made)

    def forward(self, input: Any) -> Any:
        return ops.layer_norm(
            input,
            self.normalized_shape,
            weight=self.weight,
            bias=self.bias,
            eps=self.eps,
            output_scale=self.scale,
            output_zero_point=self.zero_point,
        )

    @classmethod
    def _of(cls, mod: Any, scale: float, zero_point: int) -> Any:
        given = mod.normalized_shape, mod.weight, mod.bias, scale, zero_point
        return cls(*given, mod.eps, mod.elementwise_affine)


class GroupNorm(_Norm, nn.GroupNorm):
    """`GroupNorm` of a quantized tensor, by the scale of the result."""

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]  # noqa: RUF012

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        weight: Any,
        bias: Any,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__(num_groups, num_channels, eps, affine, **made)
        self._keep(weight, bias, scale, zero_point, made)

    def forward(self, input: Any) -> Any:
        parts = self.num_groups, self.weight, self.bias, self.eps
        return ops.group_norm(input, *parts, self.scale, self.zero_point)

    @classmethod
    def _of(cls, mod: Any, scale: float, zero_point: int) -> Any:
        given = mod.num_groups, mod.num_channels, mod.weight, mod.bias
        return cls(*given, scale, zero_point, mod.eps, mod.affine)


class _InstanceNorm(_Norm):
    def __init__(
        self,
        num_features: int,
        weight: Any,
        bias: Any,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        options = eps, momentum, affine, track_running_stats
        super().__init__(num_features, *options, **made)
        self._keep(weight, bias, scale, zero_point, made)

    def forward(self, input: Any) -> Any:
        parts = self.weight, self.bias, self.eps
        return ops.instance_norm(input, *parts, self.scale, self.zero_point)

    @classmethod
    def _of(cls, mod: Any, scale: float, zero_point: int) -> Any:
        given = mod.num_features, mod.weight, mod.bias, scale, zero_point
        return cls(*given, mod.eps, mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """`InstanceNorm1d` of a quantized tensor, by the scale of the result."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """`InstanceNorm2d` of a quantized tensor, by the scale of the result."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """`InstanceNorm3d` of a quantized tensor, by the scale of the result."""
