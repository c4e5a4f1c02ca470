"""Recurrent layers over whole sequences, and packed batches of sequences."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import jax
import numpy as np

from tests.nn.test_layers import numbers
from tests.oracle import attempt, case, evaluate
from torchshim._core.op import REGISTRY


def scope(torch: Any) -> dict[str, Any]:
    names = {name: getattr(torch.nn.utils.rnn, name) for name in RNN_UTILS}
    return {"x": lambda *shape: numbers(torch, *shape), **names}


RNN_UTILS = (
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
)


# A layer, and its input. (`+ 0`: PyTorch's last node may be an in-place transpose.)
LAYERS = """
    nn.RNN(3, 4); x(5, 2, 3)
    nn.RNN(3, 4, 2, "relu", bidirectional=True); x(5, 3), x(4, 4)
    nn.RNN(3, 4, bias=False, batch_first=True); x(2, 5, 3), x(1, 2, 4)
    nn.GRU(3, 4, 2, dropout=0.5); x(5, 2, 3)
    nn.GRU(3, 4, bidirectional=True, batch_first=True); x(2, 5, 3)
    nn.GRU(3, 4, 2, bidirectional=True, bias=False); pack_padded_sequence(x(5, 3, 3), [2, 5, 3], enforce_sorted=False)
    nn.LSTM(3, 4); x(5, 2, 3)
    nn.LSTM(3, 4, 2, batch_first=True, dropout=0.5); x(2, 5, 3), (x(2, 2, 4), x(2, 2, 4) / 2)
    nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2, dtype=torch.float64); x(5, 2, 3).double()
    nn.LSTM(3, 4, bias=False, proj_size=2, dtype=torch.float64); x(5, 3).double()
    nn.LSTM(3, 4, 2, dropout=0.5, bidirectional=True); pack_sequence([x(4, 3), x(2, 3), x(2, 3)])
    nn.LSTM(3, 4); pack_padded_sequence(x(4, 2, 3), [2, 4], enforce_sorted=False), (x(1, 2, 4), x(1, 2, 4) / 2)
    nn.RNN(3, 4); x(5, 0, 3)
    nn.RNN(3, 4, 2, bidirectional=True); x(1, 2, 3)
    nn.GRU(3, 4, batch_first=True); x(2, 1, 3), x(1, 2, 4)
    nn.LSTM(3, 4, 2, proj_size=2); x(1, 2, 3)
    nn.LSTM(3, 4, bidirectional=True); pack_sequence([x(1, 3), x(1, 3)])
    nn.LSTM(3, 4, 2); pack_sequence([x(3, 3), x(3, 3)])
    nn.LSTM(3, 4, proj_size=2); pack_sequence([x(3, 3), x(3, 3)])
    nn.GRU(3, 4); pack_sequence([x(3, 3), x(3, 3)])
    nn.LSTM(3, 4, dtype=torch.float64); pack_sequence([x(1, 3).double()])
"""  # noqa: E501


def results(torch: Any, given: Any) -> list[Any]:
    """The tensors that a layer gave; what says how the output was packed apart."""
    output, state = given
    states = list(state) if isinstance(state, tuple) else [state]
    if isinstance(output, torch.nn.utils.rnn.PackedSequence):
        return [output.data, *states]
    return [output + 0, *states]


# The rounding between the operations of a step differs.
HALVES = """
    nn.LSTM(3, 4, dtype=torch.bfloat16); x(5, 2, 3).bfloat16()
    nn.GRU(3, 4, dtype=torch.float16); x(5, 2, 3).half()
"""


@case(
    rtol=0.05, atol=0.02, why="states in between are float32 here, rounded in PyTorch"
).lines(HALVES)
def halves(torch, line):
    yield from layers(torch, line)


@case.lines(LAYERS)
def layers(torch, line):
    text, inputs = line.split("; ")
    layer = evaluate(torch, text, **scope(torch))
    yield repr(layer), list(layer.__constants__), layer._all_weights
    yield dict(layer.state_dict())
    given = evaluate(torch, inputs, **scope(torch))
    given = given if isinstance(given, tuple) and type(given) is tuple else (given,)
    torch.manual_seed(1)
    shown = results(torch, layer(*given))
    weights = {"data": shown[0] * shown[0], "last": shown[1] * 2}
    sum(w.sum() for w in weights.values()).backward()
    yield shown, [tuple(r.stride()) for r in shown[1:]]
    yield {name: p.grad for name, p in layer.named_parameters()}
    layer.eval()
    yield results(torch, layer(*given))


@case.over("RNN", "GRU", "LSTM")
def gradients(torch, kind):
    """Gradients of the input and the state, first and second ones."""
    layer = getattr(torch.nn, kind)(2, 3, dtype=torch.float64)
    x = numbers(torch, 4, 2, 2).double().requires_grad_()
    h = (numbers(torch, 1, 2, 3).double() / 2).requires_grad_()
    state = (h, h * 2) if kind == "LSTM" else h
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [4, 2])
    total = sum((r * r).sum() for r in results(torch, layer(packed, state)))
    first = torch.autograd.grad(total, [x, h, layer.weight_hh_l0], create_graph=True)
    (first[0] ** 2).sum().backward()
    return [g.detach() for g in first], x.grad, h.grad, layer.weight_ih_l0.grad


@case.lines("""
    nn.LSTM(3, 4, dropout=2)
    nn.LSTM(3, 4, dropout=True)
    nn.LSTM(3, 4, dropout=0.5)
    nn.LSTM(3, 4, bias=1)
    nn.LSTM(3, 4, batch_first=0)
    nn.LSTM(3.0, 4)
    nn.LSTM(3, "4")
    nn.LSTM(0, 4)
    nn.LSTM(3, -1)
    nn.LSTM(3, 4, 0)
    nn.LSTM(3, 4, proj_size=-1)
    nn.LSTM(3, 4, proj_size=4)
    nn.GRU(3, 4, proj_size=2)
    nn.RNN(3, 4, proj_size=2)
    nn.RNN(3, 4, nonlinearity="x")
    nn.RNNBase("X", 3, 4)
    nn.RNN(3, 4, 1, "relu", False, True)
    nn.RNNBase("GRU", 3, 4, 2, False, True, 0.5, True)
    nn.LSTM(3, 4)(x(3))
    nn.RNN(3, 4)(x(3))
    nn.LSTM(3, 4)(x(5, 2, 4))
    nn.LSTM(3, 4)(x(5, 2, 3).double())
    nn.LSTM(3, 4)(x(0, 2, 3))
    nn.LSTM(3, 4)(x(5, 2, 3), (x(1, 4), x(1, 4)))
    nn.LSTM(3, 4)(x(5, 3), (x(1, 4), x(1, 1, 4)))
    nn.LSTM(3, 4)(x(5, 2, 3), (x(1, 2, 4), x(1, 3, 4)))
    nn.LSTM(3, 4)(x(5, 2, 3), (x(2, 2, 4), x(1, 2, 4)))
    nn.GRU(3, 4)(x(5, 2, 3), x(1, 4))
    nn.GRU(3, 4)(x(5, 3), x(1, 1, 4))
    nn.GRU(3, 4)(x(5, 2, 3), x(1, 3, 4))
    nn.GRU(3, 4)(pack_sequence([x(2, 3)]), x(1, 3, 4))
    nn.GRU(3, 4)(PackedSequence(x(2, 2, 3), torch.tensor([2])))
    w = nn.GRU(3, 2)._flat_weights; torch.gru(x(4, 2, 3), x(1, 2, 2), w[:3], True, 1, 0.0, True, False, False)
    w = nn.GRU(3, 2)._flat_weights; torch.gru(x(4, 2, 3), x(1, 1, 2), w, True, 1, 0.0, True, False, False)
    w = nn.GRU(3, 2)._flat_weights; torch.gru(x(4, 2, 2), x(1, 2, 2), w, True, 1, 0.0, True, False, False)
    w = nn.GRU(3, 2)._flat_weights; torch.gru(x(4, 2, 3), x(1, 2, 2).double(), w, True, 1, 0.0, True, False, False)
    w = nn.GRU(3, 2)._flat_weights; torch.gru(x(4, 2, 3), x(1, 2, 2), w, True, 2, 0.0, True, False, False)
    w = nn.RNN(3, 2)._flat_weights; torch.rnn_tanh(x(4, 2, 3), x(0, 2, 2), w, True, 1, 0.0, True, False, False)
    w = nn.LSTM(3, 2)._flat_weights; torch.lstm(x(4, 2, 3), (x(1, 2, 2),), w, True, 1, 0.0, True, False, False)
    w = nn.LSTM(3, 2)._flat_weights; torch.lstm(x(4, 2, 3), (x(1, 2, 2),) * 2, w[:3], True, 1, 0.0, True, False, False)
    w = nn.LSTM(3, 2)._flat_weights; torch.lstm(x(4, 2, 3), (x(1, 2, 2),) * 2, w, True, 1, 0.0, True, True, False)
""")  # noqa: E501
def refusals(torch, line):
    result = attempt(evaluate, torch, line, **scope(torch))
    return repr(result) if isinstance(result, torch.nn.Module) else result


@case
def functions(torch):
    """The functions under the layers, by position and by keyword."""
    x, h = numbers(torch, 4, 2, 3), numbers(torch, 1, 2, 2)
    rest = True, 1, 0.0, True, False
    weights = torch.nn.LSTM(3, 2)._flat_weights
    yield torch.lstm(x, (h, h), weights, *rest, False)
    packed = torch.lstm(x.reshape(8, 3), torch.tensor([2] * 4), (h, h), weights, *rest)
    yield [t.detach() for t in packed]
    names = "has_biases", "num_layers", "dropout", "train", "bidirectional"
    named = dict(zip(names, rest, strict=True))
    weights = torch.nn.RNN(3, 2)._flat_weights
    for function in (torch.rnn_tanh, torch.rnn_relu):
        given = function(input=x, hx=h, params=weights, batch_first=False, **named)
        yield [t.detach() for t in given]
    data = x.reshape(8, 3)[:5]
    sizes = torch.tensor([2, 2, 1])
    given = torch.rnn_relu(data=data, batch_sizes=sizes, hx=h, params=weights, **named)
    yield [t.detach() for t in given]


@case
def weights(torch):
    """Weights that are replaced, converted, copied and shared."""
    layer = torch.nn.LSTM(2, 3, 2, bidirectional=True)
    x = numbers(torch, 2, 1, 2)
    yield [[tuple(w.shape) for w in group] for group in layer.all_weights]
    yield all(
        a is b for a, b in zip(layer._flat_weights, layer.parameters(), strict=True)
    )
    layer.weight_ih_l0 = torch.nn.Parameter(torch.zeros(12, 2))
    yield layer._flat_weights[0] is layer.weight_ih_l0, layer(x)[0]
    del layer.bias_hh_l0
    layer.bias_hh_l0 = torch.nn.Parameter(torch.ones(12))
    yield layer(x)[0], layer.flatten_parameters()
    twin = pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)
    yield [t(x)[0].sum().item() == layer(x)[0].sum().item() for t in twin]
    layer.double()
    yield layer(x.double())[1], layer._flat_weights[0].dtype
    layer.load_state_dict(twin[0].state_dict())
    yield layer(x.double())[0]
    with torch.no_grad():
        layer.weight_hh_l1.zero_()
    yield layer(x.double())[1]
    yield layer.get_expected_hidden_size(x, None), layer.get_expected_cell_size(x, None)


@case.lines("""
    pack_padded_sequence(x(4, 3), [4, 2, 1])
    pack_padded_sequence(x(4, 3, 2), torch.tensor([2, 2, 1]))
    pack_padded_sequence(x(4, 3), [5, 2, 1])
    pack_padded_sequence(x(3, 4, 2), [1, 2, 4], True, False)
    pack_padded_sequence(x(4, 3), torch.tensor([3.0, 2.0, 1.0]))
    pack_padded_sequence(x(4, 3).requires_grad_(), [2, 4, 1], enforce_sorted=False)
    pack_padded_sequence(x(4, 3), [2, 2])
    pack_padded_sequence(x(4, 3), [2, 2, 3])
    pack_padded_sequence(x(4, 3), [2, 2, 0])
    pack_padded_sequence(x(4, 3), [2, 0, 1], enforce_sorted=False)
    pack_padded_sequence(torch.zeros(0, 3), [3, 2, 1])
    pack_padded_sequence(torch.zeros(0, 0), torch.zeros(1, 1))
    torch._pack_padded_sequence(x(4, 1), torch.ones(1), False)
    pack_padded_sequence(x(4, 3), torch.tensor([[1, 2, 3]]))
    pack_padded_sequence(x(4, 3), torch.tensor(3))
    pack_sequence([x(3), x(2)])
    pack_sequence([x(2), x(3)])
    pack_sequence([x(2, 2), x(3, 2), x(1, 2)], False)
    pad_packed_sequence(pack_sequence([x(3), x(2)]))
    pad_packed_sequence(pack_sequence([x(2, 2), x(3, 2)], False), True, -1.0, 5)
    pad_packed_sequence(pack_sequence([torch.arange(2), torch.arange(3)], False), True, 2.5)
    pad_packed_sequence(pack_sequence([x(3), x(2)]), total_length=2)
    pad_packed_sequence(pack_sequence([x(3), x(2)]), padding_value="a")
    pad_packed_sequence(pack_padded_sequence(x(4, 3).requires_grad_(), [4, 2, 1]))
    pad_packed_sequence(pack_padded_sequence(x(4, 3).requires_grad_(), [4, 2, 1]), True)
    pad_sequence([x(2), x(3)])
    pad_sequence([x(2, 2), x(3, 2)], True, 5, "left")
    pad_sequence([x(2, 2).requires_grad_(), x(3, 2)], padding_value=0.5)
    pad_sequence([x(2, 2).requires_grad_(), x(3, 2)], True, 0.5, "left")
    pad_sequence([x(2, 2), x(3, 1)])
    pad_sequence([x(2, 2), x(3, 3)])
    pad_sequence([torch.ones(2).long(), torch.ones(3) * 1.5])
    pad_sequence([x(2).requires_grad_(), torch.ones(3).long()])
    pad_sequence(x(2, 3))
    pad_sequence(x(n) for n in (1, 2))
    pad_sequence([x(2)], padding_side="up")
    pad_sequence([torch.tensor(1.0)])
    pad_sequence([])
    pad_sequence(3)
    pad_sequence([1, 2])
    unpad_sequence(torch.arange(6).reshape(3, 2), torch.tensor([1, 3]))
    unpad_sequence(torch.arange(6).reshape(2, 3), torch.tensor([1, 3]), True)
    unpad_sequence(torch.arange(6).reshape(3, 2), torch.tensor([1, 3, 2]))
    unpack_sequence(pack_sequence([x(2, 2), x(3, 2)], False))
    invert_permutation(torch.tensor([2, 0, 1])), invert_permutation(None)
    PackedSequence((x(2), torch.tensor([2])))
    PackedSequence(x(2))
    PackedSequence(x(2), torch.tensor([2]), torch.tensor([1, 0]))
    PackedSequence._fields, PackedSequence.__mro__[1].__name__
    a = x(4, 3).requires_grad_(); pad_packed_sequence(pack_padded_sequence(a, [2, 3, 1], enforce_sorted=False))[0].pow(2).sum().backward(); a.grad
    a = [x(2).requires_grad_(), x(3).requires_grad_()]; pad_sequence(a, padding_side="left").pow(2).sum().backward(); [t.grad for t in a]
""")  # noqa: E501
def packing(torch, line):
    result = attempt(evaluate, torch, line, **scope(torch))
    if isinstance(result, torch.nn.utils.rnn.PackedSequence):
        return repr(result), tuple(result), [type(t).__name__ for t in result]
    return result


@case
def packed_sequences(torch):
    """A packed sequence converted, moved, taken apart."""
    rnn = torch.nn.utils.rnn
    packed = rnn.pack_sequence([numbers(torch, 2), numbers(torch, 3)], False)
    yield packed.to(torch.float64), packed.to(torch.float32) is packed
    yield attempt(packed.to, torch.float64, copy=True)
    yield packed.cpu() is packed, packed.is_cuda, packed.is_pinned()
    for name in ("double", "float", "half", "long", "int", "short", "char", "byte"):
        yield tuple(getattr(packed, name)())
    data = packed.data
    yield packed[0] is data, packed == packed, len(packed), isinstance(packed, tuple)
    yield tuple(packed._replace(data=data * 2)), packed._asdict().keys()


@case
def by_another_name(torch):
    """Layers that people copied from PyTorch call `torch._VF`."""
    functions = importlib.import_module(f"{torch.__name__}._VF")
    yield functions.lstm is torch.lstm, attempt(getattr, functions, "zzz")
    layer, x = torch.nn.GRU(2, 3), numbers(torch, 4, 1, 2)
    torch.nn.utils.vector_to_parameters(numbers(torch, 63), layer.parameters())
    args = (x, torch.zeros(1, 1, 3), layer._flat_weights, True, 1, 0.0)
    yield functions.gru(*args, True, False, False)


def test_a_single_step_is_no_loop():
    shapes = (2, 4), (12, 4), 12
    state, weights, bias = (np.zeros(shape, "float32") for shape in shapes)

    def layer(input: Any) -> Any:
        return gru(input, None, state, weights, weights, bias, bias, False)

    gru = REGISTRY["gru_layer"].fn
    assert "scan" in str(jax.make_jaxpr(layer)(np.zeros((2, 2, 4), "float32")))
    assert "scan" not in str(jax.make_jaxpr(layer)(np.zeros((1, 2, 4), "float32")))


@case.over(kind=("RNN", "LSTM", "GRU"))
def tensors_on_two_devices(torch, kind):
    def states(device):
        h = torch.zeros(1, 1, 3, device=device)
        return (h, h) if kind == "LSTM" else h

    here, there = (getattr(torch.nn, kind)(2, 3, device=d) for d in ("cpu", "meta"))
    x = torch.ones(4, 1, 2)
    yield attempt(here, x.to("meta")), attempt(there, x)
    yield attempt(here, x, states("meta")), attempt(there, x, states("cpu"))
    yield there(x.to("meta"))[0].device
