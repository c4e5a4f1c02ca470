"""Recurrent layers with weights of integers, whose inputs are rounded as they come.

https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/RNN.cpp
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.record import untracked
from torchshim._derived import fns, public
from torchshim._quantized.packed import CellWeight, LinearWeight, expect, operator
from torchshim._quantized.products import float_linear
from torchshim.nn import functional as F


@operator("make_quantized_cell_params_dynamic")
def make_quantized_cell_params_dynamic(
    w_ih: Any, w_hh: Any, bias_ih: Any, bias_hh: Any, reduce_range: bool = False
) -> CellWeight:
    """The weights of a step, of which inputs are rounded as they come."""
    name = "quantized::make_quantized_cell_params_dynamic"
    for each, parameter in ((w_ih, "w_ih"), (w_hh, "w_hh")):
        expect(each, LinearWeight, name, parameter)
    return CellWeight(w_ih, w_hh, (bias_ih, bias_hh), bool(reduce_range))


@operator("make_quantized_cell_params_fp16")
def make_quantized_cell_params_fp16(w_ih: Any, w_hh: Any) -> CellWeight:
    """The weights of a step, of halves."""
    name = "quantized::make_quantized_cell_params_fp16"
    for each, parameter in ((w_ih, "w_ih"), (w_hh, "w_hh")):
        expect(each, LinearWeight, name, parameter)
    return CellWeight(w_ih, w_hh, None, False)


# Steps --------------------------------------------------------------------------------


def _gates(input: Any, hx: Any, w_ih: Any, w_hh: Any, name: str) -> tuple[Any, Any]:
    """What input and hidden state give to the gates of a step."""
    w_ih = expect(w_ih, LinearWeight, f"quantized::{name}", "w_ih")
    w_hh = expect(w_hh, LinearWeight, f"quantized::{name}", "w_hh")
    return float_linear(input, w_ih, True), float_linear(hx, w_hh, True)


@operator("quantized_lstm_cell_dynamic")
def quantized_lstm_cell_dynamic(
    input: Any, hx: Any, w_ih: Any, w_hh: Any, bias_ih: Any, bias_hh: Any
) -> tuple[Any, Any]:
    """A step of an LSTM: the new hidden state and the new cell state."""
    hidden, cell = hx
    name = "quantized_lstm_cell_dynamic"
    with untracked():
        given, kept = _gates(input, hidden, w_ih, w_hh, name)
        enter, forget, new, leave = (kept + given).chunk(4, 1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * cell.tanh(), cell


@operator("quantized_gru_cell_dynamic")
def quantized_gru_cell_dynamic(
    input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any
) -> Any:
    """A step of gated recurrent units: the new hidden state."""
    with untracked():
        given, kept = _gates(input, hx, w_ih, w_hh, "quantized_gru_cell_dynamic")
        parts = zip(given.chunk(3, 1), kept.chunk(3, 1), strict=True)
        (reset, own), (update, its), (new, inner) = parts
        reset, update = (reset + own).sigmoid(), (update + its).sigmoid()
        new = (new + inner * reset).tanh()
        return (hx - new) * update + new


def _elman(activation: str) -> Callable[..., Any]:
    name = f"quantized_rnn_{activation}_cell_dynamic"

    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        """A step of an Elman network: the new hidden state."""
        with untracked():
            given, kept = _gates(input, hx, w_ih, w_hh, name)
            return getattr(given + kept, activation)()

    return operator(name)(cell)


_elman("tanh")
_elman("relu")

# Layers -------------------------------------------------------------------------------


def _layer(
    kind: str, x: Any, sizes: Any, states: Any, cell: CellWeight, back: bool
) -> Any:
    """One layer in one direction: the outputs, and the last states."""
    ih, hh = cell.w_ih, cell.w_hh
    if ih.packed is None:
        parts = ih._tensor, hh._tensor, ih._bias, hh._bias
        rest = (None,) if kind == "lstm" else ()
        return getattr(fns, f"{kind}_layer")(x, sizes, *states, *parts, *rest, back)
    weights = ih.packed, hh.packed
    parts = *(w.steps() for w in weights), *(w.scales for w in weights)
    rest = ih._bias, hh._bias, max(w.reach for w in weights), cell.reduce_range, back
    run = getattr(fns, f"quantized_{kind}_layer")
    return run(x, sizes, *states, *parts, *rest)


def _layers(
    kind: str,
    x: Any,
    sizes: Any,
    states: Sequence[Any],
    params: Sequence[Any],
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Any, ...]:
    """All layers: the outputs, and the last states of each."""
    for each in params:
        expect(each, CellWeight, f"aten::quantized_{kind}", "params")
    directions = 2 if bidirectional else 1
    rows = [state.detach().unbind(0) for state in states]
    x, finals = x.detach(), []
    for layer in range(num_layers):
        outputs = []
        for back in range(directions):
            at = layer * directions + back
            given = [state[at] for state in rows]
            out, *last = _layer(kind, x, sizes, given, params[at], bool(back))
            outputs.append(out)
            finals.append(last)
        x = outputs[0] if directions == 1 else fns.cat(outputs, -1)
        if train and dropout and layer < num_layers - 1:
            x = F.dropout(x, dropout)
    return x, *(fns.stack(each) for each in zip(*finals, strict=True))


_NAMES = "hx params has_biases num_layers dropout train bidirectional".split()


def _called(args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    """The sizes of packed sequences, whether batches are first, and the rest."""
    given, sizes = list(args), named.pop("batch_sizes", None)
    if len(given) > 2 and isinstance(given[2], (list, tuple)):
        sizes = given.pop(0)
    names = _NAMES if sizes is not None else [*_NAMES, "batch_first"]
    given += [named.pop(name) for name in names[len(given) :] if name in named]
    if len(given) != len(names) or named:
        raise TypeError(
            "quantized recurrent layers take (input, hx, params, has_biases, "
            "num_layers, dropout, train, bidirectional, batch_first) or (data, "
            "batch_sizes, hx, params, has_biases, num_layers, dropout, train, "
            "bidirectional)"
        )
    return sizes, sizes is None and given.pop(), given


@public
def quantized_lstm(
    input: Any, *args: Any, dtype: Any = None, use_dynamic: bool = False, **named: Any
) -> tuple[Any, Any, Any]:
    """An LSTM with weights of integers: its outputs, the last hidden and cell states.

    Takes a padded batch, or rows of packed sequences and their `batch_sizes`; `params`
    are the weights of the layers, in both directions if there are two. `dtype` and
    `use_dynamic` change nothing, in PyTorch neither.

    >>> import torchshim as torch
    >>> m = torch.ao.nn.quantized.dynamic.LSTM(3, 2)
    >>> params, zeros = [m._all_weight_values[0].param], torch.zeros(1, 5, 2)
    >>> x, states = torch.ones(4, 5, 3), (zeros, zeros)
    >>> r = torch.quantized_lstm(x, states, params, True, 1, 0.0, False, False, False)
    >>> [t.shape for t in r]
    [torch.Size([4, 5, 2]), torch.Size([1, 5, 2]), torch.Size([1, 5, 2])]
    """
    sizes, batch_first, (hx, params, _, *rest) = _called(args, named)
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    with untracked():
        x = input.transpose(0, 1) if batch_first else input
        out, hy, cy = _layers("lstm", x, sizes, hx, params, *rest)
        return (out.transpose(0, 1) if batch_first else out), hy, cy


@public
def quantized_gru(input: Any, *args: Any, **named: Any) -> tuple[Any, Any]:
    """Gated recurrent units with weights of integers: outputs, the last hidden states.

    Takes what `quantized_lstm` takes, with one tensor of states.

    >>> import torchshim as torch
    >>> m = torch.ao.nn.quantized.dynamic.GRU(3, 2)
    >>> params, zeros = [m._all_weight_values[0].param], torch.zeros(1, 5, 2)
    >>> x = torch.ones(4, 5, 3)
    >>> r = torch.quantized_gru(x, zeros, params, True, 1, 0.0, False, False, False)
    >>> r[0].shape
    torch.Size([4, 5, 2])
    """
    sizes, batch_first, (hx, params, _, *rest) = _called(args, named)
    with untracked():
        x = input.transpose(0, 1) if batch_first else input
        out, hy = _layers("gru", x, sizes, [hx], params, *rest)
        return (out.transpose(0, 1) if batch_first else out), hy
