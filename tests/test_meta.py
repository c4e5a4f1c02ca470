"""Tensors on the device "meta": shapes and dtypes without data."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import torchshim
from tests.oracle import attempt, case, evaluate
from torchshim._core.record import local


def facts(value):
    """What is known of tensors without reading them."""
    if isinstance(value, (tuple, list)):
        return [facts(v) for v in value]
    if hasattr(value, "is_meta"):
        found = tuple(value.shape), str(value.dtype), str(value.device)
        return *found, value.requires_grad, value.stride()
    return value


def names(torch):
    x = torch.empty(2, 3, device="meta")
    y = torch.ones(3, device="meta", requires_grad=True)
    index = torch.zeros(2, dtype=torch.long, device="meta")
    return {
        **{"torch": torch, "nn": torch.nn, "F": torch.nn.functional},
        **{"x": x, "y": y, "i": index, "c": torch.ones(2, 3), "s": torch.tensor(2.0)},
        **{"M": "meta", "copy": copy, "pickle": pickle},
    }


@case.lines("""
    x.is_meta, x.device, x.is_cpu, x.is_cuda, x.get_device(), x.data_ptr()
    x + 1, x + x, x * y, x + s, s + x
    x.sum(), x.mean(1), x.max(1), x.argmax(), x.sort(1), x.topk(2)
    x @ x.T, F.linear(x, x), torch.einsum("ij,kj->ik", x, x)
    F.conv2d(torch.empty(1, 3, 8, 8, device=M), torch.empty(4, 3, 3, 3, device=M))
    F.relu(x), F.softmax(x, 1), F.layer_norm(x, (3,)), F.dropout(x)
    F.cross_entropy(x, i), F.embedding(i, x)
    torch.cat([x, x]), torch.stack([x, x]), torch.where(x > 0, x, 0.0)
    x[0], x[:, 1:], x[..., None], x[torch.tensor([0])], x[i]
    x.view(6), x.t(), x.reshape(3, 2), x.expand(4, 2, 3), list(x)
    x.clone(), x.detach(), x.contiguous(), x.double(), x.long()
    x.add_(1), x.fill_(1), x.zero_(), x.normal_(), x.uniform_(), x.copy_(c)
    c.to(M), c.to(device=M, dtype=torch.float64), s.to(M), x.to(M) is x
    torch.zeros(2, device=M), torch.full((2,), 1.0, device=M), torch.eye(3, device=M)
    torch.arange(5, device=M), torch.linspace(0, 1, 5, device=M)
    torch.rand(2, device=M), torch.randn(2, device=M), torch.randperm(5, device=M)
    torch.randint(5, (2,), device=M), torch.empty_strided((2, 3), (1, 2), device=M)
    torch.empty_like(x), torch.zeros_like(c, device=M), torch.rand_like(x)
    torch.tensor([1, 2], device=M), torch.as_tensor([1.0], device=M)
    torch.tril_indices(3, 3, device=M), torch.hann_window(4, device=M)
    x.new_zeros(2), x.new_full((2,), 1), x.new_tensor([1])
    torch.linalg.det(torch.empty(3, 3, device=M)), torch.fft.fft(x)
    x.scatter(1, i[:, None], 1.0), x.gather(1, i[:, None]), x.index_add(0, i, x)
    x.untyped_storage().nbytes(), x.untyped_storage().device, x.nbytes, len(x)
    copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    torch.empty(2, device="meta:1").device
    torch.func.grad(lambda a: (a * 2).sum())(x), torch.vmap(lambda a: a * 2)(x)
    torch.autograd.grad((x * y).sum(), y), (x * y).requires_grad
    nn.Parameter(x), nn.Linear(3, 4, device=M).weight, nn.Linear(3, 4, device=M)(x)
    nn.Linear(3, 4).to(M).weight, nn.Linear(3, 4).to_empty(device=M).weight
    nn.Linear(3, 4, device=M).to_empty(device="cpu").weight
    nn.utils.skip_init(nn.Linear, 3, 4).weight
    nn.utils.skip_init(nn.Linear, 3, 4, device=M).weight
    nn.LSTM(3, 4, device=M)(torch.empty(5, 2, 3, device=M))
    nn.LazyLinear(4, device=M)(x)
    nn.init.xavier_uniform_(x), nn.init.trunc_normal_(x)
    x.type(), x.storage_offset(), x.is_contiguous(), x.view(6)._base is x
""")
def inferred(torch, line):
    return facts(eval(line, names(torch)))


@case.lines("""
    x
    y
    y * 2
    torch.empty((), device=M)
    torch.empty(0, 3, device=M, dtype=torch.int64)
    nn.Parameter(x)
    nn.Linear(3, 4, device=M)
""")
def printed(torch, line):
    value = eval(line, names(torch))
    return repr(value), str(value), f"{value}"


@case.lines("""
    x + c
    c + x
    torch.cat([x, c])
    F.mse_loss(x, c)
    x > c
    x.item()
    x.sum().item()
    bool(x.sum())
    float(x.sum())
    int(x.sum())
    x.tolist()
    x.numpy()
    x.cpu()
    x.to("cpu")
    c.copy_(x)
    c.__setitem__(0, x[0])
    x.set_(c)
    setattr(x, "data", c)
    nn.Linear(3, 4)(x)
    nn.Linear(3, 4, device=M)(c)
    nn.Linear(3, 4, device=M).to("cpu")
    nn.utils.skip_init(nn.ReLU)
    x.view(5)
""")
def refused(torch, line):
    return eval(line, names(torch))


@case.lines("""
    x[x > 0]
    x.nonzero()
    x.unique()
    torch.equal(x, x)
    torch.allclose(x, x)
    torch.bincount(i)
""")
def refused_as_values_are_needed(torch, line):
    # PyTorch names the operator that has no implementation.
    return isinstance(
        attempt(eval, line, names(torch)), (NotImplementedError, RuntimeError)
    )


@case
def models(torch):
    """A model that is made without data, then gets its parameters."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 4), nn.BatchNorm1d(4)
            self.register_buffer("k", torch.arange(3))

        def forward(self, x):
            return self.b(self.a(x)).relu().sum()

    with torch.device("meta"):
        net = Net()
    yield facts([*net.parameters(), *net.buffers()])
    loss = net(torch.empty(2, 3, device="meta"))
    loss.backward()
    yield facts(loss), facts([p.grad for p in net.parameters()])
    full = Net()
    net.load_state_dict(full.state_dict(), assign=True)
    kept = full.state_dict()
    yield all(value is kept[name] for name, value in net.state_dict().items())
    yield facts(list(net.parameters()))
    with torch.device("meta"):
        net = Net()
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    yield facts(list(torch.load(file).values()))
    file = io.BytesIO()
    torch.save({"w": torch.ones(2, 3)}, file)
    file.seek(0)
    yield facts(torch.load(file, map_location="meta")["w"])
    net.to_empty(device="cpu")
    yield facts(list(net.parameters()))


@case
def training(torch):
    """Gradients and optimizers go on without data."""
    x = torch.empty(4, 3, device="meta")
    model = torch.nn.Linear(3, 2, device="meta")
    adam = torch.optim.Adam(model.parameters())
    for _ in range(2):
        adam.zero_grad()
        model(x).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    yield facts(list(model.parameters()))
    yield facts(adam.state[model.weight]["exp_avg"])


@case
def moved_with_a_history(torch):
    x = torch.ones(2, requires_grad=True)
    y = x.to("meta")
    yield facts(y), y.is_leaf, y.grad_fn.name(), attempt(y.sum().backward), x.grad
    yield y.grad_fn, type(y.grad_fn)
    weight = torch.nn.Parameter((x * 2).to("meta", torch.float64))
    yield facts(weight), weight.is_leaf, type(weight).__name__
    with torch.no_grad():
        yield facts(x.to("meta"))
    weight = torch.nn.Parameter(torch.ones(2, device="meta"))
    yield attempt((y * weight).sum().backward), attempt(weight.to, "cpu")
    net = torch.nn.Linear(2, 1)
    net.register_parameter("bias", torch.nn.Parameter(net.bias.to("meta")))
    yield facts(list(net.parameters()))


@case
def random_numbers_are_not_used(torch):
    torch.manual_seed(1)
    torch.rand(5, device="meta")
    torch.empty(5, device="meta").normal_()
    torch.nn.functional.dropout(torch.empty(5, device="meta"))
    torch.nn.Linear(3, 4, device="meta")
    return torch.rand(2)


def test_nothing_is_computed():
    """A tensor that no memory could hold: neither made, nor computed."""
    torch = torchshim
    x = torch.randn(1 << 20, 1 << 20, device="meta", requires_grad=True)
    with pytest.raises(RuntimeError, match=r"item\(\) cannot be called on meta"):
        (x @ x).relu().sum().item()
    (x @ x.t()).sum().backward()
    kept = torch.ones(2) + 1  # on the CPU, in the same recording
    assert kept.tolist() == [2.0, 2.0]
    assert x.grad.shape == x.shape and x.grad.is_meta


def test_batches_are_counted_where_the_module_was_made_earlier():
    with torchshim.device("meta"):
        layer = torchshim.nn.BatchNorm1d(3)
    local.rec.flush()
    for _ in range(2):
        layer(torchshim.empty(2, 3, device="meta"))
    assert layer.num_batches_tracked.is_meta
    assert layer.num_batches_tracked._version == 3  # it was set to zero first


@case
def random_numbers_of_parameters(torch):
    x = torch.ones(3, 2, device="meta")
    yield torch.bernoulli(x), x.t().bernoulli().stride(), torch.poisson(x)
    yield torch.bernoulli(x.clone().requires_grad_()).grad_fn.name()
    yield torch.multinomial(x, 1), torch.multinomial(x, 4, True)
    yield torch.normal(x, x), torch.normal(0.0, x), torch._standard_gamma(x)
    yield torch.nn.functional.rrelu(x, training=True)
    yield torch.distributions.Categorical(x, validate_args=False).sample((2,))
    yield torch.distributions.Normal(x, 1.0, validate_args=False).rsample()


@case.lines("""
    torch.exp(a, out=b)
    torch.add(a, 1, out=b)
    torch.cumsum(a, 0, out=b)
    torch.mm(a, a, out=b)
    torch.cat([a, a], out=torch.cat([b, b]))
    torch.where(a > 0, a, a, out=b)
    torch.fft.fft(a, out=b + 0j)
    torch.dot(a[0], a[0], out=b[0, 0])
    torch.argmax(a, out=b[0, 0].long())
    torch.linalg.det(a, out=b[0, 0])
    torch.linalg.inv(a, out=b)
    torch.gather(a, 0, (a * 0).long(), out=b)
    torch.aminmax(a, out=(b[0, 0], b[0, 1]))
    torch.max(a, 0, out=(b[0], b[1].long()))
    torch.sort(a, out=(b, b.long()))
    torch.topk(a, 1, out=(b[:, :1], b[:, :1].long()))
""")
def out_on_another_device(torch, line):
    here, there = torch.eye(2), torch.empty(2, 2, device="meta")
    yield attempt(evaluate, torch, line, a=here, b=there)
    yield attempt(evaluate, torch, line, a=there, b=here)
    yield here
