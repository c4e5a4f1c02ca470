"""Steps of recurrent layers with weights of integers."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim import nn
from torchshim.ao.nn.quantized.dynamic.modules.linear import weight_observer
from torchshim.ao.nn.quantized.modules.utils import _quantize_weight
from torchshim.ops import quantized as ops


def pack_weight_bias(qweight: Any, bias: Any, dtype: Any) -> Any:
    """A weight and a bias as operators take them: quantized, or of halves."""
    if dtype == torchshim.qint8:
        return ops.linear_prepack(qweight, bias)
    return ops.linear_prepack_fp16(qweight, bias)


def observed_dtype(mod: Any) -> Any:
    """The dtype that weights get by a layer's qconfig."""
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    dtype = weight_observer(mod.qconfig).dtype
    if dtype not in (torchshim.qint8, torchshim.float16):
        raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")
    return dtype


def observed_weight(mod: Any, weight: Any, dtype: Any) -> Any:
    """A weight by an observer of a layer's qconfig."""
    if dtype != torchshim.qint8:
        return weight.float()
    observer = weight_observer(mod.qconfig)
    observer(weight)
    return _quantize_weight(weight.float(), observer)


class RNNCellBase(nn.Module):
    """What the cells share."""

    __constants__ = ["input_size", "hidden_size", "bias"]  # noqa: RUF012

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        num_chunks: int = 4,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        dtype = torchshim.qint8 if dtype is None else dtype
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_dtype = dtype
        gates = num_chunks * hidden_size
        for name in ("bias_ih", "bias_hh"):
            if bias:
                setattr(self, name, torchshim.randn(gates).to(dtype=torchshim.float))
            else:
                self.register_parameter(name, None)
        weights = [torchshim.randn(gates, n) for n in (input_size, hidden_size)]
        weights = [w.to(torchshim.float) for w in weights]
        if dtype == torchshim.qint8:
            scheme = {"scale": 1, "zero_point": 0, "dtype": torchshim.qint8}
            weights = [torchshim.quantize_per_tensor(w, **scheme) for w in weights]
        self._pack(*weights, self.bias_ih, self.bias_hh)

    def _pack(self, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> None:
        dtype = self.weight_dtype
        self._packed_weight_ih = pack_weight_bias(w_ih, b_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(w_hh, b_hh, dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedRNNBase"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def check_forward_input(self, input: Any) -> None:
        """RuntimeError for an input of another size."""
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)}, expected "
                f"{self.input_size}"
            )

    def check_forward_hidden(self, input: Any, hx: Any, hidden_label: str = "") -> None:
        """RuntimeError for a state of another size."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} "
                f"batch size {hx.size(0)}"
            )
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, "
                f"expected {self.hidden_size}"
            )

    def _zeros(self, input: Any) -> Any:
        made = {"dtype": input.dtype, "device": input.device}
        return torchshim.zeros(input.size(0), self.hidden_size, **made)

    @property
    def _parts(self) -> tuple[Any, ...]:
        packed = self._packed_weight_ih, self._packed_weight_hh
        return *packed, self.bias_ih, self.bias_hh

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The cell for one of floating point with a qconfig."""
        kinds = {nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell, nn.RNNCell: RNNCell}
        if type(mod) not in kinds:
            raise AssertionError(
                "nn.quantized.dynamic.RNNCellBase.from_float only works for "
                "nn.LSTMCell, nn.GRUCell and nn.RNNCell"
            )
        dtype = observed_dtype(mod)
        options = {"bias": mod.bias, "dtype": dtype}
        if type(mod) is nn.RNNCell:
            options["nonlinearity"] = mod.nonlinearity
        made = kinds[type(mod)](mod.input_size, mod.hidden_size, **options)
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        weights = (
            observed_weight(mod, w, dtype) for w in (mod.weight_ih, mod.weight_hh)
        )
        made._pack(*weights, mod.bias_ih, mod.bias_hh)
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The cell that a reference cell means."""
        ref = ref_mod
        if not hasattr(ref, "weight_ih_dtype"):
            raise AssertionError(
                "We are assuming weight_ih exists in reference module, may need to "
                "relax the assumption to support the use case"
            )
        given = [ref.input_size, ref.hidden_size, ref.bias]
        if hasattr(ref, "nonlinearity"):
            given.append(ref.nonlinearity)
        made = cls(*given, dtype=ref.weight_ih_dtype)
        weights = ref.get_quantized_weight_ih(), ref.get_quantized_weight_hh()
        made._pack(*weights, ref.bias_ih, ref.bias_hh)
        return made

    def _weight_bias(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {"weight": {}, "bias": {}}
        packed = self._packed_weight_ih, self._packed_weight_hh
        for which, each in zip(("ih", "hh"), packed, strict=True):
            weight, bias = each.__getstate__()[0]
            found["weight"][f"weight_{which}"] = weight
            found["bias"][f"bias_{which}"] = bias
        return found

    def get_weight(self) -> dict[str, Any]:
        """The weights, by their names."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Any]:
        """The biases, by their names."""
        return self._weight_bias()["bias"]

    def set_weight_bias(self, weight_bias_dict: Any) -> None:
        """Takes other weights and biases."""
        weights, biases = weight_bias_dict["weight"], weight_bias_dict["bias"]
        weights = weights["weight_ih"], weights["weight_hh"]
        self._pack(*weights, biases["bias_ih"], biases["bias_hh"])

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "_packed_weight_ih"] = self._packed_weight_ih
        destination[prefix + "_packed_weight_hh"] = self._packed_weight_hh

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
        self._packed_weight_ih = state_dict.pop(prefix + "_packed_weight_ih")
        self._packed_weight_hh = state_dict.pop(prefix + "_packed_weight_hh")
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class RNNCell(RNNCellBase):
    """A step of an Elman network with weights of integers."""

    __constants__ = [  # noqa: RUF012
        *("input_size", "hidden_size", "bias", "nonlinearity")
    ]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _get_name(self) -> str:
        return "DynamicQuantizedRNNCell"

    def forward(self, input: Any, hx: Any = None) -> Any:
        self.check_forward_input(input)
        hx = self._zeros(input) if hx is None else hx
        self.check_forward_hidden(input, hx, "")
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        run = getattr(ops, f"quantized_rnn_{self.nonlinearity}_cell_dynamic")
        return run(input, hx, *self._parts)


class LSTMCell(RNNCellBase):
    """A step of an LSTM with weights of integers.

    >>> import torchshim as torch
    >>> hx, cx = LSTMCell(10, 20)(torch.randn(3, 10))
    >>> hx.shape
    torch.Size([3, 20])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, num_chunks=4, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTMCell"

    def forward(self, input: Any, hx: Any = None) -> Any:
        self.check_forward_input(input)
        if hx is None:
            zeros = self._zeros(input)
            hx = zeros, zeros
        self.check_forward_hidden(input, hx[0], "[0]")
        self.check_forward_hidden(input, hx[1], "[1]")
        return ops.quantized_lstm_cell_dynamic(input, hx, *self._parts)


class GRUCell(RNNCellBase):
    """A step of gated recurrent units with weights of integers."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRUCell"

    def forward(self, input: Any, hx: Any = None) -> Any:
        self.check_forward_input(input)
        hx = self._zeros(input) if hx is None else hx
        self.check_forward_hidden(input, hx, "")
        return ops.quantized_gru_cell_dynamic(input, hx, *self._parts)
