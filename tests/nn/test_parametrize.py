"""`torch.nn.utils.parametrize`, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle

from tests.oracle import attempt, case


def kinds(torch):
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, x):
            return x.triu()

    class Doubled(torch.nn.Module):
        def forward(self, x):
            return 2 * x

    class Product(torch.nn.Module):
        def forward(self, a, b):
            return a * b

        def right_inverse(self, x):
            return x / 2, torch.full_like(x, 2.0)

    return Symmetric, Doubled, Product


def layer(torch):
    made = torch.nn.Linear(2, 2)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        made.bias.fill_(0.5)
    return made


@case
def registered_and_removed(torch):
    parametrize = torch.nn.utils.parametrize
    symmetric, doubled, product = kinds(torch)
    m = layer(torch)
    weight = m.weight
    yield parametrize.register_parametrization(m, "weight", symmetric()) is m
    yield m.weight, list(m.state_dict()), [n for n, _ in m.named_parameters()]
    yield type(m).__name__, isinstance(m, torch.nn.Linear), repr(m)
    yield parametrize.is_parametrized(m), parametrize.is_parametrized(m, "bias")
    yield m.parametrizations.weight.original is weight
    m.weight = torch.tensor([[5.0, 6.0], [6.0, 7.0]])
    yield m.parametrizations.weight.original, m.weight
    parametrize.register_parametrization(m, "weight", doubled())
    yield m.weight, attempt(setattr, m, "weight", torch.ones(2, 2))
    parametrize.register_parametrization(m, "bias", product())
    yield m.bias, [n for n, _ in m.named_parameters()], m(torch.ones(1, 2))
    m(torch.ones(1, 2)).sum().backward()
    yield [p.grad for p in m.parameters()]
    m.bias = torch.tensor([4.0, 8.0])
    yield m.bias, m.parametrizations.bias.original0, len(m.parametrizations.bias)
    yield parametrize.type_before_parametrizations(m) is torch.nn.Linear
    yield attempt(parametrize.remove_parametrizations, m, "bias", False)
    parametrize.remove_parametrizations(m, "bias")
    yield m.bias, type(m.bias).__name__, type(m).__name__
    parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    yield m.weight, m.weight is weight, type(m).__name__, hasattr(m, "parametrizations")
    yield attempt(parametrize.remove_parametrizations, m, "weight")


@case
def kept_as_it_is(torch):
    parametrize = torch.nn.utils.parametrize
    m = layer(torch)
    parametrize.register_parametrization(m, "weight", kinds(torch)[0]())
    parametrize.remove_parametrizations(m, "weight")
    yield m.weight, m.weight.is_leaf, list(m.state_dict())
    m.register_buffer("scale", torch.tensor([1.0, 2.0]))
    parametrize.register_parametrization(m, "scale", kinds(torch)[1]())
    yield m.scale, list(m.state_dict()), [n for n, _ in m.named_buffers()]
    parametrize.remove_parametrizations(m, "scale")
    yield m.scale, "scale" in m._buffers


@case
def cached(torch):
    parametrize = torch.nn.utils.parametrize
    m = layer(torch)
    parametrize.register_parametrization(m, "weight", kinds(torch)[1]())
    yield m.weight is m.weight
    with parametrize.cached():
        first = m.weight
        with parametrize.cached():
            yield m.weight is first
        yield m.weight is first
    yield m.weight is first


@case
def copies(torch):
    parametrize = torch.nn.utils.parametrize
    symmetric, doubled, product = kinds(torch)
    m = layer(torch)
    parametrize.register_parametrization(m, "weight", symmetric())
    twin = copy.deepcopy(m)
    twin.weight = torch.eye(2)
    yield m.weight, twin.weight, type(twin) is type(m)
    yield attempt(pickle.dumps, m)
    twin.load_state_dict(m.state_dict())
    yield twin.weight, m.eval().parametrizations.weight[0].training
    other = layer(torch)
    parametrize.register_parametrization(m, "bias", product())
    parametrize.transfer_parametrizations_and_params(m, other)
    yield other.weight, other.bias, other.parametrizations.bias.original0
    plain = torch.nn.Linear(2, 2, bias=False)
    yield parametrize.transfer_parametrizations_and_params(other, plain, "weight")
    yield parametrize.transfer_parametrizations_and_params(layer(torch), plain) is plain
    del doubled


@case
def errors(torch):
    parametrize = torch.nn.utils.parametrize
    register = parametrize.register_parametrization
    nn = torch.nn

    def made(forward, inverse=None):
        class Made(nn.Module):
            pass

        Made.forward = lambda self, *x: forward(*x)
        if inverse is not None:
            Made.right_inverse = lambda self, x: inverse(x)
        return Made()

    def refused(x):
        raise NotImplementedError

    same = made(lambda x: x)
    yield attempt(register, layer(torch), "nothing", same)
    wrong = (
        made(lambda x: 3),
        made(lambda x: x.double()),
        made(lambda x: x[0]),
        made(lambda x: x, lambda x: 3),
        made(lambda x: x, lambda x: x.double()),
        made(lambda x, y: x, lambda x: [x, 3]),
        made(lambda x: x, refused),
    )
    for each in wrong:
        yield attempt(register, layer(torch), "bias", each) is None
        m = layer(torch)
        register(m, "bias", made(lambda x: 2 * x))
        yield attempt(register, m, "bias", each) is None
    for each in wrong[:6]:
        yield attempt(register, layer(torch), "weight", each)
        m = register(layer(torch), "bias", made(lambda x: 2 * x))
        outcome = attempt(register, m, "bias", each)
        yield outcome if isinstance(outcome, Exception) else "registered"
    m = layer(torch)
    yield register(m, "weight", wrong[2], unsafe=True).weight
    two = register(layer(torch), "weight", kinds(torch)[2]())
    several = two.parametrizations.weight
    for value in (3, [several.original0], [several.original0, 3], ["a", "b"]):
        type(several[0]).right_inverse = lambda self, x, value=value: value
        yield attempt(setattr, two, "weight", torch.ones(2, 2))
    one = register(layer(torch), "weight", kinds(torch)[0]())
    for value in (3, torch.ones(2, 2, dtype=torch.float64)):
        type(one.parametrizations.weight[0]).right_inverse = lambda s, x, v=value: v
        yield attempt(setattr, one, "weight", torch.ones(2, 2))
    yield attempt(parametrize.ParametrizationList, [], m.bias)


@case
def weight_norms(torch):
    norm = torch.nn.utils.parametrizations.weight_norm
    for dim in (0, 1, None):
        m = norm(layer(torch), dim=dim)
        yield m.weight, list(m.state_dict().items())
        m(torch.ones(1, 2)).sum().backward()
        yield [p.grad for p in m.parameters()]
    conv = norm(torch.nn.Conv2d(2, 3, 2), dim=1)
    yield conv.parametrizations.weight.original0.shape, repr(conv)
    old = {
        "weight_g": torch.ones(2, 1),
        "weight_v": torch.eye(2),
        "bias": torch.ones(2),
    }
    m = norm(layer(torch))
    yield m.load_state_dict(old), m.weight
    torch.nn.utils.parametrize.remove_parametrizations(m, "weight")
    yield m.weight, type(m).__name__


@case
def spectral_norms(torch):
    norm = torch.nn.utils.parametrizations.spectral_norm
    m = norm(torch.nn.Linear(3, 4))
    x = torch.randn(2, 3)
    for _ in range(3):
        m(x).sum().backward()
        yield m.weight.detach(), m.parametrizations.weight.original.grad
    m.eval()
    yield m.weight.detach(), m.state_dict()
    m.weight = torch.eye(4)[:, :3]
    yield m.parametrizations.weight.original
    conv = norm(torch.nn.ConvTranspose1d(2, 3, 2), n_power_iterations=2)
    yield conv.weight.detach(), conv.parametrizations.weight[0]._u
    yield norm(torch.nn.Linear(3, 4), "bias").bias
    yield attempt(norm, torch.nn.Linear(1, 1), n_power_iterations=0)
    yield attempt(norm, torch.nn.Linear(1, 1), dim=2)
    yield attempt(norm, torch.nn.Linear(1, 1), "x")


@case.over("matrix_exp", "cayley", "householder")
def orthogonal_maps(torch, name):
    make = torch.nn.utils.parametrizations.orthogonal
    for shape in ((3, 3), (2, 3), (3, 2)):
        m = make(torch.nn.Linear(*shape, dtype=torch.float64), orthogonal_map=name)
        w = m.weight
        small = w if w.shape[0] <= w.shape[1] else w.T
        identity = torch.eye(small.shape[0], dtype=w.dtype)
        yield torch.allclose(small @ small.T, identity)
        (w * torch.arange(6.0)[: w.shape[1]]).sum().backward()
        yield m.parametrizations.weight.original.shape
    m = torch.nn.Linear(3, 3, dtype=torch.float64)
    m = make(m, orthogonal_map=name, use_trivialization=False)
    weight = m.weight
    yield (
        weight,
        torch.autograd.grad((weight**3).sum(), m.parameters(), allow_unused=True),
    )
    square = torch.tensor([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64)
    outcome = attempt(setattr, m, "weight", square)
    yield outcome, m.weight if outcome is None else None


@case
def orthogonal_errors(torch):
    make = torch.nn.utils.parametrizations.orthogonal
    yield attempt(make, torch.nn.Linear(1, 1), "x")
    yield attempt(make, torch.nn.Linear(1, 1), "bias")
    yield attempt(make, torch.nn.Linear(1, 1), orthogonal_map="x")
    complex_layer = torch.nn.Linear(2, 2, dtype=torch.complex64)
    yield attempt(make, complex_layer, orthogonal_map="householder")
    m = make(torch.nn.Linear(2, 2))
    yield attempt(setattr, m, "weight", torch.ones(3, 3))
