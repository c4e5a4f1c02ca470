"""Activations of integers."""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

import torchshim
from torchshim import _warnings as warnings
from torchshim import nn
from torchshim.ao.nn import quantizable
from torchshim.ao.nn.quantized.modules.utils import observed_scheme
from torchshim.nn.functional import _get_softmax_dim
from torchshim.ops import quantized as ops

__all__ = [
    "ELU",
    "Hardswish",
    "LeakyReLU",
    "MultiheadAttention",
    "PReLU",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]


class ReLU6(nn.ReLU):
    """`min(max(x, 0), 6)` of a quantized tensor."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return ops.relu6(input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point."""
        return ReLU6(mod.inplace)


def _keep_scheme(
    layer: Any, scale: float, zero_point: int, device: Any, dtype: Any
) -> None:
    """Makes scale and zero point buffers of a layer."""
    made = {"device": device, "dtype": dtype}
    layer.register_buffer("scale", torchshim.tensor(scale, **made))
    layer.register_buffer("zero_point", torchshim.tensor(zero_point, **made))


class Hardswish(nn.Hardswish):
    """`Hardswish` of a quantized tensor, by the scale of the result."""

    def __init__(
        self, scale: float, zero_point: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        _keep_scheme(self, scale, zero_point, device, dtype)

    def forward(self, input: Any) -> Any:
        return ops.hardswish(input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        return Hardswish(*observed_scheme(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The layer for one of floating point."""
        return cls(float(scale), int(zero_point))


class ELU(nn.ELU):
    """`ELU` of a quantized tensor, by the scale of the result."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale = scale
        self.zero_point = zero_point

    def forward(self, input: Any) -> Any:
        if not input.is_quantized:
            raise ValueError("Input to 'quantized.elu' must be quantized!")
        return ops.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        return ELU(*observed_scheme(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The layer for one of floating point."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(nn.LeakyReLU):
    """`LeakyReLU` of a quantized tensor, by the scale of the result."""

    def __init__(
        self,
        scale: float,
        zero_point: int,
        negative_slope: float = 1e-2,
        inplace: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(negative_slope, inplace)
        _keep_scheme(self, scale, zero_point, device, dtype)

    def forward(self, input: Any) -> Any:
        options = self.negative_slope, self.inplace
        return ops.leaky_relu(input, *options, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        return cls(*observed_scheme(mod), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The layer for one of floating point."""
        scheme = float(scale), int(zero_point)
        return cls(*scheme, mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """`Sigmoid` of a quantized tensor, by the scale of the result."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale = output_scale
        self.output_zero_point = output_zero_point

    def forward(self, input: Any) -> Any:
        return ops.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        return cls(*observed_scheme(mod))


class Softmax(nn.Softmax):
    """`Softmax` of a quantized tensor, by the scale of the result."""

    def __init__(
        self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0
    ) -> None:
        super().__init__()
        self.dim = dim
        self.scale = scale
        self.zero_point = zero_point

    def forward(self, input: Any) -> Any:
        dim = self.dim
        if dim is None:
            dim = _get_softmax_dim("softmax", input.dim(), 3)
        return ops.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        return Softmax(mod.dim, *observed_scheme(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The layer for one of floating point."""
        return cls(mod.dim, float(scale), int(zero_point))


class MultiheadAttention(quantizable.MultiheadAttention):
    """Attention with layers of integers, made of a quantizable one."""

    _FLOAT_MODULE: Any = quantizable.MultiheadAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> NoReturn:
        """NotImplementedError: a layer is observed first."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. "
            "Please, see the examples on quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The layer with its parts converted."""
        quantization = importlib.import_module("torchshim.ao.quantization")
        made = quantization.convert(
            other,
            mapping=None,
            inplace=False,
            remove_qconfig=True,
            convert_custom_config_dict=None,
        )
        made.__class__ = cls
        for name in ("bias_k", "bias_v"):
            bias = getattr(made, name)
            if bias is not None:
                del made._parameters[name]
                scheme = torchshim._choose_qparams_per_tensor(bias, reduce_range=False)
                bias = torchshim.quantize_per_tensor(bias, *scheme, torchshim.quint8)
                setattr(made, name, bias)
        del made.in_proj_weight
        del made.in_proj_bias
        return made


class PReLU(nn.Module):
    """`PReLU` of a quantized tensor with a quantized weight, by the result's scale."""

    def __init__(
        self, output_scale: float, output_zero_point: int, num_parameters: int = 1
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.scale = output_scale
        self.zero_point = output_zero_point
        weight = torchshim.randn(num_parameters, dtype=torchshim.float)
        self.set_weight(torchshim.quantize_per_tensor(weight, 1.0, 0, torchshim.quint8))

    def set_weight(self, w: Any) -> None:
        """Takes another weight."""
        self.weight = w

    def forward(self, input: Any) -> Any:
        return ops.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        return cls.from_reference(mod, *observed_scheme(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The layer for one of floating point; its qconfig observes the weight."""
        made = cls(float(scale), int(zero_point), mod.num_parameters)
        weight, observer = mod.weight.float(), mod.qconfig.weight()
        observer(weight)
        if observer.dtype != torchshim.quint8:
            warnings.warn(
                "PReLU's weight observer should have dtype quint8 but got "
                f"{observer.dtype}",
                stacklevel=2,
            )
        own, zero = observer.calculate_qparams()
        scheme = float(own), int(zero), torchshim.quint8
        made.set_weight(torchshim.quantize_per_tensor(weight, *scheme))
        return made
