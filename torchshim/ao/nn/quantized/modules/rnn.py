"""LSTM with cells of integers."""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

from torchshim.ao.nn import quantizable

__all__ = ["LSTM"]


class LSTM(quantizable.LSTM):
    """An LSTM of quantized tensors; made of a quantizable one (`from_observed`)."""

    _FLOAT_MODULE: Any = quantizable.LSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """NotImplementedError: a layer is observed first."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module. "
            "Please, see the examples on quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The layer with its parts converted."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(
                f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}"
            )
        quantization = importlib.import_module("torchshim.ao.quantization")
        made = quantization.convert(other, inplace=False, remove_qconfig=True)
        made.__class__ = cls
        return made
