"""Recurrent networks over whole sequences, and cells: single steps of them."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn import init
from torchshim.nn.modules._rnn_base import RNNBase, apply_permutation
from torchshim.nn.modules._rnn_base import _apply_permutation as _apply_permutation
from torchshim.nn.modules.linear import new_parameter
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter
from torchshim.nn.utils.rnn import PackedSequence as PackedSequence

_rnn_impls = {"RNN_TANH": torchshim.rnn_tanh, "RNN_RELU": torchshim.rnn_relu}

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "GRUCell",
    "LSTMCell",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "apply_permutation",
]


class RNN(RNNBase):
    """An Elman network: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)`` at each step.

    Input of shape (steps, batch, features), with `batch_first` (batch, steps,
    features), without a batch (steps, features), or a `PackedSequence`. Gives the
    outputs of the last layer and the last states of all. Follows ``torch.nn.RNN``.

    >>> import torchshim as torch
    >>> m = torch.nn.RNN(10, 20, 2, nonlinearity="relu")
    >>> output, h = m(torch.zeros(5, 3, 10))
    >>> output.shape, h.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    _wrong_dims = "{}: Expected input to be 2D or 3D, got {}D tensor instead"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projections(kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        self.nonlinearity = nonlinearity
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)

    def _call(self, *args: Any) -> tuple[Tensor, Any]:
        if self.mode == "RNN_TANH":
            return torchshim.rnn_tanh(*args)
        return torchshim.rnn_relu(*args)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        return self._run(input, hx)


class LSTM(RNNBase):
    """A long short-term memory: a hidden state and a cell state, four gates.

    Inputs as those of `RNN`; `hx` is (hidden, cell). With `proj_size` the hidden state
    is projected to that width. Gives the outputs of the last layer, and the last hidden
    and cell states of all. Follows ``torch.nn.LSTM``.

    >>> import torchshim as torch
    >>> m = torch.nn.LSTM(10, 20, 2, bidirectional=True)
    >>> output, (h, c) = m(torch.zeros(5, 10))
    >>> output.shape, h.shape, c.shape
    (torch.Size([5, 40]), torch.Size([4, 20]), torch.Size([4, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the cell state: (layers * directions, batch, hidden size)."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(
        self, input: Tensor, hidden: Any, batch_sizes: Tensor | None
    ) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1],
            self.get_expected_cell_size(input, batch_sizes),
            "Expected hidden[1] size {}, got {}",
        )

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        permute = super().permute_hidden
        return permute(hx[0], permutation), permute(hx[1], permutation)

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        cell = self.get_expected_cell_size(input, batch_sizes)
        kind = {"dtype": input.dtype, "device": input.device}
        return super()._zeros(input, batch_sizes), torchshim.zeros(*cell, **kind)

    def _batched(self, hx: Any, expected: int) -> Any:
        dims = hx[0].dim(), hx[1].dim()
        if dims != (expected, expected):
            which = "batched" if expected == 3 else "unbatched"
            raise RuntimeError(
                f"For {which} {expected}-D input, hx and cx should also be "
                f"{expected}-D but got ({dims[0]}-D, {dims[1]}-D) tensors"
            )
        return (hx[0].unsqueeze(1), hx[1].unsqueeze(1)) if expected == 2 else hx

    def _call(self, *args: Any) -> tuple[Tensor, Any]:
        output, hidden, cell = torchshim.lstm(*args)
        return output, (hidden, cell)

    def _unbatched(self, hidden: Any) -> Any:
        return hidden[0].squeeze(1), hidden[1].squeeze(1)

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        return self._run(input, hx)


class GRU(RNNBase):
    """Gated recurrent units: one state, three gates.

    Inputs and results as those of `RNN`. Follows ``torch.nn.GRU``.

    >>> import torchshim as torch
    >>> output, h = torch.nn.GRU(10, 20, batch_first=True)(torch.zeros(3, 5, 10))
    >>> output.shape, h.shape
    (torch.Size([3, 5, 20]), torch.Size([1, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projections(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def _call(self, *args: Any) -> tuple[Tensor, Any]:
        return torchshim.gru(*args)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        return self._run(input, hx)


def _refuse_projections(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError(
            "proj_size argument is only supported for LSTM, not RNN or GRU"
        )


# Cells -------------------------------------------------------------------------------


class RNNCellBase(Module):
    """What the cells have in common: two weights, two biases, their text."""

    __constants__ = ["input_size", "hidden_size", "bias"]  # noqa: RUF012

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = new_parameter((rows, input_size), device, dtype)
        self.weight_hh = new_parameter((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            value = new_parameter(rows, device, dtype) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, {nonlinearity=!s}"

    def reset_parameters(self) -> None:
        """Draws all parameters anew, between ``±1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _check(self, what: str, tensor: Tensor) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {what} to be 1D or 2D, got "
                f"{tensor.dim()}D instead"
            )

    def _zeros(self, batch: Tensor) -> Tensor:
        size = batch.size(0), self.hidden_size
        return torchshim.zeros(size, dtype=batch.dtype, device=batch.device)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, function: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        """One step of a cell with one state; without a batch, a batch of one."""
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        single = input.dim() == 1
        batch = input.unsqueeze(0) if single else input
        if hx is None:
            hx = self._zeros(batch)
        elif single:
            hx = hx.unsqueeze(0)
        result = function(batch, hx, *self._weights())
        return result.squeeze(0) if single else result


class RNNCell(RNNCellBase):
    """One step of an Elman network with tanh or relu. Follows ``torch.nn.RNNCell``.

    >>> import torchshim as torch
    >>> torch.nn.RNNCell(3, 4, nonlinearity="relu")(torch.zeros(2, 3)).shape
    torch.Size([2, 4])
    """

    __constants__ = [  # noqa: RUF012
        "input_size",
        "hidden_size",
        "bias",
        "nonlinearity",
    ]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(self._function, input, hx)

    def _function(self, *args: Any) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        if self.nonlinearity == "tanh":
            return torchshim.rnn_tanh_cell(*args)
        return torchshim.rnn_relu_cell(*args)


class LSTMCell(RNNCellBase):
    """One step of an LSTM. Follows ``torch.nn.LSTMCell``.

    >>> import torchshim as torch
    >>> hidden, cell = torch.nn.LSTMCell(3, 4)(torch.zeros(2, 3))
    >>> hidden.shape, cell.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        self._check("input", input)
        for i, state in enumerate(hx if hx is not None else ()):
            self._check(f"hx[{i}]", state)
        single = input.dim() == 1
        batch = input.unsqueeze(0) if single else input
        if hx is None:
            zeros = self._zeros(batch)
            hx = zeros, zeros
        elif single:
            hx = hx[0].unsqueeze(0), hx[1].unsqueeze(0)
        hidden, cell = torchshim.lstm_cell(batch, hx, *self._weights())
        return (hidden.squeeze(0), cell.squeeze(0)) if single else (hidden, cell)


class GRUCell(RNNCellBase):
    """One step of gated recurrent units. Follows ``torch.nn.GRUCell``.

    >>> import torchshim as torch
    >>> torch.nn.GRUCell(3, 4)(torch.zeros(3)).shape
    torch.Size([4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(torchshim.gru_cell, input, hx)
