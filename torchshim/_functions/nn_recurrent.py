"""Recurrent networks: single steps, and whole sequences through all layers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._autocast import autocast_whole
from torchshim._derived import fns, public
from torchshim._errors import triggered, warn_once
from torchshim._functions._arguments import combination, is_known
from torchshim._functions._family import described
from torchshim._functions.nn_dropout import dropped
from torchshim._ops.recurrent import ONEDNN
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
@autocast_whole("rnn_tanh_cell")
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
@autocast_whole("rnn_relu_cell")
def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The next hidden state of an Elman network with relu.

    The weights are (hidden, input) and (hidden, hidden); `hx` is (batch, hidden).

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.RNNCell.html

    >>> import torchshim as torch
    >>> x, h, w = torch.tensor([[2.0]]), torch.tensor([[-5.0]]), torch.ones(1, 1)
    >>> torch.rnn_relu_cell(x, h, w, w)
    tensor([[0.]])
    """
    return fns.relu(_rnn_sum(input, hx, w_ih, w_hh, b_ih, b_hh))


@public
@autocast_whole("lstm_cell")
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The next hidden state and cell of an LSTM.

    `hx` is both, (batch, hidden). The weights are (4 * hidden, input) and (4 * hidden,
    hidden), with the gates in the order input, forget, cell, output.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.LSTMCell.html

    >>> import torchshim as torch
    >>> x, state, w = torch.ones(1, 1), torch.tensor([[0.0]]), torch.zeros(4, 1)
    >>> torch.lstm_cell(x, (state, torch.tensor([[4.0]])), w, w)
    (tensor([[0.4820]]), tensor([[2.]]))
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
@autocast_whole("gru_cell")
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The next hidden state of a network of gated recurrent units.

    `hx` is (batch, hidden). The weights are (3 * hidden, input) and (3 * hidden,
    hidden), with the gates in the order reset, update, new.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.GRUCell.html

    >>> import torchshim as torch
    >>> x, h, w = torch.ones(1, 1), torch.tensor([[4.0]]), torch.zeros(3, 1)
    >>> torch.gru_cell(x, h, w, w)
    tensor([[2.]])
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


# Whole sequences ---------------------------------------------------------------------

_SIGNATURES = "\n".join(
    f"({first}, tuple of Tensors params, bool has_biases, int num_layers, "
    f"float dropout, bool train, bool bidirectional{last})"
    for first, last in (
        ("Tensor data, Tensor batch_sizes, {hx} hx", ""),
        ("Tensor input, {hx} hx", ", bool batch_first"),
    )
)
_REST = ("has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = inspect.Signature(
    [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in ("input", "hx", "params", *_REST, "batch_first")
    ]
)
_PACKED = inspect.Signature(
    [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in ("data", "batch_sizes", "hx", "params", *_REST)
    ]
)


def _arguments(name: str, args: Any, kwargs: Any, states: int) -> dict[str, Any]:
    """The arguments of one of the two forms; the packed one has `batch_sizes`."""

    def fits(given: dict[str, Any]) -> bool:
        tensors = [given[n] for n in ("input", "data", "batch_sizes") if n in given]
        lists = [given["params"]]
        (tensors if states == 1 else lists).append(given["hx"])
        return all(isinstance(t, Tensor) for t in tensors) and all(
            isinstance(x, (tuple, list)) and all(isinstance(t, Tensor) for t in x)
            for x in lists
        )

    for signature in (_PACKED, _PADDED):
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            continue
        if fits(given):
            return given
    kind = "Tensor" if states == 1 else "tuple of Tensors"
    raise combination(name, args, kwargs, _SIGNATURES.format(hx=kind))


def _groups(given: dict[str, Any], lstm: bool, count: int) -> list[tuple[Any, ...]]:
    """Of each layer and direction: w_ih, w_hh, b_ih, b_hh and, of LSTMs, w_hr."""
    params, size = given["params"], 4 if given["has_biases"] else 2
    projected = lstm and given["hx"][0].size(2) != given["hx"][1].size(2)
    size += projected
    if not lstm and len(params) % size:
        raise RuntimeError("got an incorrect number of RNN parameters")
    if lstm and (len(params) % size or len(params) < size * count):
        given_size = len(params)
        raise RuntimeError(
            f"MatrixRef: ArrayRef size {given_size} not divisible by stride {size}"
            if given_size % size
            else f"ArrayRef: invalid slice, N = {given_size}; M = {size}; "
            f"size = {given_size}"
        )
    found = []
    for first in range(0, len(params), size):
        group: list[Any] = list(params[first : first + size])
        projection = group.pop() if projected else None
        weights = (*group[:2], *(group[2:] or (None, None)))
        found.append((*weights, projection) if lstm else weights)
    return found


def _check_devices(x: Tensor, states: Sequence[Tensor], params: Any) -> None:
    """Raises where the input is on another device than a state or a parameter."""
    device = x._tmeta.device
    for kind, tensors in (("hidden", states), ("parameter", params)):
        for t in tensors:
            if (other := t._tmeta.device) is not device and other != device:
                raise RuntimeError(
                    f"Input and {kind} tensors are not at the same device, found input "
                    f"tensor at {device} and {kind} tensor at {other}"
                )


def _through(
    layer: Callable[..., Any],
    given: dict[str, Any],
    lstm: bool,
    states: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """All layers and directions, with dropout between the layers."""
    batch_sizes = given.get("batch_sizes")
    padded = batch_sizes is None
    x = given["input" if padded else "data"]
    _check_devices(x, states, given["params"])
    batch_first = padded and given["batch_first"]
    layers, both = given["num_layers"], 1 + bool(given["bidirectional"])
    if batch_first:
        x = fns.transpose(x, 0, 1)
    if padded and x.dim() == 3 and not x.size(0):
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    groups = _groups(given, lstm, layers * both)
    first = [s.unbind() for s in states]
    if min(len(f) for f in (*first, groups)) < layers * both:
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    if not padded and batch_sizes.device != x.device:
        batch_sizes = batch_sizes.to(x.device)
    last: list[list[Tensor]] = [[] for _ in states]
    for number in range(layers):
        outputs = []
        for direction in range(both):
            at = number * both + direction
            begin = [f[at] for f in first]
            output, *ends = layer(x, batch_sizes, *begin, *groups[at], direction == 1)
            outputs.append(output)
            for found, end in zip(last, ends, strict=True):
                found.append(end)
        x = outputs[0] if both == 1 else fns.cat(outputs, -1)
        if number + 1 < layers and given["dropout"]:
            x = dropped(x, given["dropout"], given["train"], False, False, False)
    if batch_first:
        x = fns.transpose(x, 0, 1)
    return x, *(fns.stack(found, 0) for found in last)


@public
def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """An LSTM over whole sequences, as `nn.LSTM` computes it.

    `lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
    batch_first)`, or for packed sequences `lstm(data, batch_sizes, hx, params,
    has_biases, num_layers, dropout, train, bidirectional)`. `hx` is the hidden and the
    cell state; gives the outputs of the last layer and the last states of all layers.

    >>> import torchshim as torch
    >>> x, h, c = torch.ones(5, 2, 3), torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)
    >>> weights = [torch.zeros(16, 3), torch.zeros(16, 4)]
    >>> found = torch.lstm(x, (h, c), weights, False, 1, 0.0, False, False, False)
    >>> [each.shape for each in found]
    [torch.Size([5, 2, 4]), torch.Size([1, 2, 4]), torch.Size([1, 2, 4])]
    """
    given = _arguments("lstm", args, kwargs, 2)
    if len(given["hx"]) != 2:
        raise RuntimeError("lstm expects two hidden states")
    packed = "batch_sizes" in given
    x = given["data" if packed else "input"]
    alike = 0
    if x.dtype in ONEDNN and x.numel():
        if given["hx"][0].size(2) == given["hx"][1].size(2):
            alike = _steps_alike(given) if packed else 0
        elif not packed:
            text = (
                "LSTM with projections is not supported with oneDNN. "
                "Using default implementation."
            )
            warn_once(triggered(text, "aten/src/ATen/native/RNN.cpp:1512"))
    if alike:
        del given["data"], given["batch_sizes"]
        given |= {"input": x.reshape(alike, -1, x.size(1)), "batch_first": False}
    out, hy, cy = _through(fns.lstm_layer, given, True, given["hx"])
    return out.view(len(x), -1) if alike else out, hy, cy


def _steps_alike(given: dict[str, Any]) -> int:
    """How many steps a packed batch of sequences of one length has; 0: of several.

    PyTorch gives such a batch to oneDNN as a dense one.
    """
    sizes = given["batch_sizes"]
    if not is_known(sizes):
        return 0
    steps = sizes._host()
    return len(steps) if (steps == steps[0]).all() else 0


@public
def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Gated recurrent units over whole sequences, as `nn.GRU` computes them.

    Takes the arguments of `lstm`, with one state as `hx`.

    >>> import torchshim as torch
    >>> x, h = torch.ones(5, 2, 3), torch.zeros(1, 2, 4)
    >>> weights = [torch.zeros(12, 3), torch.zeros(12, 4)]
    >>> found = torch.gru(x, h, weights, False, 1, 0.0, False, False, False)
    >>> [each.shape for each in found]
    [torch.Size([5, 2, 4]), torch.Size([1, 2, 4])]
    """
    given = _arguments("gru", args, kwargs, 1)
    return _through(fns.gru_layer, given, False, [given["hx"]])  # type: ignore[return-value]


def _elman(name: str, nonlinearity: str) -> Any:
    def layer(*args: Any) -> Any:
        return fns.elman_layer(*args, nonlinearity)

    def rnn(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Takes the arguments of `lstm`, with one state as `hx`.

        >>> import torchshim as torch
        >>> x, h, w = torch.ones(3, 1, 1), torch.zeros(1, 1, 1), torch.ones(1, 1)
        >>> out, _ = torch.rnn_relu(x, h, [w, w], False, 1, 0.0, False, False, False)
        >>> out.flatten()
        tensor([1., 2., 3.])
        """
        given = _arguments(name, args, kwargs, 1)
        return _through(layer, given, False, [given["hx"]])  # type: ignore[return-value]

    described(rnn, name, f"An Elman network with {nonlinearity} over whole sequences.")
    return public(rnn)


rnn_tanh = _elman("rnn_tanh", "tanh")
rnn_relu = _elman("rnn_relu", "relu")
