"""What layers of integers share: weights as codes, states, texts."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import torchshim
from torchshim import nn
from torchshim._quantized.schemes import QSCHEMES
from torchshim.nn.modules.module import _addindent

__all__ = ["WeightedQuantizedModule"]

_PER_TENSOR = [QSCHEMES["per_tensor_symmetric"], QSCHEMES["per_tensor_affine"]]
_PER_CHANNEL = [QSCHEMES["per_channel_symmetric"], QSCHEMES["per_channel_affine"]]
_FLOATS = QSCHEMES["per_channel_affine_float_qparams"]


class WeightedQuantizedModule(nn.Module, metaclass=abc.ABCMeta):
    """A layer of integers that can be made of a reference layer."""

    @classmethod
    @abc.abstractmethod
    def from_reference(
        cls, ref_module: Any, output_scale: Any, output_zero_point: Any
    ) -> Any:
        """The layer that computes with integers what a reference layer means."""
        raise NotImplementedError


def _get_weight_observer(observer: Any) -> Any:
    """The observer itself, or the one within a fake quantization."""
    return getattr(observer, "activation_post_process", observer)


def _needs_weight_clamping(observer: Any, dtype: Any) -> bool:
    """Whether an observer allows fewer codes than a dtype has."""
    observer = _get_weight_observer(observer)
    if dtype not in (torchshim.qint8, torchshim.quint8, torchshim.qint32):
        return False
    info = torchshim.iinfo(dtype)
    return observer.quant_min > info.min or observer.quant_max < info.max


def _clamp_weights(qweight: Any, observer: Any, scale: Any, zp: Any) -> Any:
    """A weight with the codes that an observer allows."""
    if not _needs_weight_clamping(observer, qweight.dtype):
        return qweight
    observer = _get_weight_observer(observer)
    codes = qweight.int_repr().clamp(observer.quant_min, observer.quant_max)
    if observer.qscheme in _PER_TENSOR:
        return torchshim._make_per_tensor_quantized_tensor(
            codes, scale.item(), zp.item()
        )
    if observer.qscheme in (*_PER_CHANNEL, _FLOATS):
        return torchshim._make_per_channel_quantized_tensor(
            codes, scale, zp, axis=observer.ch_axis
        )
    raise ValueError(f"Unexpected qscheme {observer.qscheme}")


def _quantize_weight(float_wt: Any, observer: Any) -> Any:
    """A weight of codes, by the scheme that an observer has found."""
    scale, zero = observer.calculate_qparams()
    scheme = observer.qscheme
    if scheme in _PER_TENSOR:
        made = torchshim.quantize_per_tensor(
            float_wt, float(scale), int(zero), torchshim.qint8
        )
    elif scheme in _PER_CHANNEL:
        parts = scale.to(torchshim.double), zero.to(torchshim.int64), observer.ch_axis
        made = torchshim.quantize_per_channel(float_wt, *parts, torchshim.qint8)
    elif scheme == _FLOATS:
        parts = scale.to(torchshim.float), zero.to(torchshim.float), observer.ch_axis
        made = torchshim.quantize_per_channel(float_wt, *parts, observer.dtype)
    else:
        raise ValueError(f"Unexpected qscheme {scheme}")
    return _clamp_weights(made, observer, scale, zero)


def _ntuple_from_first(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """Makes so many of the first of some numbers, unless there are as many."""

    def parse(x: Any) -> tuple[Any, ...]:
        while isinstance(x, Sequence):
            if len(x) == n:
                break
            x = x[0]
        return tuple(repeat(x, n))

    return parse


_pair_from_first = _ntuple_from_first(2)


def _hide_packed_params_repr(self: Any, params: Any) -> str:
    """A layer's text without the layers of a class among its own."""
    extra = self.extra_repr()
    lines = extra.split("\n") if extra else []
    short = len(lines) == 1
    for key, module in self._modules.items():
        if not isinstance(module, params):
            lines.append(f"({key}): {_addindent(repr(module), 2)}")
            short = False
    if short:
        return f"{self._get_name()}({lines[0]})"
    body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
    return f"{self._get_name()}({body})"


def take_scheme(layer: Any, state_dict: Any, prefix: str) -> None:
    """Takes scale and zero point out of a state."""
    layer.scale = float(state_dict.pop(prefix + "scale"))
    layer.zero_point = int(state_dict.pop(prefix + "zero_point"))


def put_scheme(layer: Any, destination: Any, prefix: str) -> None:
    """Puts scale and zero point into a state."""
    destination[prefix + "scale"] = torchshim.tensor(layer.scale)
    destination[prefix + "zero_point"] = torchshim.tensor(layer.zero_point)


def observed_scheme(mod: Any) -> tuple[float, int]:
    """The scale and zero point that the observer of a layer has found."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)
