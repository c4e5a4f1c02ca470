"""Fused layers, and layers that are trained with weights rounded as they will be."""

from tests.oracle import attempt, case
from tests.quantized.layers import load, plain

_SETUP = """
import copy
nn = torch.nn; nni = torch.ao.nn.intrinsic; nniqat = nni.qat; nnqat = torch.ao.nn.qat
tq = torch.ao.quantization; nnq = torch.ao.nn.quantized
qconfig = tq.get_default_qat_qconfig('x86')
rows = tq.default_embedding_qat_qconfig
memoryless = tq.default_dynamic_qat_qconfig
def configured(layer, by=qconfig):
    layer.qconfig = by
    return layer
def conv(n, *more, **options):
    kind = getattr(nn, f'Conv{n}d')
    return kind(2, 3, 2, **options), getattr(nn, f'BatchNorm{n}d')(3), nn.ReLU()
def image(n):
    return torch.randn(4, 2, *[5] * n)
"""


def _names(torch):
    load(torch)
    exec(_SETUP, found := {"torch": torch})
    return found


def _uneven(torch, result):
    """A loss whose gradients do not cancel out in a batch normalization."""
    return (result * torch.arange(result.numel()).view(result.shape).cos()).sum()


@case(warnings=False).lines("""
nnqat.Linear(3, 4, qconfig=qconfig), torch.randn(5, 3)
nnqat.Conv1d(2, 3, 2, qconfig=qconfig), image(1)
nnqat.Conv2d(2, 3, 2, padding=1, qconfig=qconfig), image(2)
nnqat.Conv3d(2, 3, 2, qconfig=qconfig), image(3)
nnqat.Conv2d(2, 3, 2, padding=1, padding_mode='reflect', qconfig=qconfig), image(2)
nnqat.Embedding(5, 3, qconfig=rows), torch.tensor([1, 4, 1])
nnqat.EmbeddingBag(5, 3, qconfig=rows), torch.tensor([1, 4, 1]), torch.tensor([0, 2])
nnqat.dynamic.Linear(3, 4, qconfig=memoryless), torch.randn(5, 3)
nniqat.LinearReLU(3, 4, qconfig=qconfig), torch.randn(5, 3)
nniqat.LinearBn1d(3, 4, bias=False, qconfig=qconfig), torch.randn(5, 3)
nniqat.ConvReLU1d(2, 3, 2, qconfig=qconfig), image(1)
nniqat.ConvReLU2d(2, 3, 2, bias=False, qconfig=qconfig), image(2)
nniqat.ConvReLU3d(2, 3, 2, qconfig=qconfig), image(3)
nniqat.ConvBn1d(2, 3, 2, qconfig=qconfig), image(1)
nniqat.ConvBn2d(2, 3, 2, bias=True, qconfig=qconfig), image(2)
nniqat.ConvBn3d(2, 3, 2, qconfig=qconfig), image(3)
nniqat.ConvBnReLU1d(2, 3, 2, qconfig=qconfig), image(1)
nniqat.ConvBnReLU2d(2, 3, 2, stride=2, groups=1, eps=.1, qconfig=qconfig), image(2)
nniqat.ConvBnReLU3d(2, 3, 2, qconfig=qconfig), image(3)
nniqat.ConvBn2d(2, 3, 2, freeze_bn=True, qconfig=qconfig), image(2)
""")
def trained(torch, line):
    layer, *inputs = eval(line, _names(torch))
    yield repr(layer)
    result = layer(*inputs)
    _uneven(torch, result).backward()
    yield result, {name: p.grad for name, p in layer.named_parameters()}
    yield dict(layer.state_dict())
    layer.eval()
    yield layer(*inputs), repr(layer.to_float())
    yield dict(layer.to_float().state_dict())


@case(warnings=False).over(bias=[False, True], training=[False, True])
def stable(torch, bias, training):
    """The way that needs no division by the weight of the normalization."""
    found = _names(torch)
    layer = found["nniqat"].ConvBn2d(2, 3, 2, bias=bias, qconfig=found["qconfig"])
    layer._enable_slow_path_for_better_numerical_stability = True
    layer.train(training)
    result = layer(found["image"](2))
    _uneven(torch, result).backward()
    yield result, {name: p.grad for name, p in layer.named_parameters()}
    yield dict(layer.bn.state_dict())


@case(warnings=False).lines("""
nnqat.Linear.from_float(configured(nn.Linear(3, 4)))
nnqat.Conv2d.from_float(configured(nn.Conv2d(2, 3, 2, bias=False)))
nnqat.Embedding.from_float(configured(nn.Embedding(3, 2), rows))
nnqat.EmbeddingBag.from_float(configured(nn.EmbeddingBag(3, 2), rows))
nniqat.LinearBn1d.from_float(configured(nni.LinearBn1d(nn.Linear(3, 4), nn.BatchNorm1d(4))))
nniqat.ConvBn1d.from_float(configured(nni.ConvBn1d(*conv(1)[:2])))
nniqat.ConvBnReLU2d.from_float(configured(nni.ConvBnReLU2d(*conv(2))))
nniqat.ConvReLU3d.from_float(configured(nni.ConvReLU3d(configured(conv(3)[0]), nn.ReLU())))
""")  # noqa: E501
def out_of_layers(torch, line):
    layer = eval(line, _names(torch))
    return repr(layer), dict(layer.state_dict())


@case(warnings=False).lines("""
nnqat.Linear(3, 4)
nnqat.Embedding(3, 4, qconfig=qconfig)
nnqat.dynamic.Linear(3, 4, qconfig=qconfig)
nniqat.ConvBn2d(2, 3, 2)
nnqat.Linear.from_float(nn.ReLU())
nnqat.Linear.from_float(nn.Linear(2, 3))
nnqat.Linear.from_float(configured(nn.Linear(2, 3), None))
nnqat.Conv2d.from_float(nn.ReLU())
nniqat.ConvBn2d.from_float(nn.ReLU())
nniqat.LinearBn1d.from_float(nn.ReLU())
""")
def refusals(torch, line):
    found = _names(torch)
    return attempt(lambda: eval(line, found))


@case(warnings=False).lines("""
nni.ConvReLU2d(*conv(2)[::2]), image(2)
nni.ConvBn1d(*conv(1)[:2]), image(1)
nni.ConvBnReLU3d(*conv(3)), image(3)
nni.BNReLU2d(nn.BatchNorm2d(2), nn.ReLU()), image(2)
nni.LinearReLU(nn.Linear(3, 4), nn.ReLU()), torch.randn(2, 3)
nni.LinearTanh(nn.Linear(3, 4), nn.Tanh()), torch.randn(2, 3)
nni.LinearLeakyReLU(nn.Linear(3, 4), nn.LeakyReLU(.2)), torch.randn(2, 3)
nni.ConvAdd2d(nn.Conv2d(2, 2, 1), torch.add), image(2), image(2)
nni.ConvAddReLU2d(nn.Conv2d(2, 2, 1), torch.add, nn.ReLU()), image(2), image(2)
""")
def fused(torch, line):
    layer, *inputs = eval(line, _names(torch))
    return repr(layer), layer(*inputs), isinstance(layer, torch.nn.Sequential)


@case(warnings=False)
def freezing(torch):
    found = _names(torch)
    nniqat = found["nniqat"]
    layer = nniqat.ConvBn2d(2, 3, 2, qconfig=found["qconfig"])
    net = torch.nn.Sequential(layer)
    net.apply(nniqat.freeze_bn_stats)
    yield layer.freeze_bn, layer.bn.training, layer.train().bn.training
    net.apply(nniqat.update_bn_stats)
    yield layer.freeze_bn, layer.bn.training, layer.eval().bn.training


@case(warnings=False)
def first_version_of_states(torch):
    found = _names(torch)
    layer = found["nniqat"].ConvBn2d(2, 3, 2, qconfig=found["qconfig"])
    state, old = layer.state_dict(), {}
    names = {"bn.weight": "gamma", "bn.bias": "beta"}
    for name, value in state.items():
        old[names.get(name, name.removeprefix("bn."))] = value + 1
    for name, value in state.items():
        if name.startswith("weight_fake_quant") or name == "weight":
            old[name] = value
    layer.load_state_dict(old)
    yield dict(layer.state_dict())
    del old["gamma"]
    yield attempt(layer.load_state_dict, old)


@case(warnings=False).over("static", "trained")
def convolutional_network(torch, way):
    """A network fused, observed or trained, and converted."""
    found = _names(torch)
    tq, nn, nnq = found["tq"], torch.nn, found["nnq"]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
            self.conv, self.bn = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.relu, self.deep = nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1, groups=2)
            self.norm, self.plus = nn.BatchNorm2d(4), nnq.FloatFunctional()
            self.pool, self.fc = nn.MaxPool2d(2), nn.Linear(16, 3)

        def forward(self, x):
            x = self.relu(self.bn(self.conv(self.quant(x))))
            x = self.pool(self.norm(self.plus.add(x, self.deep(x))))
            return self.dequant(self.fc(x.reshape(x.shape[0], -1)))

    net, data = Net(), [torch.randn(3, 2, 4, 4) for _ in range(3)]
    parts = [["conv", "bn", "relu"]]
    if way == "static":
        net = tq.fuse_modules(net.eval(), parts)
        net.qconfig = tq.get_default_qconfig("x86")
        net = tq.prepare(net)
        for batch in data:
            net(batch)
    else:
        net.qconfig = found["qconfig"]
        net = tq.prepare_qat(tq.fuse_modules_qat(net.train(), parts))
        step = torch.optim.SGD(net.parameters(), lr=0.01)
        for batch in data:
            step.zero_grad()
            loss = net(batch).square().mean()
            loss.backward()
            step.step()
            yield loss.item()
        net.eval()
    made = tq.convert(net)
    yield [name for name, _ in made.named_modules()], made(data[0])
    yield type(made.conv).__name__, type(made.fc).__name__, plain(made.fc.weight())
