"""Recurrent layers that say how their weights would be quantized."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim._quantized.schemes import QSCHEMES
from torchshim.ao.nn.quantized.reference.modules.utils import (
    _quantize_and_dequantize_weight,
    _quantize_weight,
    keep_qparams,
    usual_qparams,
)

__all__ = [
    "GRU",
    "LSTM",
    "GRUCell",
    "LSTMCell",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "get_quantized_weight",
]

_SCHEMES = None, QSCHEMES["per_tensor_affine"], QSCHEMES["per_channel_affine"]
_ENDS = ("_qscheme", "_dtype", "_scale", "_zero_point", "_axis_int")


def _get_weight_and_quantization_params(module: Any, wn: str) -> list[Any]:
    """A weight, and what is said of it."""
    said = (getattr(module, wn + end, None) for end in _ENDS)
    return [getattr(module, wn), *said]


def get_quantized_weight(module: Any, wn: str) -> Any:
    """A weight of a layer, quantized; None for a layer without it."""
    if not hasattr(module, wn):
        return None
    return _quantize_weight(*_get_weight_and_quantization_params(module, wn))


def _get_quantize_and_dequantized_weight(module: Any, wn: str) -> Any:
    """A weight of a layer, rounded; None for a layer without it."""
    if not hasattr(module, wn):
        return None
    given = _get_weight_and_quantization_params(module, wn)
    return _quantize_and_dequantize_weight(*given)


class _Said(nn.Module):
    """What cells and layers share: what is said of each weight."""

    def _init_weight_qparams_dict(self, weight_qparams_dict: Any, device: Any) -> None:
        if weight_qparams_dict is None:
            raise AssertionError("weight_qparams_dict must not be None")
        self.is_decomposed = weight_qparams_dict["is_decomposed"]
        for key, qparams in weight_qparams_dict.items():
            if key != "is_decomposed":
                keep_qparams(self, key, qparams, device, _SCHEMES)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"


_CELL = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class RNNCellBase(_Said, nn.RNNCellBase):
    """What the cells share; stands before the cell of floating point."""

    def _say(self, weight_qparams_dict: Any, device: Any) -> None:
        said = weight_qparams_dict
        if said is None:
            said = {"is_decomposed": False}
            said |= {name: usual_qparams() for name in _CELL[:2]}
        if len(said) != 3:
            raise AssertionError(
                "Expected length for weight_qparams_dict to be 3 for "
                f"QuantizedRNNCellBase(Reference), got {len(said)}"
            )
        self._init_weight_qparams_dict(said, device)

    def get_quantized_weight_ih(self) -> Any:
        """The weight of inputs, quantized."""
        return get_quantized_weight(self, "weight_ih")

    def get_quantized_weight_hh(self) -> Any:
        """The weight of hidden states, quantized."""
        return get_quantized_weight(self, "weight_hh")

    def get_weight_ih(self) -> Any:
        """The weight of inputs, rounded."""
        return _get_quantize_and_dequantized_weight(self, "weight_ih")

    def get_weight_hh(self) -> Any:
        """The weight of hidden states, rounded."""
        return _get_quantize_and_dequantized_weight(self, "weight_hh")

    def _weights(self) -> tuple[Any, ...]:
        weights = self.get_weight_ih(), self.get_weight_hh()
        return *weights, self.bias_ih, self.bias_hh

    @classmethod
    def _options(cls, mod: Any) -> tuple[Any, ...]:
        """Arguments that only some cells have."""
        return ()

    @classmethod
    def from_float(
        cls,
        mod: Any,
        weight_qparams_dict: Any,
        use_precomputed_fake_quant: bool = False,
    ) -> Any:
        """The cell with the parameters of one of floating point."""
        sizes = mod.input_size, mod.hidden_size, mod.bias, *cls._options(mod)
        weight = mod.weight_ih
        given: tuple[Any, ...] = *sizes, weight.device, weight.dtype
        made = cls(*given, weight_qparams_dict)  # pyright: ignore[reportCallIssue]
        for name in _CELL:
            setattr(made, name, getattr(mod, name))
        return made


class RNNCell(RNNCellBase, nn.RNNCell):
    """An `RNNCell` with weights that are rounded in each call."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:
        made = nonlinearity, device, dtype
        nn.RNNCell.__init__(self, input_size, hidden_size, bias, *made)
        self._say(weight_qparams_dict, device)

    @classmethod
    def _options(cls, mod: Any) -> tuple[Any, ...]:
        return (mod.nonlinearity,)


class LSTMCell(RNNCellBase, nn.LSTMCell):
    """An `LSTMCell` with weights that are rounded in each call."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:
        nn.LSTMCell.__init__(self, input_size, hidden_size, bias, device, dtype)
        self._say(weight_qparams_dict, device)


class GRUCell(RNNCellBase, nn.GRUCell):
    """A `GRUCell` with weights that are rounded in each call."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:
        nn.GRUCell.__init__(self, input_size, hidden_size, bias, device, dtype)
        self._say(weight_qparams_dict, device)


class RNNBase(_Said, nn.RNNBase):
    """What the layers share; stands before the layer of floating point."""

    def __init__(self, *args: Any, weight_qparams_dict: Any = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        said = weight_qparams_dict
        if said is None:
            names = (n for n in self._flat_weights_names if n.startswith("weight"))
            said = {"is_decomposed": False, **{n: usual_qparams() for n in names}}
        self._init_weight_qparams_dict(said, kwargs.get("device"))

    def get_quantized_weight_bias_dict(self) -> dict[str, Any]:
        """The weights, quantized, and the biases, by their names."""
        return {
            name: get_quantized_weight(self, name)
            if name.startswith("weight")
            else getattr(self, name, None)
            for name in self._flat_weights_names
        }

    def get_flat_weights(self) -> list[Any]:
        """The weights, rounded, and the biases."""
        return [
            _get_quantize_and_dequantized_weight(self, name)
            if name.startswith("weight")
            else getattr(self, name, None)
            for name in self._flat_weights_names
        ]

    def _options(self) -> tuple[Any, ...]:
        _, *rest = super()._options()
        return self.get_flat_weights(), *rest

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any) -> Any:
        """The layer with the parameters of one of floating point."""
        sizes = mod.input_size, mod.hidden_size, mod.num_layers, mod.bias
        rest = mod.batch_first, mod.dropout, mod.bidirectional
        made = cls(*sizes, *rest, weight_qparams_dict=weight_qparams_dict)
        for name in mod._flat_weights_names:
            setattr(made, name, getattr(mod, name))
        return made


class LSTM(RNNBase, nn.LSTM):
    """An `LSTM` with weights that are rounded in each call."""


class GRU(RNNBase, nn.GRU):
    """A `GRU` with weights that are rounded in each call."""
