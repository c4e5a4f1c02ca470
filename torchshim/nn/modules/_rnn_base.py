"""What the recurrent layers over whole sequences have in common."""

from __future__ import annotations

import math
import numbers
import weakref
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._core.record import local
from torchshim._tensor import Tensor
from torchshim.nn import init
from torchshim.nn.modules.linear import new_parameter
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter
from torchshim.nn.utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    return torchshim.index_select(tensor, dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """`tensor.index_select(dim, permutation)`, which PyTorch would rather see."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use "
        "`tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


class RNNBase(Module):
    """What the recurrent layers have in common: weights, checks, their text.

    The weights of layer k are `weight_ih_l[k]` of shape (gates, inputs),
    `weight_hh_l[k]` (gates, outputs), `bias_ih_l[k]`, `bias_hh_l[k]` and, with
    projections, `weight_hr_l[k]`; those of the second direction end in `_reverse`.
    Follows ``torch.nn.RNNBase``.
    """

    __constants__ = [  # noqa: RUF012
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    _flat_weights: list[Any]
    _flat_weights_names: list[str]

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
        proj_size: int = 0,
        device: Any = None,
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
        self.proj_size = proj_size
        self._flat_weight_refs: list[Any] = []
        self._check_options(dropout)
        gates = _GATES[mode] * hidden_size
        directions = 2 if bidirectional else 1
        width = proj_size or hidden_size
        self._flat_weights_names = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else width * directions
            for direction in range(directions):
                shapes: dict[str, Any] = {
                    "weight_ih": (gates, inputs),
                    "weight_hh": (gates, width),
                }
                if bias:
                    shapes |= {"bias_ih": gates, "bias_hh": gates}
                if proj_size > 0:
                    shapes["weight_hr"] = proj_size, hidden_size
                suffix = f"_l{layer}{'_reverse' if direction else ''}"
                names = [name + suffix for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, new_parameter(shape, device, dtype))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        if (
            not isinstance(dropout, numbers.Number)
            or not 0 <= dropout <= 1  # type: ignore[operator]
            or isinstance(dropout, bool)
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the "
                "probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:  # type: ignore[operator]
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so "
                "non-zero dropout expects num_layers greater than 1, but got "
                f"dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=3,
            )
        for name, kind in (
            ("bias", bool),
            ("batch_first", bool),
            ("input_size", int),
            ("hidden_size", int),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(
                    f"{name} should be of type {kind.__name__}, got: "
                    f"{type(value).__name__}"
                )
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    # The weights as one list, kept up to date: what the functions take.

    def _init_flat_weights(self) -> None:
        self._flat_weights = [
            getattr(self, name, None) for name in self._flat_weights_names
        ]
        self._flat_weight_refs = [
            None if weight is None else weakref.ref(weight)
            for weight in self._flat_weights
        ]
        self.flatten_parameters()

    def _update_flat_weights(self) -> None:
        pairs = zip(self._flat_weight_refs, self._flat_weights_names, strict=True)
        for ref, name in pairs:
            weight = getattr(self, name, None)
            if weight is not None and ref is not None and ref() is not weight:
                self._init_flat_weights()
                return

    def __setattr__(self, attr: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names", ())
        if attr in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(attr)] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self) -> None:
        """Nothing: PyTorch arranges the weights for cuDNN here; XLA places them."""

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._flat_weight_refs = []
        result = super()._apply(fn, recurse)
        self._init_flat_weights()
        return result

    def __getstate__(self) -> dict[str, Any]:
        self._update_flat_weights()
        state = super().__getstate__()
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, d: dict[str, Any]) -> None:
        super().__setstate__(d)
        if "all_weights" in d:
            self._all_weights = d["all_weights"]
        # Modules saved by PyTorch before 1.8 have no projections.
        self.__dict__.setdefault("proj_size", 0)
        self._flat_weight_refs = [
            None if weight is None else weakref.ref(weight)
            for weight in self._flat_weights
        ]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _replicate_for_data_parallel(self) -> Any:
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        replica._flat_weights_names = replica._flat_weights_names[:]
        return replica

    def reset_parameters(self) -> None:
        """Draws all parameters anew, between ``±1 / sqrt(hidden_size)``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text

    # What `forward` may be given.

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises for an input of another dtype, number of dimensions or width."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and local.rec.autocast is None:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype "
                f"({dtype}). Convert input: input.to({dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
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

    def _state_size(
        self, input: Tensor, batch_sizes: Tensor | None, width: int
    ) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the hidden state: (layers * directions, batch, outputs)."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises for a state of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(
        self, input: Tensor, hidden: Any, batch_sizes: Tensor | None
    ) -> None:
        """Raises for an input or a state that does not fit."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden, expected)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its sequences in another order."""
        if permutation is None:
            return hx
        return torchshim.index_select(hx, 1, permutation)

    # What differs between one state and the two of an LSTM.

    _wrong_dims = "{}: Expected input to be 2D or 3D, got {}D instead"

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        size = self.get_expected_hidden_size(input, batch_sizes)
        return torchshim.zeros(*size, dtype=input.dtype, device=input.device)

    def _batched(self, hx: Any, expected: int) -> Any:
        """A given state as one of batches: `expected` is the input's dimensions."""
        if hx.dim() != expected:
            which = "batched" if expected == 3 else "unbatched"
            raise RuntimeError(
                f"For {which} {expected}-D input, hx should also be {expected}-D but "
                f"got {hx.dim()}-D tensor"
            )
        return hx.unsqueeze(1) if expected == 2 else hx

    def _call(self, *args: Any) -> tuple[Tensor, Any]:
        """The outputs and the last state, for the arguments of `torch.gru`."""
        raise NotImplementedError

    def _options(self) -> tuple[Any, ...]:
        return (
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )

    def _unbatched(self, hidden: Any) -> Any:
        return hidden.squeeze(1)

    def _run(self, input: Any, hx: Any) -> tuple[Any, Any]:
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            if hx is None:
                hx = self._zeros(data, batch_sizes)
            else:
                hx = self.permute_hidden(hx, order)
            self.check_forward_args(data, hx, batch_sizes)
            output, hidden = self._call(data, batch_sizes, hx, *self._options())
            packed = PackedSequence(output, batch_sizes, order, back)
            return packed, self.permute_hidden(hidden, back)
        if input.dim() not in (2, 3):
            raise ValueError(self._wrong_dims.format(self._get_name(), input.dim()))
        single, axis = input.dim() == 2, 0 if self.batch_first else 1
        if hx is not None:
            hx = self._batched(hx, input.dim())
        if single:
            input = input.unsqueeze(axis)
        if hx is None:
            hx = self._zeros(input, None)
        self.check_forward_args(input, hx, None)
        output, hidden = self._call(input, hx, *self._options(), self.batch_first)
        if single:
            return output.squeeze(axis), self._unbatched(hidden)
        return output, hidden
