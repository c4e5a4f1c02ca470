"""Recurrent layers with weights of integers, whose inputs are rounded as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim import nn
from torchshim._quantized.recurrent import quantized_gru, quantized_lstm
from torchshim.ao.nn.quantized.dynamic.modules._cells import (
    GRUCell,
    LSTMCell,
    RNNCell,
    RNNCellBase,
    observed_dtype,
    observed_weight,
    pack_weight_bias,
)
from torchshim.ao.nn.quantized.modules.utils import _hide_packed_params_repr
from torchshim.nn.utils.rnn import PackedSequence
from torchshim.ops import quantized as ops

__all__ = [
    "GRU",
    "LSTM",
    "GRUCell",
    "LSTMCell",
    "PackedParameter",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "apply_permutation",
    "pack_weight_bias",
]


# Where PyTorch has them.
for _class in (GRUCell, LSTMCell, RNNCell, RNNCellBase, pack_weight_bias):
    _class.__module__ = __name__
del _class


def _apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """`tensor.index_select(dim, permutation)`; deprecated."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, "
        "permutation)` instead",
        category=FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


class PackedParameter(nn.Module):
    """The weights of one layer in one direction."""

    def __init__(self, param: Any) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

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
        self.param = state_dict[prefix + "param"]
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


_GATES = {"LSTM": 4, "GRU": 3}


class RNNBase(nn.Module):
    """What the layers share. Follows ``torch.ao.nn.quantized.dynamic.RNNBase``."""

    _FLOAT_MODULE: Any = nn.RNNBase
    _version = 2

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.dtype = torchshim.qint8 if dtype is None else dtype
        self.version: int | None = 2
        self.training = False
        _check_dropout(dropout, num_layers)
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        cells = [self._drawn(layer) for layer, _ in self._places()]
        self._all_weight_values = nn.ModuleList(cells)

    def _places(self) -> Iterator[tuple[int, str]]:
        """The layers, and the ends of names of their parameters."""
        for layer in range(self.num_layers):
            yield layer, f"_l{layer}"
            if self.bidirectional:
                yield layer, f"_l{layer}_reverse"

    def _drawn(self, layer: int) -> PackedParameter:
        gates = _GATES[self.mode] * self.hidden_size
        directions = 2 if self.bidirectional else 1
        inputs = self.input_size if layer == 0 else self.hidden_size * directions
        weights = [torchshim.randn(gates, n) for n in (inputs, self.hidden_size)]
        biases = [torchshim.randn(gates) for _ in range(2)]
        weights = [w.to(torchshim.float) for w in weights]
        if self.dtype == torchshim.qint8:
            scheme = {"scale": 0.1, "zero_point": 0, "dtype": torchshim.qint8}
            weights = [torchshim.quantize_per_tensor(w, **scheme) for w in weights]
        return self._cell(*weights, *(b.to(torchshim.float) for b in biases))

    def _cell(self, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> PackedParameter:
        if w_ih.dtype == torchshim.qint8:
            packed = ops.linear_prepack(w_ih, b_ih), ops.linear_prepack(w_hh, b_hh)
            # Layers of older states use all codes of the input.
            reduced = self.version is not None and self.version >= 2
            make = ops.make_quantized_cell_params_dynamic
            return PackedParameter(make(*packed, b_ih, b_hh, reduced))
        parts = (w_ih, b_ih), (w_hh, b_hh)
        packed = tuple(ops.linear_prepack_fp16(*each) for each in parts)
        return PackedParameter(ops.make_quantized_cell_params_fp16(*packed))

    def _get_name(self) -> str:
        return "DynamicQuantizedRNN"

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        usual = {"num_layers": 1, "bias": True, "batch_first": False}
        for name, value in {**usual, "dropout": 0, "bidirectional": False}.items():
            own = getattr(self, name)
            if own != value:
                parts.append(f"{name}={own}")
        return ", ".join(parts)

    def __repr__(self) -> str:
        return _hide_packed_params_repr(self, (PackedParameter, nn.ModuleList))

    # What is given --------------------------------------------------------------------

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """RuntimeError for an input of another size."""
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(
                f"input must have {expected} dimensions, got {input.dim()}"
            )
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Any, batch_sizes: Any
    ) -> tuple[int, int, int]:
        """The size of states for an input."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, batch, self.hidden_size

    def check_hidden_size(
        self,
        hx: Any,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """RuntimeError for a state of another size."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """RuntimeError for an input or a state of another size."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden, expected)

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """A state with its sequences in another order."""
        if permutation is None:
            return hx
        return _apply_permutation(hx, permutation)

    # Running --------------------------------------------------------------------------

    def _start(self, zeros: Any) -> Any:
        """States to begin with, of a tensor of zeros."""
        return zeros

    def _run(self, input: Any, sizes: Any, hx: Any, rest: tuple[Any, ...]) -> Any:
        """The outputs, and the last states."""
        raise NotImplementedError

    def forward_impl(
        self,
        input: Any,
        hx: Any,
        batch_sizes: Any,
        max_batch_size: int,
        sorted_indices: Any,
    ) -> Any:
        """The outputs and the last states, of a batch or of packed sequences."""
        if hx is None:
            directions = 2 if self.bidirectional else 1
            size = self.num_layers * directions, max_batch_size, self.hidden_size
            made = {"dtype": input.dtype, "device": input.device}
            hx = self._start(torchshim.zeros(*size, **made))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        params = [each.param for each in self._all_weight_values]
        rest = params, self.bias, self.num_layers, float(self.dropout), self.training
        return self._run(input, batch_sizes, hx, (*rest, self.bidirectional))

    def forward_tensor(self, input: Any, hx: Any = None) -> Any:
        """As `forward`, of a batch."""
        batch = input.size(0 if self.batch_first else 1)
        return self.forward_impl(input, hx, None, batch, None)

    def forward_packed(self, input: Any, hx: Any = None) -> Any:
        """As `forward`, of packed sequences."""
        rows, sizes, order, back = input
        output, hidden = self.forward_impl(rows, hx, sizes, int(sizes[0]), order)
        made = PackedSequence(output, sizes, order, back)
        return made, self.permute_hidden(hidden, back)

    def forward(self, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return self.forward_packed(input, hx)
        return self.forward_tensor(input, hx)

    # States and weights ---------------------------------------------------------------

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
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def set_weight_bias(self, weight_bias_dict: Any) -> None:
        """Takes other weights and biases, by the names of a layer of floating point."""
        names = "weight_ih", "weight_hh", "bias_ih", "bias_hh"
        cells = [
            self._cell(*(weight_bias_dict[name + end] for name in names))
            for _, end in self._places()
        ]
        self._all_weight_values = nn.ModuleList(cells)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point with a qconfig."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError(
                "nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and "
                "nn.GRU"
            )
        dtype = observed_dtype(mod)
        kind = LSTM if mod.mode == "LSTM" else GRU
        sizes = mod.input_size, mod.hidden_size, mod.num_layers, mod.bias
        rest = mod.batch_first, mod.dropout, mod.bidirectional, dtype
        made = kind(*sizes, *rest)
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        found = {}
        for _, end in made._places():
            for which in ("ih", "hh"):
                weight = getattr(mod, f"weight_{which}{end}")
                found[f"weight_{which}{end}"] = observed_weight(mod, weight, dtype)
                found[f"bias_{which}{end}"] = getattr(mod, f"bias_{which}{end}")
        made.set_weight_bias(found)
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The layer that a reference layer means."""
        if not hasattr(ref_mod, "weight_ih_l0_dtype"):
            raise AssertionError(
                f"We are assuming weight_ih_l0 exists in {cls.__name__}, may need to "
                "relax the assumption to support the use case"
            )
        ref = ref_mod
        sizes = ref.input_size, ref.hidden_size, ref.num_layers, ref.bias
        rest = ref.batch_first, ref.dropout, ref.bidirectional
        made = cls(*sizes, *rest, ref.weight_ih_l0_dtype)
        made.set_weight_bias(ref.get_quantized_weight_bias_dict())
        return made

    def _weight_bias(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {"weight": {}, "bias": {}}
        cells = zip(self._places(), self._all_weight_values, strict=True)
        for (_, end), cell in cells:
            packed = cell.param.__getstate__()[0][4]
            for which, each in zip(("ih", "hh"), packed, strict=True):
                weight, bias = each.__getstate__()[0]
                found["weight"][f"weight_{which}{end}"] = weight
                found["bias"][f"bias_{which}{end}"] = bias
        return found

    def get_weight(self) -> dict[str, Any]:
        """The weights, by their names."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Any]:
        """The biases, by their names."""
        return self._weight_bias()["bias"]


def _check_dropout(dropout: Any, num_layers: int) -> None:
    known = isinstance(dropout, (int, float)) and not isinstance(dropout, bool)
    if not known or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability "
            "of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so "
            "non-zero dropout expects num_layers greater than 1, but got "
            f"dropout={dropout} and num_layers={num_layers}",
            stacklevel=3,
        )


class LSTM(RNNBase):
    """An LSTM with weights of integers, as `torch.nn.LSTM`.

    >>> import torchshim as torch
    >>> m = LSTM(10, 20, 2)
    >>> output, (hn, cn) = m(torch.randn(5, 3, 10))
    >>> output.shape, hn.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    _FLOAT_MODULE: Any = nn.LSTM

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTM"

    def _start(self, zeros: Any) -> Any:
        return zeros, zeros

    def _run(self, input: Any, sizes: Any, hx: Any, rest: tuple[Any, ...]) -> Any:
        options = {"dtype": self.dtype, "use_dynamic": True}
        if sizes is None:
            made = quantized_lstm(input, hx, *rest, self.batch_first, **options)
        else:
            made = quantized_lstm(input, sizes, hx, *rest, **options)
        return made[0], made[1:]

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """States with their sequences in another order."""
        if permutation is None:
            return hx
        return tuple(_apply_permutation(state, permutation) for state in hx)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """RuntimeError for an input or states of another size."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        for i in range(2):
            text = f"Expected hidden[{i}] size {{}}, got {{}}"
            self.check_hidden_size(hidden[i], expected, text)


class GRU(RNNBase):
    """Gated recurrent units with weights of integers, as `torch.nn.GRU`.

    >>> import torchshim as torch
    >>> m = GRU(10, 20, 2)
    >>> output, hn = m(torch.randn(5, 3, 10))
    >>> output.shape, hn.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    _FLOAT_MODULE: Any = nn.GRU

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRU"

    def _run(self, input: Any, sizes: Any, hx: Any, rest: tuple[Any, ...]) -> Any:
        if sizes is None:
            return quantized_gru(input, hx, *rest, self.batch_first)
        return quantized_gru(input, sizes, hx, *rest)
