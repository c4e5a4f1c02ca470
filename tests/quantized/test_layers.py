"""Layers of integers."""

import contextlib
import importlib

from tests.oracle import attempt, case
from tests.quantized.layers import load, pickled, plain, seen

_SETUP = """
nnq = torch.ao.nn.quantized; nni = torch.ao.nn.intrinsic; nniq = nni.quantized
able = torch.ao.nn.quantizable
def q(*shape, scale=.05, zero=64):
    return torch.quantize_per_tensor(torch.randn(*shape), scale, zero, torch.quint8)
def weighted(layer, *shape, zero=60):
    w = torch.quantize_per_tensor(torch.randn(*shape), .02, 0, torch.qint8)
    layer.set_weight_bias(w, torch.randn(6))
    layer.scale, layer.zero_point = .2, zero
    return layer
def p(n):
    return torch.nn.Parameter(torch.rand(n))
def drawn(layer):
    torch.nn.init.uniform_(layer.weight)
    layer.scale, layer.zero_point = torch.tensor(.05), torch.tensor(60)
    return layer
table = torch.quantize_per_channel(
    torch.randn(10, 12), torch.rand(10) * .02 + .01, torch.randn(10) * 3, 0,
    torch.quint8,
)
def filled(layer):
    layer.set_weight(table)
    return layer
at = torch.tensor([9, 6, 5, 7, 8, 8, 0])
"""


def _names(torch):
    load(torch)
    exec(_SETUP, found := {"torch": torch})
    return found


@case(warnings=False).lines("""
weighted(nnq.Linear(10, 6), 6, 10), q(5, 10)
weighted(nniq.LinearReLU(10, 6), 6, 10, zero=3), q(2, 5, 10)
drawn(nnq.BatchNorm2d(4)), q(2, 4, 5, 5)
drawn(nnq.BatchNorm3d(4)), q(2, 4, 3, 3, 3)
drawn(nniq.BNReLU2d(4)), q(2, 4, 5, 5)
drawn(nniq.BNReLU3d(4)), q(2, 4, 3, 3, 3)
nnq.Quantize(.1, 4, torch.quint8), torch.randn(3, 4)
nnq.DeQuantize(), q(3, 4)
nnq.Hardswish(.1, 4), q(3, 4)
nnq.ELU(.1, 40, .5), q(3, 4)
nnq.LeakyReLU(.1, 40), q(3, 4)
nnq.Sigmoid(1 / 256, 0), q(3, 4)
nnq.Softmax(0, 1 / 256, 0), q(3, 4)
nnq.ReLU6(), q(3, 4)
nnq.Dropout(), q(3, 4)
nnq.MaxPool2d(2), q(1, 4, 4, 4)
nnq.LayerNorm([4], p(4), p(4), .1, 50), q(3, 4)
nnq.GroupNorm(2, 4, p(4), p(4), .1, 50), q(2, 4, 3)
nnq.InstanceNorm1d(4, p(4), p(4), .1, 50), q(2, 4, 5)
nnq.InstanceNorm2d(4, p(4), p(4), .1, 50), q(2, 4, 5, 5)
nnq.InstanceNorm3d(4, p(4), p(4), .1, 50), q(2, 4, 3, 3, 3)
filled(nnq.Embedding(10, 12)), at
filled(nnq.Embedding(10, 12)), at[:6].view(2, 3)
filled(nnq.EmbeddingBag(10, 12)), at, torch.tensor([0, 3, 5])
filled(nnq.EmbeddingBag(10, 12)), at[:6].view(2, 3)
filled(nnq.EmbeddingBag(10, 12, include_last_offset=True)), at, torch.tensor([0, 3, 7])
filled(nnq.EmbeddingBag(10, 12)), at, torch.tensor([0, 3, 5]), torch.rand(7)
able.LSTM(4, 3, 2), torch.randn(5, 2, 4)
able.LSTM(4, 3, bidirectional=True), torch.randn(5, 2, 4)
able.LSTM(4, 3, batch_first=True, split_gates=True), torch.randn(5, 2, 4)
able.LSTMCell(4, 3), torch.randn(2, 4)
""")
def layers(torch, line):
    layer, *inputs = eval(line, _names(torch))
    yield from seen(torch, layer, *inputs)
    yield pickled(layer, *inputs)


@case(warnings=False).over(1, 2, 3)
def convolutions(torch, n):
    found = _names(torch)
    images = found["q"](2, 4, *[5] * n)
    kinds = (found["nnq"], "Conv", (6, 4)), (found["nniq"], "ConvReLU", (6, 4))
    for module, name, shape in (*kinds, (found["nnq"], "ConvTranspose", (4, 6))):
        layer = getattr(module, f"{name}{n}d")(4, 6, 3, stride=2, padding=1)
        layer = found["weighted"](layer, *shape, *[3] * n)
        yield from seen(torch, layer, images)


@case(warnings=False).lines("""
weighted(nnq.Conv2d(4, 6, (3, 2), padding=(1, 0), groups=2), 6, 2, 3, 2), q(1, 4, 5, 5)
weighted(nnq.Conv2d(4, 6, 3, dilation=2, bias=False), 6, 4, 3, 3), q(1, 4, 7, 7)
weighted(nnq.Conv2d(4, 6, 3, 1, 1, padding_mode='reflect'), 6, 4, 3, 3), q(1, 4, 5, 5)
weighted(nnq.Conv1d(4, 6, 3, 1, 1, padding_mode='reflect'), 6, 4, 3), q(1, 4, 5)
weighted(nnq.Conv2d(700, 6, 1), 6, 700, 1, 1), q(1, 700, 2, 2)
weighted(nnq.Linear(700, 6), 6, 700), q(3, 700)
""")
def other_convolutions(torch, line):
    layer, *inputs = eval(line, _names(torch))
    yield from seen(torch, layer, *inputs)


@case(warnings=False).lines("""
nnq.Conv2d(3, 4, 3, groups=2)
nnq.Conv2d(4, 3, 3, groups=2)
nnq.Conv2d(4, 0, 3)
nnq.Conv2d(3, 4, 3, padding_mode='circular')
nnq.Conv3d(3, 4, 3, padding_mode='reflect')
nnq.ConvTranspose2d(3, 4, 3, padding_mode='reflect')
nnq.Conv2d(3, 4, 3)(q(3, 5, 5))
nnq.Conv1d(3, 4, 3)(q(3, 5))
nnq.ConvTranspose3d(3, 4, 3)(q(3, 5, 5))
nnq.Conv2d(3, 4, 3)(q(1, 2, 5, 5))
nnq.Linear(3, 4, dtype=torch.quint8)
nnq.Linear(3, 4)(q(2, 5))
nnq.Conv2d.from_float(torch.nn.ReLU())
nnq.ConvTranspose2d.from_float(torch.nn.ReLU())
nnq.Embedding.from_float(torch.nn.Embedding(2, 3))
nnq.EmbeddingBag.from_float(torch.nn.Embedding(2, 3))
nnq.Embedding(2, 3, _weight=table)
nnq.QFunctional.from_float(torch.nn.ReLU())
nnq.FloatFunctional()(q(2))
nnq.QFunctional()(q(2))
nnq.BatchNorm2d(3)(q(2, 3))
nniq.BNReLU3d(3)(q(2, 3))
nnq.LSTM.from_float(torch.nn.LSTM(2, 3))
nnq.MultiheadAttention.from_float(torch.nn.LSTM(2, 3))
nniq.LinearTanh(3, 4)(q(2, 3))
nniq.ConvAdd2d(3, 4, 1)(q(1, 3, 2, 2), q(1, 4, 2, 2))
nniq.ConvAddReLU2d(3, 4, 1)(q(1, 3, 2, 2), q(1, 4, 2, 2))
nniq.LinearLeakyReLU(3, 4, .1)(q(2, 3))
nni.ConvReLU2d(torch.nn.Conv1d(2, 3, 1), torch.nn.ReLU())
nni.ConvBnReLU2d(torch.nn.Conv1d(2, 3, 1), torch.nn.ReLU(), torch.nn.ReLU())
""")
def refusals(torch, line):
    found = _names(torch)
    return attempt(lambda: plain(eval(line, found)))


@case(warnings=False)
def of_another_engine(torch):
    """Fused layers that only oneDNN has in PyTorch."""
    found = _names(torch)
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "onednn"
    try:
        nniq, q, weighted = found["nniq"], found["q"], found["weighted"]
        yield plain(weighted(nniq.LinearTanh(3, 6), 6, 3)(q(2, 3)))
        yield plain(weighted(nniq.LinearLeakyReLU(3, 6, 0.1), 6, 3)(q(2, 3)))
        for kind in (nniq.ConvAdd2d, nniq.ConvAddReLU2d):
            layer = weighted(kind(3, 6, 1), 6, 3, 1, 1)
            yield plain(layer(q(1, 3, 4, 4), q(1, 6, 4, 4)).int_repr())
    finally:
        torch.backends.quantized.engine = before


@case(warnings=False).over(None, (-3, 4))
def decomposed_weights(torch, ends):
    load(torch)
    with contextlib.suppress(ImportError):  # has the operators that PyTorch takes
        importlib.import_module(f"{torch.__name__}.ao.quantization.fx._decomposed")
    said = {"qscheme": torch.per_channel_affine, "dtype": torch.qint8, "axis": 0}
    said |= {"scale": torch.tensor([0.1, 0.2]), "zero_point": torch.tensor([0, 1])}
    if ends is not None:
        said |= {"quant_min": ends[0], "quant_max": ends[1]}
    said["is_decomposed"] = True
    kind = torch.ao.nn.quantized.reference.Linear
    layer = kind.from_float(torch.nn.Linear(3, 2), said)
    yield layer.get_weight(), layer.get_quantized_weight(), layer(torch.ones(1, 3))


@case(warnings=False)
def functions_as_layers(torch):
    found = _names(torch)
    nnq, q = found["nnq"], found["q"]
    f, x, y = nnq.QFunctional(), q(3, 4), q(3, 4, scale=0.1)
    f.scale, f.zero_point = 0.2, 50
    yield repr(f), plain(dict(f.state_dict()))
    yield plain([f.add(x, y), f.mul(x, y), f.add_relu(x, y), f.cat([x, y])])
    yield plain([f.add_scalar(x, 2.0), f.mul_scalar(x, -2.0), f.matmul(x, y.t())])
    for kind in (nnq.FloatFunctional, nnq.FXFloatFunctional):
        f, x, y = kind(), torch.randn(2, 2), torch.randn(2, 2)
        yield repr(f)
        yield [
            f.add(x, y),
            f.mul(x, y),
            f.add_relu(x, y),
            f.cat([x, y]),
            f.matmul(x, y),
        ]
        yield f.add_scalar(x, 2.0), f.mul_scalar(x, 2.0)


@case(warnings=False).lines("""
F.linear(q(2, 3), w(4, 3), torch.ones(4))
F.linear(q(2, 3), w(4, 3), None, .2, 5)
F.conv1d(q(1, 3, 5), w(4, 3, 2), None, padding=1, scale=.2, zero_point=50)
F.conv2d(q(1, 3, 5, 5), w(4, 3, 2, 2), torch.ones(4), 2, 1, scale=.2, zero_point=50)
F.conv3d(q(1, 3, 3, 3, 3), w(4, 3, 2, 2, 2), None, scale=.2, zero_point=50)
F.conv2d(q(1, 3, 5, 5), w(4, 3, 2, 2), None, padding_mode='reflect')
F.conv2d(q(3, 5, 5), w(4, 3, 2, 2), None)
F.conv2d(torch.randn(1, 3, 5, 5), w(4, 3, 2, 2), None)
F.max_pool1d(q(1, 3, 4), 2), F.max_pool2d(q(1, 4, 4), 2)
F.max_pool2d(q(1, 4, 4), 2, return_indices=True)
F.avg_pool2d(q(1, 4, 4), 2), F.adaptive_avg_pool2d(q(1, 4, 4), 2)
F.avg_pool2d(torch.ones(1, 4, 4), 2)
F.interpolate(q(1, 1, 2, 2), scale_factor=2)
F.celu(q(3), .1, 50), F.elu(q(3), .1, 50), F.hardswish(q(3), .1, 50)
F.leaky_relu(q(3)), F.leaky_relu(q(3), .1, scale=.2, zero_point=5)
F.hardtanh(q(3)), F.threshold(q(3), .3, 1.), F.hardsigmoid(q(3)), F.clamp(q(3), 0., 1.)
F.threshold(q(3), None, 1.)
F.celu(torch.ones(3), .1, 5)
""")
def functions(torch, line):
    found = _names(torch)
    found["F"] = torch.ao.nn.quantized.functional

    def w(*shape):
        return torch.quantize_per_tensor(torch.randn(*shape), 0.02, 0, torch.qint8)

    found["w"] = w
    return attempt(lambda: plain(eval(line, found)))


_SAID = """
ref = torch.ao.nn.quantized.reference
one = {'qscheme': torch.per_tensor_affine, 'dtype': torch.qint8, 'scale': .02}
one['zero_point'] = 3
each = {'qscheme': torch.per_channel_affine, 'dtype': torch.qint8, 'axis': 0}
each |= {'scale': torch.rand(6) * .1, 'zero_point': torch.zeros(6, dtype=torch.int)}
none = {'qscheme': None, 'dtype': torch.float16}
two = {'weight_ih': one, 'weight_hh': one, 'is_decomposed': False}
def all_of(layer):
    names = [n for n, _ in layer.named_parameters() if n.startswith('weight')]
    return {'is_decomposed': False, **dict.fromkeys(names, one)}
nn = torch.nn; lstm, gru = nn.LSTM(4, 3, 2), nn.GRU(4, 3, bidirectional=True)
"""


@case(warnings=False).lines("""
ref.Linear.from_float(nn.Linear(4, 6), one), torch.randn(2, 4)
ref.Linear.from_float(nn.Linear(4, 6), each), torch.randn(2, 4)
ref.Linear.from_float(nn.Linear(4, 6), none), torch.randn(2, 4)
ref.Linear(4, 6), torch.randn(2, 4)
ref.Conv2d.from_float(nn.Conv2d(4, 6, 3), each), torch.randn(1, 4, 5, 5)
ref.Conv1d.from_float(nn.Conv1d(4, 6, 3, padding=1), one), torch.randn(1, 4, 5)
ref.ConvTranspose1d.from_float(nn.ConvTranspose1d(4, 6, 3), one), torch.randn(1, 4, 5)
ref.Embedding.from_float(nn.Embedding(6, 3), each), torch.tensor([1, 5])
ref.LSTMCell.from_float(nn.LSTMCell(4, 3), two), torch.randn(2, 4)
ref.GRUCell.from_float(nn.GRUCell(4, 3), two), torch.randn(2, 4)
ref.RNNCell.from_float(nn.RNNCell(4, 3), two), torch.randn(2, 4)
ref.LSTM.from_float(lstm, all_of(lstm)), torch.randn(5, 2, 4)
ref.GRU.from_float(gru, all_of(gru)), torch.randn(5, 2, 4)
""")
def reference_layers(torch, line):
    exec(_SAID, found := _names(torch))
    layer, *inputs = eval(line, found)
    yield repr(layer), plain(layer(*inputs)), plain(dict(layer.state_dict()))
    if hasattr(layer, "get_quantized_weight"):
        yield plain(layer.get_weight())
        yield attempt(lambda: plain(layer.get_quantized_weight()))


@case(warnings=False).lines("""
nnq.Linear.from_reference(ref.Linear.from_float(nn.Linear(4, 6), each), .1, 3)
nnq.Conv2d.from_reference(ref.Conv2d.from_float(nn.Conv2d(4, 6, 3), each), .1, 3)
nnq.Embedding.from_reference(ref.Embedding.from_float(nn.Embedding(6, 3), rows))
nnq.dynamic.Linear.from_reference(ref.Linear.from_float(nn.Linear(4, 6), each))
nnq.dynamic.LSTM.from_reference(ref.LSTM.from_float(lstm, all_of(lstm)))
nnq.dynamic.GRUCell.from_reference(ref.GRUCell.from_float(nn.GRUCell(4, 3), two))
nnq.dynamic.RNNCell.from_reference(ref.RNNCell.from_float(nn.RNNCell(4, 3), two))
nniq.LinearReLU.from_reference([ref.Linear.from_float(nn.Linear(4, 6), one)], .1, 3)
nniq.ConvReLU1d.from_reference([ref.Conv1d.from_float(nn.Conv1d(4, 6, 3), one)], .1, 3)
""")
def out_of_reference_layers(torch, line):
    exec(_SAID, found := _names(torch))
    scheme = torch.per_channel_affine_float_qparams
    found["rows"] = found["each"] | {"qscheme": scheme, "dtype": torch.quint8}
    found["rows"]["zero_point"] = torch.rand(6)
    layer = eval(line, found)
    return repr(layer), plain(dict(layer.state_dict()))
