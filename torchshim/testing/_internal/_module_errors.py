"""What modules of the database refuse, with their errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torchshim as torch
from torchshim import nn

#: The constructor's arguments, those of `forward` (None: it is not called), the error.
Refused = tuple[tuple[Any, ...], dict[str, Any], Any, type[Exception], str]


def _recurrent() -> Iterator[Refused]:
    positive, kind = "must be greater than zero", "should be of type"
    for args, name in (
        (((10, 0, 1)), "hidden_size"),
        (((10, 10, 0)), "num_layers"),
        ((0, 5), "input_size"),
        ((-1, 5), "input_size"),
    ):
        yield args, {}, None, ValueError, f"{name} {positive}"
    for name, values in (("bias", (0, 1, "True")), ("batch_first", (0, 1, "False"))):
        for value in values:
            text = f"{name} {kind} bool, got: {type(value).__name__}"
            yield (3, 5), {name: value}, None, TypeError, text
    for args, name, got in (
        ((3.0, 5), "input_size", "float"),
        (("10", 5), "input_size", "str"),
        ((3, 5.0), "hidden_size", "float"),
    ):
        yield args, {}, None, TypeError, f"{name} {kind} int, got: {got}"
    text = r"RNN input dtype .* does not match weight dtype .* Convert input: "
    text += r"input\.to\(.*\), or convert model: model\.to\(.*\)"
    half = torch.randn(2, 4, 3, dtype=torch.float16)
    yield (3, 5), {"dtype": torch.float32}, (half,), ValueError, text


def _cells(lstm: bool) -> Iterator[Refused]:
    for size, hidden, kind, text in (
        (11, (3, 20), RuntimeError, "input has inconsistent input_size: got 11"),
        (10, (3, 21), RuntimeError, "hidden0 has inconsistent hidden_size: got 21"),
        (10, (5, 20), RuntimeError, "size 3 doesn't match hidden0 batch size 5"),
        (10, (3, 1, 1, 20), ValueError, r"Expected h.* to be 1D or 2D, got 4D instead"),
    ):
        state: Any = torch.ones(hidden)
        given = (torch.ones(3, size), (state, state) if lstm else state)
        yield (10, 20), {}, given, kind, text


def _others() -> Iterator[tuple[Any, Refused]]:
    for cls, shape in (
        (nn.BatchNorm1d, (2, 10)),
        (nn.BatchNorm2d, (2, 10, 5, 5)),
        (nn.BatchNorm3d, (2, 10, 4, 4, 4)),
    ):
        for eps in (-1.0, 0.0):
            given = (torch.randn(shape),)
            yield cls, ((10,), {"eps": eps}, given, ValueError, "eps must be positive")
    text = r"non-empty 3D or 4D \(batch mode\) tensor expected for input"
    for shape in ((3, 4), (1, 2, 3, 4, 5)):
        yield nn.MaxPool2d, ((2,), {}, (torch.randn(shape),), RuntimeError, text)
    text = "pad should be at most half of effective kernel size"
    given = (torch.randn(1, 1, 10, 10),)
    yield nn.MaxPool2d, ((3,), {"padding": 5}, given, RuntimeError, text)
    text = "delta must be a float or int, got: <class 'complex'>"
    yield nn.HuberLoss, ((), {"delta": 1 + 0j}, None, TypeError, text)
    for args, text in (
        ((3, 10), r"num_channels \(10\) must be divisible by num_groups \(3\)"),
        ((5, 13), r"num_channels \(13\) must be divisible by num_groups \(5\)"),
    ):
        yield nn.GroupNorm, (args, {}, None, ValueError, text)
    for cls, shape, wanted in (
        (nn.CircularPad1d, (2, 3, 4, 5), "2D or 3D"),
        (nn.CircularPad2d, (2, 3), "3D or 4D"),
        (nn.CircularPad3d, (2, 3), "4D or 5D"),
    ):
        text = rf"expected {wanted} input \(got {len(shape)}D input\)"
        yield cls, ((3,), {}, (torch.randn(shape),), ValueError, text)


def refusals(cls: Any) -> list[Refused]:
    """What a module refuses."""
    if cls in (nn.RNN, nn.GRU, nn.LSTM):
        return list(_recurrent())
    if cls in (nn.RNNCell, nn.GRUCell, nn.LSTMCell):
        return list(_cells(cls is nn.LSTMCell))
    return [refused for other, refused in _others() if other is cls]


#: The modules for which there are some.
REFUSING = {
    *(nn.RNN, nn.GRU, nn.LSTM, nn.RNNCell, nn.GRUCell, nn.LSTMCell),
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d),
    *(nn.MaxPool2d, nn.HuberLoss, nn.GroupNorm),
    *(nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d),
}
