"""Single steps of recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence

from torchshim._derived import fns, public
from torchshim._tensor import Tensor


def _check_input(input: Tensor, w_ih: Tensor) -> None:
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.size(1)} expected "
            f"{w_ih.size(1)}"
        )


def _check_weights(w_ih: Tensor, w_hh: Tensor, gates: int) -> None:
    rows = gates * w_hh.size(1)
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.size(0) != rows:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {rows}, but got "
                f"{weight.size(0)}"
            )


def _check_hidden(input: Tensor, hidden: Tensor, w_hh: Tensor, number: int) -> None:
    if input.size(0) != hidden.size(0):
        raise RuntimeError(
            f"Input batch size {input.size(0)} doesn't match hidden{number} batch size "
            f"{hidden.size(0)}"
        )
    if hidden.size(1) != w_hh.size(1):
        raise RuntimeError(
            f"hidden{number} has inconsistent hidden_size: got {hidden.size(1)}, "
            f"expected {w_hh.size(1)}"
        )


def _rnn_sum(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> Tensor:
    _check_weights(w_ih, w_hh, 1)
    _check_input(input, w_ih)
    _check_hidden(input, hx, w_hh, 0)
    return fns.linear(hx, w_hh, b_hh) + fns.linear(input, w_ih, b_ih)


@public
def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The next hidden state of an Elman network with tanh.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.RNNCell.html

    >>> import torchshim as torch
    >>> x = torch.zeros(1, 1)
    >>> torch.rnn_tanh_cell(x, x, x, x)
    tensor([[0.]])
    """
    return fns.tanh(_rnn_sum(input, hx, w_ih, w_hh, b_ih, b_hh))


@public
def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The next hidden state of an Elman network with relu.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.RNNCell.html
    """
    return fns.relu(_rnn_sum(input, hx, w_ih, w_hh, b_ih, b_hh))


@public
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The next hidden state and cell of an LSTM.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.LSTMCell.html
    """
    if isinstance(hx, Tensor):
        raise TypeError(
            "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not "
            f"{type(hx).__name__}"
        )
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_input(input, w_ih)
    _check_weights(w_ih, w_hh, 4)
    for number, state in enumerate(hx):
        _check_hidden(input, state, w_hh, number)
    hidden, cell = hx
    gates = fns.linear(hidden, w_hh, b_hh) + fns.linear(input, w_ih, b_ih)
    enter, forget, new, leave = gates.unsafe_chunk(4, 1)
    cell = fns.sigmoid(forget) * cell + fns.sigmoid(enter) * fns.tanh(new)
    return fns.sigmoid(leave) * fns.tanh(cell), cell


@public
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The next hidden state of a network of gated recurrent units.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.GRUCell.html
    """
    _check_input(input, w_ih)
    _check_hidden(input, hx, w_hh, 0)
    _check_weights(w_ih, w_hh, 3)
    of_input = fns.linear(input, w_ih, b_ih).unsafe_chunk(3, 1)
    of_hidden = fns.linear(hx, w_hh, b_hh).unsafe_chunk(3, 1)
    reset = fns.sigmoid(of_hidden[0] + of_input[0])
    update = fns.sigmoid(of_hidden[1] + of_input[1])
    new = fns.tanh(of_input[2] + of_hidden[2] * reset)
    return (hx - new) * update + new
