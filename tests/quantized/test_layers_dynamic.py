"""Layers with weights of integers whose inputs are rounded as they come."""

from tests.oracle import attempt, case
from tests.quantized.layers import load, pickled, plain, seen

_SETUP = """
nnqd = torch.ao.nn.quantized.dynamic
nni = torch.ao.nn.intrinsic
half = torch.float16
x = torch.randn(5, 3, 10)
def weighted(layer, *shape):
    w = torch.quantize_per_tensor(torch.randn(*shape), .02, 0, torch.qint8)
    layer.set_weight_bias(w, torch.randn(6))
    return layer
def channels(layer, *shape):
    scales = torch.rand(shape[0]) * .02 + .01
    zeros = torch.zeros(shape[0], dtype=torch.long)
    w = torch.quantize_per_channel(torch.randn(*shape), scales, zeros, 0, torch.qint8)
    layer.set_weight_bias(w, None)
    return layer
packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 2, 4], enforce_sorted=False)
image = torch.randn(2, 4, 5, 5)
"""


def _names(torch):
    load(torch)
    exec(_SETUP, found := {"torch": torch})
    return found


@case(warnings=False).lines("""
weighted(nnqd.Linear(10, 6), 6, 10), x
channels(nnqd.Linear(10, 6, bias_=False), 6, 10), x
weighted(nni.quantized.dynamic.LinearReLU(10, 6), 6, 10), x
nnqd.LSTM(10, 7, 2), x
nnqd.LSTM(10, 7, 2, bidirectional=True, batch_first=True), x
nnqd.LSTM(10, 7, bidirectional=True), packed
nnqd.LSTM(10, 7, dtype=half), x
nnqd.LSTM(10, 7, dtype=half), packed
nnqd.GRU(10, 7, 2), x
nnqd.GRU(10, 7, 2, bidirectional=True), packed
nnqd.GRU(10, 7, batch_first=True), x, torch.randn(1, 5, 7)
nnqd.LSTMCell(10, 7), x[0]
nnqd.GRUCell(10, 7), x[0], torch.randn(3, 7)
nnqd.RNNCell(10, 7), x[0]
nnqd.RNNCell(10, 7, nonlinearity='relu'), x[0]
nnqd.LSTMCell(10, 7, dtype=half), x[0]
""")
def layers(torch, line):
    found = _names(torch)
    layer, *inputs = eval(line, found)
    yield from seen(torch, layer, *inputs)
    yield pickled(layer, *inputs)


@case(warnings=False).over(1, 2, 3)
def convolutions(torch, n):
    found = _names(torch)
    images = torch.randn(2, 4, *[5] * n)
    for name, shape in (("Conv", (6, 4)), ("ConvTranspose", (4, 6))):
        layer = getattr(found["nnqd"], f"{name}{n}d")(4, 6, 3, padding=1)
        layer = found["weighted"](layer, *shape, *[3] * n)
        yield from seen(torch, layer, images)


@case(warnings=False).lines("""
nnqd.Linear(10, 6, dtype=torch.quint8)
nnqd.LSTM(10, 6, dropout=2)
nnqd.modules.rnn.RNNBase('RNN', 10, 6)
nnqd.LSTM(10, 7)(x[0])
nnqd.LSTM(10, 7)(x[..., :3])
nnqd.GRU(10, 7)(x, torch.zeros(1, 2, 7))
nnqd.LSTM(10, 7)(x, (torch.zeros(1, 2, 7), torch.zeros(1, 3, 7)))
nnqd.LSTMCell(10, 7)(x[0, :, :3])
nnqd.GRUCell(10, 7)(x[0], torch.zeros(2, 7))
nnqd.RNNCell(10, 7)(x[0], torch.zeros(3, 6))
nnqd.RNNCell(10, 7, nonlinearity='x')(x[0])
nnqd.Linear.from_float(torch.nn.Linear(2, 3))
nnqd.LSTM.from_float(torch.nn.LSTM(2, 3))
nnqd.LSTMCell.from_float(torch.nn.Linear(2, 3))
nnqd.Conv2d(4, 6, 3)(x)
weighted(nnqd.Linear(10, 6), 6, 10)(x[..., :3])
weighted(nnqd.Linear(10, 6), 6, 10)(x.double())
weighted(nnqd.Linear(10, 6), 6, 10)(x[0, 0])
""")
def refusals(torch, line):
    found = _names(torch)
    return attempt(lambda: plain(eval(line, found)))


@case(warnings=False)
def older_states(torch):
    """Of layers that used all codes of the input, and had weight and bias apart."""
    load(torch)
    nnqd = torch.ao.nn.quantized.dynamic
    layer = nnqd.Linear(4, 2)
    codes = torch.arange(8, dtype=torch.int8).view(2, 4) - 4
    weight = torch._make_per_tensor_quantized_tensor(codes, 0.5, 0)
    state = {"scale": torch.tensor(1.0), "zero_point": torch.tensor(0)}
    state |= {"weight": weight, "bias": torch.ones(2)}
    layer.load_state_dict(state)
    yield layer.version, plain(layer(torch.tensor([[1.0, 2.0, -1.0, 0.3]])))
    state = layer.state_dict()
    yield plain(dict(state)), state._metadata


@case(warnings=False)
def weights_and_biases(torch):
    load(torch)
    nnqd = torch.ao.nn.quantized.dynamic
    for layer in (nnqd.LSTM(3, 2, bidirectional=True), nnqd.LSTMCell(3, 2)):
        yield plain(layer.get_weight()), plain(layer.get_bias())
