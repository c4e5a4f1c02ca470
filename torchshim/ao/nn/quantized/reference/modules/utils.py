"""What reference layers share: a weight of floating point, and how it is rounded."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim import nn
from torchshim._quantized.schemes import QSCHEMES

__all__ = ["ReferenceQuantizedModule"]

_PER_TENSOR = QSCHEMES["per_tensor_affine"]
_PER_CHANNEL = (
    QSCHEMES["per_channel_affine"],
    QSCHEMES["per_channel_affine_float_qparams"],
)
_QUANTIZED = ("quint8", "qint8", "quint4x2", "qint32")
_ALONE = {"qscheme": _PER_TENSOR, "scale": 1.0, "zero_point": 0}


def usual_qparams() -> dict[str, Any]:
    """How weights are rounded where nothing is said of it."""
    return {**_ALONE, "dtype": torchshim.quint8}


def _tensor_of(value: Any, dtype: Any, device: Any) -> Any:
    """A copy of a tensor, or one of a number."""
    if isinstance(value, torchshim.Tensor):
        return value.detach().clone()
    return torchshim.tensor(value, dtype=dtype, device=device)


def keep_qparams(
    layer: Any, name: str, qparams: Any, device: Any, schemes: tuple[Any, ...]
) -> None:
    """Makes what is said of a weight attributes and buffers of a layer."""
    scheme, dtype = qparams["qscheme"], qparams["dtype"]
    setattr(layer, f"{name}_qscheme", scheme)
    setattr(layer, f"{name}_dtype", dtype)
    if scheme not in schemes:
        kind = "reference quantized " if name == "weight" else ""
        raise AssertionError(
            f"qscheme: {scheme} is not supported in {kind}{layer._get_name()}"
        )
    known = dtype is not None and dtype.name in _QUANTIZED
    if name != "weight" and scheme is None:
        return
    if name == "weight" and not known:
        qparams = {"scale": 1.0, "zero_point": 0, "qscheme": None}
        scheme = None
    parts = {"scale": torchshim.float, "zero_point": torchshim.int}
    for part, kind in parts.items():
        layer.register_buffer(f"{name}_{part}", _tensor_of(qparams[part], kind, device))
    axis = qparams["axis"] if scheme in _PER_CHANNEL else 0
    layer.register_buffer(f"{name}_axis", _tensor_of(axis, torchshim.int, device))
    setattr(layer, f"{name}_axis_int", getattr(layer, f"{name}_axis").item())


class ReferenceQuantizedModule(nn.Module):
    """A layer of floating point with `weight_scale`, `weight_zero_point` and so on."""

    weight: Any
    weight_scale: Any
    weight_zero_point: Any
    weight_axis: Any
    weight_axis_int: int
    weight_qscheme: Any
    weight_dtype: Any

    def _init_weight_qparams(self, weight_qparams: Any, device: Any) -> None:
        qparams = usual_qparams() if weight_qparams is None else weight_qparams
        schemes = None, _PER_TENSOR, *_PER_CHANNEL
        keep_qparams(self, "weight", qparams, device, schemes)
        self.is_decomposed: bool = qparams.get("is_decomposed", False)
        self.weight_quant_min: int | None = qparams.get("quant_min")
        self.weight_quant_max: int | None = qparams.get("quant_max")

    def _scheme(self) -> tuple[Any, Any, Any, Any, int]:
        for name in ("weight_scale", "weight_zero_point"):
            if not isinstance(getattr(self, name), torchshim.Tensor):
                raise AssertionError(f"{name} must be a Tensor")
        kind = self.weight_qscheme, self.weight_dtype
        return *kind, self.weight_scale, self.weight_zero_point, self.weight_axis_int

    @property
    def _range(self) -> tuple[int | None, int | None]:
        return self.weight_quant_min, self.weight_quant_max

    def get_weight(self) -> Any:
        """The weight, rounded."""
        if self.is_decomposed:
            return _quantize_and_dequantize_weight_decomposed(
                self.weight, *self._scheme(), *self._range
            )
        return _quantize_and_dequantize_weight(self.weight, *self._scheme())

    def get_quantized_weight(self) -> Any:
        """The weight, quantized; as plain integers where that was asked for."""
        if self.is_decomposed:
            return _quantize_weight_decomposed(
                self.weight, *self._scheme(), *self._range
            )
        return _quantize_weight(self.weight, *self._scheme())

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        parts = self.weight_scale, self.weight_zero_point, self.weight_axis
        kind = self.weight_qscheme, self.weight_dtype
        _save_weight_qparams(destination, prefix, *kind, *parts)

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
        for key in _get_weight_qparam_keys(state_dict, prefix):
            setattr(self, key, state_dict.pop(prefix + key))
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


_INTEGERS = {"quint8": torchshim.uint8, "qint8": torchshim.int8}
_INTEGERS["qint32"] = torchshim.int32


def _integers(
    weight_qscheme: Any, weight_dtype: Any, low: int | None, high: int | None
) -> tuple[Any, int, int]:
    """The dtype of the codes of a weight, the least and the greatest of them."""
    known = weight_qscheme in (_PER_TENSOR, *_PER_CHANNEL)
    if not known or weight_dtype.name not in _INTEGERS:
        raise ValueError(
            f"Unsupported dtype and qscheme: {weight_dtype}, {weight_qscheme}"
        )
    kind = _INTEGERS[weight_dtype.name]
    if low is None or high is None:
        limits = torchshim.iinfo(kind)
        return kind, limits.min, limits.max
    return kind, low, high


def _along_axis(weight: Any, qscheme: Any, axis: int, *parts: Any) -> list[Any]:
    """Scale and zero point as they broadcast over a weight."""
    if qscheme == _PER_TENSOR:
        return list(parts)
    shape = [1] * weight.dim()
    shape[axis] = -1
    return [part.view(shape) for part in parts]


def _quantize_weight_decomposed(
    weight: Any,
    weight_qscheme: Any,
    weight_dtype: Any,
    weight_scale: Any,
    weight_zero_point: Any,
    weight_axis: int,
    weight_quant_min: int | None,
    weight_quant_max: int | None,
) -> Any:
    """The codes of a weight, as plain integers."""
    ends = weight_quant_min, weight_quant_max
    kind, low, high = _integers(weight_qscheme, weight_dtype, *ends)
    parts = weight_scale, weight_zero_point
    scale, zero = _along_axis(weight, weight_qscheme, weight_axis, *parts)
    steps = (weight.float() * (1.0 / scale.float())).round() + zero
    return steps.clamp(low, high).to(kind)


def _dequantize_weight_decomposed(
    weight: Any,
    weight_qscheme: Any,
    weight_dtype: Any,
    weight_scale: Any,
    weight_zero_point: Any,
    weight_axis: int,
    weight_quant_min: int | None,
    weight_quant_max: int | None,
) -> Any:
    """What the codes of a weight stand for."""
    _integers(weight_qscheme, weight_dtype, weight_quant_min, weight_quant_max)
    parts = weight_scale, weight_zero_point
    scale, zero = _along_axis(weight, weight_qscheme, weight_axis, *parts)
    return (weight.float() - zero) * scale.float()


def _quantize_and_dequantize_weight_decomposed(weight: Any, *said: Any) -> Any:
    """A weight, rounded as its scheme says; as it is where there is none."""
    if said[0] not in (_PER_TENSOR, *_PER_CHANNEL):
        return weight
    codes = _quantize_weight_decomposed(weight, *said)
    return _dequantize_weight_decomposed(codes, *said)


def _quantize_weight(
    weight: Any,
    weight_qscheme: Any,
    weight_dtype: Any,
    weight_scale: Any,
    weight_zero_point: Any,
    weight_axis_int: Any,
) -> Any:
    """A weight as codes, or as halves; ValueError for other dtypes and schemes."""
    if weight_dtype == torchshim.float16:
        return weight.to(weight_dtype)
    name = "" if weight_dtype is None else weight_dtype.name
    known = name in _QUANTIZED
    if known and weight_qscheme == _PER_TENSOR and name != "quint4x2":
        return torchshim.quantize_per_tensor(
            weight, weight_scale, weight_zero_point, weight_dtype
        )
    if known and weight_qscheme in _PER_CHANNEL:
        parts = weight_scale, weight_zero_point, weight_axis_int
        return torchshim.quantize_per_channel(weight, *parts, weight_dtype)
    raise ValueError(f"Unsupported dtype and qscheme: {weight_dtype}, {weight_qscheme}")


def _quantize_and_dequantize_weight(
    weight: Any,
    weight_qscheme: Any,
    weight_dtype: Any,
    weight_scale: Any,
    weight_zero_point: Any,
    weight_axis_int: Any,
) -> Any:
    """A weight, rounded as its scheme says; as it is where there is none."""
    if weight_qscheme not in (_PER_TENSOR, *_PER_CHANNEL):
        return weight
    kind = weight_qscheme, weight_dtype
    parts = weight_scale, weight_zero_point, weight_axis_int
    return _quantize_weight(weight, *kind, *parts).dequantize()


def _save_weight_qparams(
    destination: Any,
    prefix: str,
    weight_qscheme: Any,
    weight_dtype: Any,
    weight_scale: Any,
    weight_zero_point: Any,
    weight_axis: Any,
) -> None:
    """Puts what is said of a weight into a state."""
    destination[prefix + "weight_qscheme"] = weight_qscheme
    destination[prefix + "weight_dtype"] = weight_dtype
    if weight_qscheme is not None:
        destination[prefix + "weight_scale"] = weight_scale
        destination[prefix + "weight_zero_point"] = weight_zero_point
        if weight_qscheme == _PER_CHANNEL[0]:
            destination[prefix + "weight_axis"] = weight_axis


def _get_weight_qparam_keys(state_dict: Any, prefix: str) -> list[str]:
    """The names under which a state has what is said of a weight."""
    keys = ["weight_qscheme", "weight_dtype"]
    if state_dict[prefix + "weight_qscheme"] is not None:
        keys += ["weight_scale", "weight_zero_point"]
    return keys
