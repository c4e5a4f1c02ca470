"""Linear layers and activations of integers."""

from __future__ import annotations

from typing import Any

from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn import quantized as nnq
from torchshim.ops import quantized as ops

__all__ = ["LinearLeakyReLU", "LinearReLU", "LinearTanh"]


class LinearReLU(nnq.Linear):
    """A linear layer and a ReLU of integers."""

    _FLOAT_MODULE: Any = nni.LinearReLU

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Any) -> Any:
        packed = self._packed_params._packed_params
        return ops.linear_relu(x, packed, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"

    @classmethod
    def from_reference(
        cls, ref_linear_relu: Any, output_scale: Any, output_zero_point: Any
    ) -> Any:
        """The layer that fused reference layers mean."""
        scheme = output_scale, output_zero_point
        return super().from_reference(ref_linear_relu[0], *scheme)


class _Activated(nnq.Linear):
    """A linear layer and an activation that only the engine oneDNN has."""

    @classmethod
    def _options(cls, activation: Any) -> tuple[Any, ...]:
        """Arguments that the activation gives."""
        return ()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for fused ones of floating point that were observed."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Input float module should be {cls.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        linear, observer = mod[0], mod.qconfig.weight()
        observer(linear.weight)
        scheme = mod.activation_post_process.calculate_qparams()
        return cls._of(linear, observer, *scheme, *cls._options(mod[1]))

    @classmethod
    def from_reference(
        cls, ref_mod: Any, output_scale: Any, output_zero_point: Any
    ) -> Any:
        """The layer that fused reference layers mean."""
        linear = ref_mod[0]
        sizes = linear.in_features, linear.out_features
        made = cls(*sizes, *cls._options(ref_mod[1]))
        made.set_weight_bias(linear.get_quantized_weight(), linear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class LinearLeakyReLU(_Activated):
    """A linear layer and a leaky ReLU of integers."""

    _FLOAT_MODULE: Any = nni.LinearLeakyReLU

    def __init__(
        self,
        in_features: int,
        out_features: int,
        negative_slope: float,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        packed = self._packed_params._packed_params
        scheme = self.scale, self.zero_point
        return ops.linear_leaky_relu(x, packed, *scheme, self.negative_slope)

    def _get_name(self) -> str:
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def _options(cls, activation: Any) -> tuple[Any, ...]:
        return (activation.negative_slope,)


class LinearTanh(_Activated):
    """A linear layer and a hyperbolic tangent of integers."""

    _FLOAT_MODULE: Any = nni.LinearTanh

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Any) -> Any:
        packed = self._packed_params._packed_params
        return ops.linear_tanh(x, packed, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearTanh"
