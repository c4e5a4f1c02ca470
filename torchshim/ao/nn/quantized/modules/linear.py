"""Linear layers of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim import nn
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn.intrinsic import qat as nniqat
from torchshim.ao.nn.quantized.modules.utils import (
    WeightedQuantizedModule,
    _hide_packed_params_repr,
    _quantize_weight,
    put_scheme,
    take_scheme,
)
from torchshim.nn.utils.fusion import fuse_linear_bn_weights
from torchshim.nn.utils.parametrize import type_before_parametrizations
from torchshim.ops import quantized as ops

__all__ = ["Linear", "LinearPackedParams"]

_NO_DTYPE = "Unsupported dtype on dynamic quantized linear!"


class LinearPackedParams(nn.Module):
    """The weight and the bias of a linear layer: quantized, or of halves."""

    _version = 3

    def __init__(self, dtype: Any = None) -> None:
        super().__init__()
        self.dtype = torchshim.qint8 if dtype is None else dtype
        self.set_weight_bias(empty_weight([1, 1], self.dtype, _NO_DTYPE), None)

    def set_weight_bias(self, weight: Any, bias: Any) -> None:
        """Takes another weight and bias."""
        if self.dtype == torchshim.qint8:
            self._packed_params = ops.linear_prepack(weight, bias)
        elif self.dtype == torchshim.float16:
            self._packed_params = ops.linear_prepack_fp16(weight, bias)
        else:
            raise RuntimeError(_NO_DTYPE)

    def _weight_bias(self) -> tuple[Any, Any]:
        if self.dtype == torchshim.qint8:
            return ops.linear_unpack(self._packed_params)
        if self.dtype == torchshim.float16:
            return ops.linear_unpack_fp16(self._packed_params)
        raise RuntimeError(_NO_DTYPE)

    def forward(self, x: Any) -> Any:
        return x

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version")
        if version is None or version < 2:
            self.dtype = torchshim.qint8
        else:
            self.dtype = state_dict.pop(prefix + "dtype")
        if version is None or version < 3:
            parts = [state_dict.pop(prefix + name) for name in ("weight", "bias")]
            self.set_weight_bias(*parts)
        if version == 3:
            self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def __repr__(self) -> str:
        return repr(self._weight_bias())


def empty_weight(
    shape: list[int],
    dtype: Any,
    complaint: str = "Unsupported dtype specified for quantized Linear!",
) -> Any:
    """A weight of zeros; RuntimeError for a dtype that no weight has."""
    if dtype == torchshim.qint8:
        return torchshim._empty_affine_quantized(
            shape, scale=1, zero_point=0, dtype=dtype
        )
    if dtype == torchshim.float16:
        return torchshim.zeros(shape, dtype=torchshim.float)
    raise RuntimeError(complaint)


class Linear(WeightedQuantizedModule):
    """A linear layer of quantized tensors, with a quantized result.

    `scale` and `zero_point` are those of the result. Follows
    ``torch.ao.nn.quantized.Linear``.

    >>> import torchshim as torch
    >>> m = Linear(20, 30)
    >>> x = torch.quantize_per_tensor(torch.randn(128, 20), 1.0, 0, torch.quint8)
    >>> m(x).shape
    torch.Size([128, 30])
    """

    _version = 3
    _FLOAT_MODULE: Any = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        dtype = torchshim.qint8 if dtype is None else dtype
        self.in_features = in_features
        self.out_features = out_features
        weight = empty_weight([out_features, in_features], dtype)
        bias = torchshim.zeros(out_features, dtype=torchshim.float) if bias_ else None
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, bias)
        self.scale = 1.0
        self.zero_point = 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return _hide_packed_params_repr(self, LinearPackedParams)

    def forward(self, x: Any) -> Any:
        packed = self._packed_params._packed_params
        return ops.linear(x, packed, self.scale, self.zero_point)

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        put_scheme(self, destination, prefix)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        take_scheme(self, state_dict, prefix)
        if local_metadata.get("version") in (None, 1):
            for name in ("weight", "bias"):
                value = state_dict.pop(prefix + name)
                state_dict[f"{prefix}_packed_params.{name}"] = value
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def _weight_bias(self) -> tuple[Any, Any]:
        return self._packed_params._weight_bias()

    def weight(self) -> Any:
        """The weight."""
        return self._weight_bias()[0]

    def bias(self) -> Any:
        """The bias."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Takes another weight and bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed, or trained so."""
        if hasattr(mod, "weight_fake_quant"):
            if type_before_parametrizations(mod) == nniqat.LinearBn1d:
                mod.weight, mod.bias = fuse_linear_bn_weights(
                    mod.weight, mod.bias, *mod._statistics()
                )
            observer = mod.weight_fake_quant
            activation = mod.activation_post_process
        else:
            cls._check_float(mod)
            activation = mod.activation_post_process
            if type_before_parametrizations(mod) == nni.LinearReLU:
                mod = mod[0]
            observer = mod.qconfig.weight()
        if not use_precomputed_fake_quant:
            observer(mod.weight)
        scale, zero_point = activation.calculate_qparams()
        return cls._of(mod, observer, scale, zero_point)

    @classmethod
    def _check_float(cls, mod: Any) -> None:
        known = cls._FLOAT_MODULE
        known = known if isinstance(known, Sequence) else [known]
        if type_before_parametrizations(mod) not in known:
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float only works for "
                f"{', '.join(each.__name__ for each in known)}, but got: {type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")

    @classmethod
    def _of(
        cls, mod: Any, observer: Any, scale: Any, zero_point: Any, *options: Any
    ) -> Any:
        """The layer with the parameters of one of floating point, by an observer."""
        if observer.dtype != torchshim.qint8:
            raise AssertionError(
                f"Weight observer must have dtype torch.qint8, got {observer.dtype}"
            )
        weight = _quantize_weight(mod.weight.float(), observer)
        sizes = mod.in_features, mod.out_features, *options
        made = cls(*sizes, dtype=observer.dtype)
        made.set_weight_bias(weight, mod.bias)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def from_reference(
        cls, ref_qlinear: Any, output_scale: Any, output_zero_point: Any
    ) -> Any:
        """The layer that computes with integers what a reference layer means."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made
