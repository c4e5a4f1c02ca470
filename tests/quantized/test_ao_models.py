"""Models observed, converted to integers, and trained with rounded numbers."""

import copy
import io
import warnings

from tests.oracle import attempt, case

# Codes of results are compared as they are; a few may be one apart, as products are
# summed in another order.


def _quiet(function, *args, **kwargs):
    with warnings.catch_warnings(action="ignore"):
        return function(*args, **kwargs)


def _text(value):
    """The repr of a model, which names classes of another package here."""
    return repr(value).replace("torchshim.", "torch.")


def _network(torch):
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant = torch.ao.quantization.QuantStub()
            self.conv = nn.Conv2d(1, 4, 3)
            self.bn = nn.BatchNorm2d(4)
            self.relu = nn.ReLU()
            self.last = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
            self.dequant = torch.ao.quantization.DeQuantStub()

        def forward(self, x):
            x = self.relu(self.bn(self.conv(self.quant(x))))
            return self.dequant(self.last(x.flatten(1)))

    torch.manual_seed(1)
    network = Network()
    network.bn.running_mean.normal_(generator=None)
    network.bn.running_var.uniform_(0.5, 1.5)
    return network


_FUSED = [["conv", "bn", "relu"], ["last.0", "last.1"]]


@case.over("x86", "qnnpack")
def observed(torch, backend):
    A = torch.ao.quantization
    model = A.fuse_modules(_network(torch).eval(), _FUSED)
    model.qconfig = A.get_default_qconfig(backend)
    x = torch.randn(8, 1, 4, 4)
    ready = A.prepare(model)
    yield _text(ready)
    wanted = ready(x)
    yield wanted
    made = A.convert(ready)
    yield _text(made)
    with torch.no_grad():
        yield (made(x) - wanted).abs().max() < 0.1, made(x).shape
    yield {k: v for k, v in made.state_dict().items() if k[-5:] in ("scale", "point")}
    weight = made.last[0].weight()
    yield weight.int_repr(), weight.qscheme(), made.last[0].scale
    yield type(made.conv).__module__.split(".")[1:], type(made.conv).__name__
    yield [hasattr(m, "qconfig") for m in made.modules()]
    file = io.BytesIO()
    torch.save(made.state_dict(), file)
    file.seek(0)
    other = _quiet(A.convert, _quiet(A.prepare, model))
    other.load_state_dict(_quiet(torch.load, file, weights_only=False))
    yield torch.equal(other(x), made(x))
    yield torch.equal(copy.deepcopy(made)(x), made(x))


@case.over("x86", "qnnpack")
def trained(torch, backend):
    A = torch.ao.quantization
    torch.backends.quantized.engine = backend
    yield from _trained(torch, A, backend)
    torch.backends.quantized.engine = "x86"


def _trained(torch, A, backend):
    for version in (0, 1):
        model = A.fuse_modules_qat(_network(torch).train(), _FUSED)
        model.qconfig = A.get_default_qat_qconfig(backend, version)
        ready = _quiet(A.prepare_qat, model)
        yield _text(ready)
        optimizer = torch.optim.SGD(ready.parameters(), lr=0.1)
        x, y = torch.randn(8, 1, 4, 4), torch.arange(8) % 3
        losses = []
        for _ in range(3):
            loss = torch.nn.functional.cross_entropy(ready(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        yield losses[-1] < losses[0]
        ready.apply(A.disable_observer)
        wanted = ready.eval()(x)
        made = _quiet(A.convert, ready)
        yield _text(type(made.conv)), made(x).shape
        yield (made(x) - wanted).abs().max() < 0.1


@case.over("qint8", "float16")
def dynamic(torch, dtype):
    A = torch.ao.quantization
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    made = A.quantize_dynamic(model, dtype=getattr(torch, dtype))
    yield _text(made), _text(model)
    x = torch.randn(5, 4)
    yield made(x).detach()
    yield _text(_quiet(A.quantize_dynamic, model, {torch.nn.ReLU}))
    setting = {"0": A.per_channel_dynamic_qconfig}
    made = _quiet(A.quantize_dynamic, model, setting, inplace=True)
    yield made is model, _text(made), made(x)
    layer = torch.nn.LSTM(3, 4)
    made = _quiet(
        A.quantize_dynamic,
        torch.nn.Sequential(layer, torch.nn.GRUCell(3, 4)),
        dtype=getattr(torch, dtype),
    )
    y = torch.randn(2, 1, 3)
    yield _text(made), (made[0](y)[0] - layer(y)[0]).abs().max() < 0.05


@case
def embeddings(torch):
    A = torch.ao.quantization
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Embedding(6, 4))
    made = A.quantize_dynamic(model, dtype=torch.quint8)
    yield _text(made), made(torch.tensor([1, 5]))
    model.qconfig = A.float_qparams_weight_only_qconfig
    made = _quiet(A.convert, _quiet(A.prepare, model))
    yield _text(made), made(torch.tensor([1, 5]))


@case
def wrapped(torch):
    """`quantize`, wrapped layers, functions, hooks, and what is left out."""
    A = torch.ao.quantization
    nn = torch.nn
    torch.manual_seed(4)
    x = torch.randn(6, 4)
    model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Dropout(), nn.Linear(4, 2))
    model[0].qconfig = A.default_qconfig
    model[3].qconfig = None
    made = A.quantize(A.add_quant_dequant(model), lambda m, x: m(x), [x])
    yield _text(made), made(x)
    yield _text(model)
    model = A.QuantWrapper(nn.Sequential(nn.Linear(4, 4), nn.ReLU6(), nn.ELU()))
    model.qconfig = A.default_per_channel_qconfig
    seen = []
    model.module[0].register_forward_hook(lambda m, i, o: seen.append("after"))
    model.module[0].register_forward_pre_hook(lambda m, i: seen.append("before"))
    made = _quiet(A.quantize, model, A.default_eval_fn, [[(x, 0), (x * 2, 1)]])
    yield _text(made), made(x), seen
    reference = _quiet(A.prepare, model)
    reference(x)
    yield _text(_quiet(A.convert, reference, is_reference=True))
    other = _quiet(A.prepare, model)
    A.load_observer_state_dict(other, A.get_observer_state_dict(reference))
    yield dict(A.get_observer_state_dict(other))


@case
def refused(torch):
    A = torch.ao.quantization
    nn = torch.nn
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    yield A.prepare(model) is model
    yield _text(attempt(A.prepare_qat, model.eval()))
    yield _text(attempt(A.quantize_dynamic, model, dtype=torch.qint32))
    yield _text(attempt(A.quantize_dynamic, model, {nn.Linear}, dtype=torch.qint32))
    model = nn.Sequential(nn.ConvTranspose2d(1, 1, 1))
    model.qconfig = A.default_per_channel_qconfig
    yield _text(attempt(_quiet, A.prepare, model))
    yield _text(
        attempt(A.fuse_modules, nn.Sequential(nn.ReLU(), nn.ReLU()), ["0", "1"])
    )
    yield _text(attempt(A.fuse_modules, model, ["0", "1"]))
    conv, bn = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)
    yield _text(attempt(A.fuse_conv_bn, True, conv, bn.eval()))
    yield _text(attempt(A.fuse_conv_bn, True, conv, nn.BatchNorm2d(3)))
    yield _text(attempt(A.fuse_conv_bn, True, conv, nn.BatchNorm2d(2, affine=False)))
    plain = nn.BatchNorm2d(2, track_running_stats=False)
    yield _text(attempt(A.fuse_conv_bn_relu, True, conv, plain, nn.ReLU()))
    yield _text(attempt(A.fuse_conv_bn_relu, False, conv, bn, nn.ReLU()))
    yield _text(attempt(A.fuse_linear_bn, True, nn.Linear(1, 2), nn.BatchNorm1d(3)))
    turned = nn.ConvTranspose1d(1, 2, 1)
    yield _text(attempt(A.fuse_convtranspose_bn, True, turned, nn.BatchNorm1d(2)))
    yield _text(attempt(A.get_static_quant_module_class, nn.ReLU))
    yield _text(attempt(A.get_dynamic_quant_module_class, nn.Conv2d))
    yield _text(attempt(A.get_quantized_operator, torch.nn.functional.relu))


@case
def mappings(torch):
    A = torch.ao.quantization

    def shown(found):
        return sorted(
            _text(each)
            for each in (found.items() if isinstance(found, dict) else found)
        )

    for name in (
        *("static_quant_module_mappings", "static_quant_reference_module_mappings"),
        *("qat_module_mappings", "dynamic_quant_module_mappings"),
        *("qconfig_propagation_list", "compare_output_module_list"),
    ):
        yield name, shown(getattr(A, f"get_default_{name}")())
    yield shown(A.get_embedding_qat_module_mappings())
    yield shown(A.get_embedding_static_quant_module_mappings())
    yield shown(A.no_observer_set())
    fusers = A.fuser_method_mappings._DEFAULT_OP_LIST_TO_FUSER_METHOD
    yield [[each.__name__ for each in kinds] for kinds in fusers]
    nn = torch.nn
    pattern = (nn.ReLU, (nn.BatchNorm2d, nn.Conv2d))
    known = {(A.utils.MatchAllNode, (nn.BatchNorm2d, nn.Conv2d)): "found"}
    yield A.get_fuser_method_new(pattern, known)
    yield _text(attempt(A.get_fuser_method_new, pattern, {}))


@case
def fused(torch):
    A = torch.ao.quantization
    nn = torch.nn
    torch.manual_seed(5)
    x = torch.randn(4, 2, 5, 5)
    layers = [nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()]
    layers += [nn.ConvTranspose2d(3, 2, 2), nn.BatchNorm2d(2), nn.BatchNorm2d(2)]
    model = nn.Sequential(*layers, nn.ReLU())
    model(x)
    model.eval()
    seen = []
    model[0].register_forward_pre_hook(lambda m, i: seen.append("before"))
    model[2].register_forward_hook(lambda m, i, o: seen.append("after"))
    wanted = model(x)
    made = A.fuse_modules(model, [["0", "1", "2"], ["3", "4"], ["5", "6"]])
    yield _text(made), torch.allclose(made(x), wanted, atol=1e-5), seen
    trained = A.fuse_modules_qat(model.train(), ["0", "1", "2"], inplace=True)
    yield trained is model, _text(trained)
    further = {"additional_fuser_method_mapping": {(nn.ReLU,): lambda q, r: nn.Tanh()}}
    made = A.fuse_modules(
        nn.Sequential(nn.ReLU()), ["0"], fuse_custom_config_dict=further
    )
    yield _text(made)
    made = A.fuse_modules(model, ["6"], fuser_func=lambda found, *_: [nn.Identity()])
    yield _text(made[6])


@case(warnings=False)
def scripted(torch):
    """Scripted models of integers go through files."""
    A = torch.ao.quantization
    model = A.QuantWrapper(torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1)))
    model.qconfig = A.default_qconfig
    ready, x = _quiet(A.prepare, model.eval()), torch.ones(1, 1, 2, 2)
    ready(x)
    made = _quiet(A.convert, ready)
    for each in (torch.jit.script(made), torch.jit.trace(made, x)):
        file = io.BytesIO()
        torch.jit.save(each, file)
        file.seek(0)
        yield torch.equal(torch.jit.load(file)(x), made(x))
