"""Cells: single steps of recurrent networks."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn import init
from torchshim.nn.modules.linear import new_parameter
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


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
