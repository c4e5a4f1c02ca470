"""An LSTM made of layers, each of which can be observed and quantized."""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

import torchshim
from torchshim import _warnings as warnings
from torchshim import nn

__all__ = ["LSTM", "LSTMCell"]

_GATES = ("input", "forget", "cell", "output")


def _functional() -> Any:
    """Functions that can be observed; their package needs this one."""
    return importlib.import_module("torchshim.ao.nn.quantized").FloatFunctional()


class LSTMCell(nn.Module):
    """A step of an LSTM. Follows ``torch.ao.nn.quantizable.LSTMCell``.

    >>> import torchshim as torch
    >>> hx, cx = LSTMCell(10, 20)(torch.randn(3, 10))
    >>> hx.shape
    torch.Size([3, 20])
    """

    _FLOAT_MODULE: Any = nn.LSTMCell
    __constants__ = ["split_gates"]  # noqa: RUF012

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__()
        self.input_size = input_dim
        self.hidden_size = hidden_dim
        self.bias = bias
        self.split_gates = split_gates
        sizes = input_dim, hidden_dim
        if not split_gates:
            self.igates: Any
            self.hgates: Any
            self.igates, self.hgates = (
                nn.Linear(n, 4 * hidden_dim, bias=bias, **made) for n in sizes
            )
            self.gates: Any = _functional()
        else:
            self.igates, self.hgates, self.gates = (nn.ModuleDict() for _ in range(3))
            for gate in _GATES:
                for layers, n in zip((self.igates, self.hgates), sizes, strict=True):
                    layers[gate] = nn.Linear(n, hidden_dim, bias=bias, **made)
                self.gates[gate] = _functional()
        self.input_gate = nn.Sigmoid()
        self.forget_gate = nn.Sigmoid()
        self.cell_gate = nn.Tanh()
        self.output_gate = nn.Sigmoid()
        self.fgate_cx = _functional()
        self.igate_cgate = _functional()
        self.fgate_cx_igate_cgate = _functional()
        self.ogate_cy = _functional()
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype = torchshim.quint8
        self.cell_state_dtype = torchshim.quint8

    def _sums(self, x: Any, hx: Any) -> Any:
        """What goes into each gate."""
        if not self.split_gates:
            return self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        layers = (part.values() for part in (self.gates, self.igates, self.hgates))
        return [add.add(i(x), h(hx)) for add, i, h in zip(*layers, strict=True)]

    def forward(self, x: Any, hidden: Any = None) -> Any:
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        enter, forget, new, leave = self._sums(x, hx)
        enter, forget = self.input_gate(enter), self.forget_gate(forget)
        new, leave = self.cell_gate(new), self.output_gate(leave)
        kept, added = self.fgate_cx.mul(forget, cx), self.igate_cgate.mul(enter, new)
        cy = self.fgate_cx_igate_cgate.add(kept, added)
        return self.ogate_cy.mul(leave, cy.tanh()), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> Any:
        """States of zeros, quantized where inputs are."""
        states = [torchshim.zeros((batch_size, self.hidden_size)) for _ in range(2)]
        if is_quantized:
            schemes = self.initial_hidden_state_qparams, self.initial_cell_state_qparams
            kinds = self.hidden_state_dtype, self.cell_state_dtype
            parts = zip(states, schemes, kinds, strict=True)
            states = [
                torchshim.quantize_per_tensor(x, *s, kind) for x, s, kind in parts
            ]
        return tuple(states)

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(
        cls, wi: Any, wh: Any, bi: Any = None, bh: Any = None, split_gates: bool = False
    ) -> Any:
        """The cell with these weights and biases of all gates."""
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        cell = cls(
            input_dim=wi.shape[1],
            hidden_dim=wh.shape[1],
            bias=bi is not None,
            split_gates=split_gates,
        )
        parts = (wi, bi, cell.igates), (wh, bh, cell.hgates)
        for weight, bias, gates in parts:
            layers = gates.values() if split_gates else [gates]
            number = len(layers) if split_gates else 1
            weights = weight.chunk(4, dim=0) if number > 1 else [weight]
            for layer, each in zip(layers, weights, strict=True):
                layer.weight = nn.Parameter(each)
            if bias is not None:
                biases = bias.chunk(4, dim=0) if number > 1 else [bias]
                for layer, each in zip(layers, biases, strict=True):
                    layer.bias = nn.Parameter(each)
        return cell

    @classmethod
    def from_float(
        cls,
        other: Any,
        use_precomputed_fake_quant: bool = False,
        split_gates: bool = False,
    ) -> Any:
        """The cell for one of floating point that has a qconfig."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}"
            )
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        weights = other.weight_ih, other.weight_hh
        biases = other.bias_ih, other.bias_hh
        made = cls.from_params(*weights, *biases, split_gates=split_gates)
        made.qconfig = other.qconfig
        for gates in (made.igates, made.hgates):
            gates.qconfig = other.qconfig
            for gate in gates.values() if split_gates else ():
                gate.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """Steps of one layer in one direction."""

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        sizes = input_dim, hidden_dim, bias, device, dtype
        self.cell = LSTMCell(*sizes, split_gates=split_gates)

    def forward(self, x: Any, hidden: Any = None) -> Any:
        outputs = []
        for i in range(x.shape[0]):
            hidden = self.cell(x[i], hidden)
            outputs.append(hidden[0])
        return torchshim.stack(outputs, 0), hidden

    @classmethod
    def from_params(cls, *args: Any, **kwargs: Any) -> Any:
        """The layer with the cell that `LSTMCell.from_params` makes."""
        cell = LSTMCell.from_params(*args, **kwargs)
        sizes = cell.input_size, cell.hidden_size, cell.bias
        made = cls(*sizes, split_gates=cell.split_gates)
        made.cell = cell
        return made


class _LSTMLayer(nn.Module):
    """One layer in one direction or in both."""

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        batch_first: bool = False,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.batch_first = batch_first
        self.bidirectional = bidirectional
        sizes = input_dim, hidden_dim, bias, device, dtype
        self.layer_fw = _LSTMSingleLayer(*sizes, split_gates=split_gates)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(*sizes, split_gates=split_gates)

    def forward(self, x: Any, hidden: Any = None) -> Any:
        if self.batch_first:
            x = x.transpose(0, 1)
        states = (None, None) if hidden is None else hidden
        if not self.bidirectional:
            given = None if states[0] is None and states[1] is None else states
            result, (h, c) = self.layer_fw(x, given)
        else:
            each = [
                None
                if states[0] is None or states[1] is None
                else (states[0][i], states[1][i])
                for i in range(2)
            ]
            result, ahead = self.layer_fw(x, each[0])
            back, behind = self.layer_bw(x.flip(0), each[1])
            result = torchshim.cat([result, back.flip(0)], result.dim() - 1)
            pairs = zip(ahead, behind, strict=True)
            h, c = (torchshim.stack(list(pair), 0) for pair in pairs)
        if self.batch_first:
            result.transpose_(0, 1)
        return result, (h, c)

    @classmethod
    def from_float(
        cls, other: Any, layer_idx: int = 0, qconfig: Any = None, **kwargs: Any
    ) -> Any:
        """One layer of an LSTM of floating point."""
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("other must have qconfig or qconfig must be provided")
        names = "input_size", "hidden_size", "bias", "batch_first", "bidirectional"
        given = [
            kwargs[name] if name in kwargs else getattr(other, name) for name in names
        ]
        split_gates = kwargs.get("split_gates", False)
        made = cls(*given, split_gates=split_gates)
        made.qconfig = getattr(other, "qconfig", qconfig)
        ends = {"layer_fw": ""}
        if other.bidirectional:
            ends["layer_bw"] = "_reverse"
        for layer, end in ends.items():
            parts = (
                getattr(other, f"{name}_l{layer_idx}{end}", None)
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            found = _LSTMSingleLayer.from_params(*parts, split_gates=split_gates)
            setattr(made, layer, found)
        return made


class LSTM(nn.Module):
    """An LSTM made of layers. Follows ``torch.ao.nn.quantizable.LSTM``.

    >>> import torchshim as torch
    >>> output, (hn, cn) = LSTM(10, 20, 2)(torch.randn(5, 3, 10))
    >>> output.shape, hn.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    _FLOAT_MODULE: Any = nn.LSTM

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.training = False
        self._check_dropout(dropout, num_layers)
        layers = [
            _LSTMLayer(
                size,
                hidden_size,
                bias,
                batch_first=False,
                bidirectional=bidirectional,
                split_gates=split_gates,
                device=device,
                dtype=dtype,
            )
            for size in [input_size, *[hidden_size] * (num_layers - 1)]
        ]
        self.layers = nn.ModuleList(layers)

    def _check_dropout(self, dropout: Any, num_layers: int) -> None:
        known = isinstance(dropout, (int, float)) and not isinstance(dropout, bool)
        if not known or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the "
                "probability of an element being zeroed"
            )
        if dropout > 0:
            warnings.warn(
                "dropout option for quantizable LSTM is ignored. If you are training, "
                "please, use nn.LSTM version followed by `prepare` step.",
                stacklevel=3,
            )
            if num_layers == 1:
                warnings.warn(
                    "dropout option adds dropout after all but last recurrent layer, "
                    "so non-zero dropout expects num_layers greater than 1, but got "
                    f"dropout={dropout} and num_layers={num_layers}",
                    stacklevel=3,
                )

    def _states(self, x: Any, hidden: Any) -> Any:
        """The states that each layer starts with."""
        directions = 2 if self.bidirectional else 1
        size = directions, x.size(1), self.hidden_size
        if hidden is None:
            zeros = torchshim.zeros(*size, dtype=torchshim.float, device=x.device)
            zeros = zeros.squeeze(0)
            if x.is_quantized:
                zeros = torchshim.quantize_per_tensor(zeros, 1.0, 0, x.dtype)
            return [(zeros, zeros)] * self.num_layers
        if not isinstance(hidden[0], torchshim.Tensor):
            return hidden
        hx, cx = (state.reshape(self.num_layers, *size) for state in hidden)
        rows = range(self.num_layers)
        return [(hx[i].squeeze(0), cx[i].squeeze(0)) for i in rows]

    def forward(self, x: Any, hidden: Any = None) -> Any:
        if self.batch_first:
            x = x.transpose(0, 1)
        last = []
        for layer, states in zip(self.layers, self._states(x, hidden), strict=True):
            x, found = layer(x, states)
            last.append(found)
        states = (torchshim.stack(list(each)) for each in zip(*last, strict=True))
        hx, cx = (s.reshape(-1, s.shape[-2], s.shape[-1]) for s in states)
        if self.batch_first:
            x = x.transpose(0, 1)
        return x, (hx, cx)

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(
        cls, other: Any, qconfig: Any = None, split_gates: bool = False
    ) -> Any:
        """The observed LSTM for one of floating point that has a qconfig."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(
                f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}"
            )
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("other must have qconfig or qconfig must be provided")
        sizes = other.input_size, other.hidden_size, other.num_layers, other.bias
        rest = other.batch_first, other.dropout, other.bidirectional
        made = cls(*sizes, *rest, split_gates=split_gates)
        made.qconfig = getattr(other, "qconfig", qconfig)
        for i in range(other.num_layers):
            made.layers[i] = _LSTMLayer.from_float(
                other, i, qconfig, batch_first=False, split_gates=split_gates
            )
        quantization = importlib.import_module("torchshim.ao.quantization")
        if other.training:
            return quantization.prepare_qat(made.train(), inplace=True)
        return quantization.prepare(made.eval(), inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> NoReturn:
        """NotImplementedError: `torch.ao.nn.quantized.LSTM` has it."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-quantizable LSTM module. "
            "Please, see the examples on quantizable LSTMs."
        )
