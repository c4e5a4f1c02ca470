"""Nested tensors of layout strided, PyTorch's default."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

from tests.nested import plain, shown
from tests.oracle import attempt, case

# PyTorch warns once of nested tensors of this layout.
quiet = case(warnings=False)


def parts(torch, requires_grad=False):
    """Two matrices with the same number of columns."""
    made = torch.arange(6.0).view(2, 3) - 2, torch.arange(9.0).view(3, 3) / 2
    return [part.requires_grad_(requires_grad) for part in made]


def strided(torch, **options):
    return torch.nested.nested_tensor(parts(torch), **options)


def uneven(torch):
    """Two matrices that differ in rows and columns."""
    made = [torch.arange(6.0).view(2, 3), torch.arange(12.0).view(3, 4)]
    return torch.nested.nested_tensor(made)


@case
def prototype_is_told(torch):
    return str(strided(torch))


@quiet.lines(r"""
print(n([torch.ones(2, 3), torch.zeros(3, 4)]))
print(n([torch.ones(2, 1, 3), torch.zeros(1, 2, 2)]))
print(n([[1, 2], [3]]), n([1, 2]), n([]), n([torch.tensor(1.)]))
print(n([torch.ones(2), torch.ones(3)], dtype=torch.float64))
print(n([torch.ones(2), torch.ones(3)], requires_grad=True))
print(n([torch.ones(2), torch.ones(1, dtype=torch.int64)]))
print(n([torch.ones(0), torch.ones(3)]), n([torch.ones(2, 0), torch.ones(3, 1)]))
n([torch.ones(2), torch.ones(2, 2)])
n(torch.ones(2, 3))
n((torch.ones(2), torch.ones(3)))
n(3)
print(a([torch.ones(2), torch.ones(3)])), print(a((torch.ones(2),), dtype=torch.int32))
print(a(torch.ones(2, 3))), print(a([]))
print(a(parts)), print(a(parts) * 2), print(a(parts).detach())
x = n([torch.ones(2)]); a(x, layout=torch.strided) is x
a(n([torch.ones(2)]))
N.narrow(torch.ones(3, 2), 0, 1, 2)
N.narrow(torch.ones(3, 2), 1, 0, 1)
N.narrow(torch.ones(3, 2), 0, torch.tensor([0]), 2)
print(torch._nested_tensor_from_mask(torch.ones(2, 3, 2), m > 0))
torch._nested_tensor_from_mask(torch.ones(2, 3, 2), m < 1)
print(torch._nested_tensor_from_mask_left_aligned(torch.ones(2, 3, 2), m < 1))
[attempt(torch._nested_tensor_from_mask, torch.ones(2, 3), m) for m in (m, m[0] > 0)]
attempt(torch._nested_tensor_from_mask, torch.ones(2, 3), m > 0)
attempt(torch._nested_tensor_from_mask, torch.ones(2, 2, 2), m > 0)
print(torch._nested_from_padded(torch.ones(2, 3, 2), torch.tensor([[1, 2], [3, 2]])))
print(torch._nested_compute_contiguous_strides_offsets(torch.tensor([[2, 3], [3, 4]])))
P = torch.ones(2, 3, 3); torch._nested_from_padded_and_nested_example(P, n(parts))
attempt(torch._nested_from_padded_and_nested_example, torch.ones(2, 3), m)
""")
def made(torch, line):
    N = torch.nested
    m = torch.tensor([[1, 1, 0], [1, 0, 0]])
    names = {"n": N.nested_tensor, "a": N.as_nested_tensor, "m": m}
    return shown(torch, line, N=N, parts=parts(torch, True), **names)


@quiet.lines(r"""
x.size(0), x.size(2), x.size(-1), x.dim(), x.ndim, x.numel(), x.layout, x.is_nested
u.size(1)
u.size(2)
x.size(7)
x.size()
x.shape
len(x)
list(x)
x.stride()
x.tolist()
x.numpy()
x.item()
bool(x)
x.is_contiguous(), x.is_leaf, x.dtype, x.device, x.requires_grad, x.element_size()
x.nbytes
x.values(), x.unbind(), u.unbind()
x._nested_tensor_size(), u._nested_tensor_strides(), u._nested_tensor_storage_offsets()
x.is_same_size(x), x.is_same_size(u), x.storage_offset()
x[0], x[-1], x[1, 2], x[0, :, 1], x[..., 0]
x[5]
x[:]
x[None]
x + x, x + 1, 1 + x, x - x, x - 1, x * x, x * 2, x / x, x / 2, x * torch.tensor(2.)
x.add(x, alpha=2), -x
x + torch.ones(3)
x + u
x == x
x == 0, x > 0, x >= 0, x.eq(0), x.gt(1), x.ge(1), x.eq(torch.tensor(1.))
x.abs(), x.neg(), x.sgn(), x.sin(), x.cos(), x.tanh(), x.abs().sqrt(), x.logical_not()
x.isnan(), x.isinf(), x.isposinf(), x.isneginf()
x.relu(), F.relu(x), F.silu(x), F.gelu(x), nn.ReLU()(x)
x.exp()
1 - x
x.sum()
x.std()
x.clamp(0, 1)
x.masked_fill(x > 0, 5.)
x.add_(1), x.mul_(2), x.abs_(), x.neg_(), x.tanh_(), x.relu_(), x.logical_not_(), x
x.fill_(3.), x.zero_(), x
x.copy_(x * 2), x
x.copy_(u)
x.sub_(1)
x[0].fill_(7.), x
x[0] = 1.; x
x[1, 2] = torch.ones(3); x
x[0] = torch.ones(2, 2)
F.relu(x, inplace=True), x
x.clone(), x.detach(), x.contiguous(), x.data
x.to(torch.float64), x.half(), x.long(), x.bool(), x.float() is x, x.to('cpu') is x
torch.zeros_like(x), torch.ones_like(x, dtype=torch.int32), torch.empty_like(x).dim()
torch.zeros_like(x.transpose(1, 2))
x.transpose(1, 2), u.transpose(-1, -2), u.mT, u.transpose(1, 2).contiguous()
u.transpose(1, 2).is_contiguous(), u.transpose(1, 2) * 2, u.transpose(1, 2).values()
u.transpose(1, 2) + u.transpose(1, 2), u.transpose(1, 2).transpose(1, 2) + u
x.transpose(0, 1)
x.transpose(1, 5)
x.unsqueeze(1), x.unsqueeze(-1), x.unsqueeze(-1).squeeze(-1), x.squeeze(1)
x.unsqueeze(0)
x.squeeze(0)
x.squeeze()
x.view(2, -1, 3, 1), x.reshape(2, -1, 1, 3), x.view(2, -1, 3), u.reshape(2, -1, -1)
x.view(3, -1, 3)
x.view(2, -1, 2)
x.reshape(-1, -1, 3)
x.reshape(2, -1, 3, -1)
x.reshape(2, -1, -1, 3)
x.reshape(2, -1)
x.flatten(1)
x.narrow(0, 1, 1), u.narrow(0, 0, 1)
x.narrow(1, 0, 1)
x.narrow(0, 1, 2)
x.chunk(3, -1), x.split([1, 2], -1)
x.chunk(2, -1)
x.chunk(2, 0)
x.split([1, 1], -1)
x.split([1, 1], 1)
x.select(0, 1), x.select(1, 0), x.select(2, 1)
x.select(2, -1)
x.select(0, 7)
x.select(1, 2)
torch.cat([x, u]), torch.cat([u, u], 0)
torch.cat([x, torch.ones(2, 3)])
torch.cat([u, u], -1)
x.sum(-1, keepdim=True), u.sum(-1, True)
x.sum(-1)
x.sum(0, True)
x.sum((1, 2), True)
x.softmax(-1), u.softmax(-1), u.softmax(1), F.softmax(u, -1)
u.softmax(-1, dtype=torch.float64)
x.softmax(0)
x @ x.transpose(1, 2), torch.bmm(x, x.transpose(1, 2)), u.transpose(1, 2) @ u
torch.bmm(x, torch.arange(12.).view(2, 3, 2)), torch.bmm(torch.ones(2, 4, 3), x.mT)
x @ torch.ones(3, 2)
torch.ones(2, 3) @ x
u @ u
torch.bmm(x, x)
torch.bmm(x, torch.ones(3, 2))
F.linear(x, torch.arange(12.).view(4, 3), torch.ones(4)), nn.Linear(3, 2)(x).dim()
F.linear(u, torch.ones(4, 3))
F.linear(x, torch.ones(2, 4))
F.layer_norm(x, (3,), torch.arange(3.), torch.ones(3)), nn.LayerNorm(3)(x).dim()
F.layer_norm(x, (3,))
F.layer_norm(x, (4,), torch.ones(4), torch.ones(4))
F.layer_norm(x, (3, 3), torch.ones(3, 3), torch.ones(3, 3))
F.dropout(x, 0.5, training=False), F.dropout(x, 0.5)
F.embedding(i, torch.arange(8.).view(4, 2))
x.to_padded_tensor(0.), u.to_padded_tensor(-1.), torch.nested.to_padded_tensor(u, 7)
u.to_padded_tensor(0., (2, 4, 5)), u.long().to_padded_tensor(1)
u.to_padded_tensor(0., (2, 2, 5))
u.mT.to_padded_tensor(0.)
u.to_padded_tensor(0., (2, 5))
F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q * 2, q + 1)
F.scaled_dot_product_attention(q, q, q, is_causal=True)
""")
def lines(torch, line):
    given = [torch.arange(8.0).view(2, 2, 2) / 8, torch.arange(4.0).view(2, 1, 2) / 4]
    q = torch.nested.nested_tensor(given)
    i = torch.nested.nested_tensor([torch.tensor([1, 2]), torch.tensor([0, 3, 1])])
    return shown(torch, line, x=strided(torch), u=uneven(torch), q=q, i=i)


@quiet.lines(r"""
t.relu(), -t, t.add_(1)
t.mul_(t)
-t
F.gelu(t), t.silu_()
F.silu(t)
t.fill_(1)
x.fill_(x)
t.zero_()
t.double()
t.to("cpu") is t, t.float() is t
t.copy_(t)
x.copy_(t)
torch.empty_like(t).is_contiguous()
torch.zeros_like(t)
print(t.clone(), t * 2, t == 1, F.dropout(t, 0.0))
F.linear(t, torch.ones(3, 5))
F.linear(x[..., 0], torch.ones(3, 2))
F.linear(x, torch.ones(3))
x @ x[..., 0]
x[..., 0] @ x
x.unsqueeze(1) @ x
n([torch.ones(3, 2)]) @ x
u.mT.chunk(2, -1)
t.split_with_sizes([1, 2], -1)
n([torch.ones(1), torch.ones(1)]).squeeze(1)
n([torch.ones(2), torch.ones(2)]).squeeze(-1).dim()
x.view(())
x.reshape(())
n([]).view(-1)
n([]).view(0)
x.view(2, -1, -3)
x[0, 7]
x[0, 0, 7]
x[0, 0, 0, 0]
n([])[0]
n([])[0, 0]
float(x)
int(x)
complex(x)
x.new_tensor([1, 2])
[part for part in t], len([*iter(x)])
list(x)
print(torch._C._nn.gelu_(x), torch._C._nn.silu_(x))
print(torch.softmax(n([]), 1))
n([x, x])
n([torch.tensor(1.0), torch.tensor(2.0), torch.ones(1)])
print(torch.cat([x, x * 2], -1), torch.cat([x.unsqueeze(-1), x.unsqueeze(-1)], 2))
print(torch.cat([x, x[..., 0].unsqueeze(-1)], 2))
torch.cat([t, t])
torch.cat([x, torch.ones(2, 3, 3)], 2)
torch.cat([torch.ones(2, 3, 3), x], 2)
torch.cat([x, t], 2)
torch.cat([u, u], 2)
torch.cat([x, x[..., 0]], 2)
torch.cat([x, n([torch.ones(2, 3)])], 2)
torch.cat([x, u], 2)
x.is_same_size(torch.ones(2))
torch.ones(2).is_same_size(x)
torch.is_same_size(x, u), x.is_same_size(x * 2)
""")
def refusals(torch, line):
    x = strided(torch)
    return shown(torch, line, x=x, t=x.transpose(1, 2), u=uneven(torch))


@quiet.lines(r"""
x * 2
x.softmax(-1)
x.transpose(1, 2).contiguous()
F.linear(x, torch.ones(4, 3))
F.layer_norm(x, (3,), torch.ones(3), torch.zeros(3))
x @ x.transpose(1, 2)
torch.bmm(x, x.transpose(1, 2))
x.sum(-1, keepdim=True)
x.reshape(2, -1, 3, 1)
x.unsqueeze(1)
x.clone()
x.double()
x.masked_fill(x > 0, 1.)
""")
def gradients(torch, line):
    from tests.oracle import evaluate

    given = parts(torch, True)
    x = torch.nested.as_nested_tensor(given)
    made = evaluate(torch, line, x=x)
    yield plain(made), made.grad_fn.name(), made.is_leaf
    padded = made.to_padded_tensor(0.0)
    weights = torch.arange(1.0, padded.numel() + 1).view(padded.shape)
    (padded * weights).sum().backward()
    yield [part.grad for part in given], padded


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", ["chunk", "select", "tanh", "split", "cat"])
def test_gradients_that_pytorch_lacks(name: str) -> None:
    import torchshim as torch

    pieces: dict[str, Any] = {
        "chunk": lambda x: x.chunk(3, -1)[1],
        "select": lambda x: x.select(x.dim() - 1, 1),
        "tanh": lambda x: x.tanh(),
        "split": lambda x: x.split([1, 2], -1)[1],
        "cat": lambda x: torch.cat([x, x * 2], -1),
    }
    given, alone = parts(torch, True), parts(torch, True)
    made = pieces[name](torch.nested.as_nested_tensor(given)).contiguous()
    made.values().square().sum().backward()
    for part, expected in zip(given, alone, strict=True):
        pieces[name](expected).square().sum().backward()
        torch.testing.assert_close(part.grad, expected.grad)


@quiet
def leaves(torch):
    x = strided(torch, requires_grad=True)
    (x * x).to_padded_tensor(0.0).sum().backward()
    print(x.grad, x.is_leaf)
    yield x.grad.values()
    (found,) = torch.autograd.grad((x * 3).to_padded_tensor(0.0).sum(), x)
    yield found.values(), attempt(lambda: x.add_(1))
    x = strided(torch, requires_grad=True)
    y = x * 2
    y.backward(torch.ones_like(x))
    yield x.grad.values(), y.unbind()[1]
    yield attempt(lambda: x.detach().retain_grad())


@quiet
def files(torch):
    x, file = strided(torch, requires_grad=True), io.BytesIO()
    print(pickle.loads(pickle.dumps(x.detach())))
    torch.save({"x": x}, file)
    file.seek(0)
    print(torch.load(file)["x"])


@quiet.lines(r"""
m(n, n, n)
m(n, n, n, need_weights=False)
m(n, n, n, average_attn_weights=False)
m(n, n, n, attn_mask=torch.ones(3, 3))
m(n, n, n * 2)
m.train()(n, n, n)
nn.MultiheadAttention(4, 1, batch_first=True).eval()(n, n, n)
nn.MultiheadAttention(4, 2).eval()(n, n, n)
nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True).eval()(n, n, n)
nn.MultiheadAttention(4, 2, batch_first=True, kdim=3).eval()(n, n, n)
layer(n)
layer.train()(n)
nn.TransformerEncoder(layer, 2).eval()(n)
layer(torch.nested.nested_tensor([torch.ones(0, 4)]))
nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True).eval()(n)
torch.enable_grad()(layer)(n)
m(j, j, j)
""")
def layers(torch, line):
    m = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    given = [torch.randn(2, 4), torch.randn(3, 4)]
    n = torch.nested.nested_tensor(given)
    j = torch.nested.nested_tensor(given, layout=torch.jagged)
    with torch.no_grad():
        return shown(torch, line, m=m, layer=layer, n=n, j=j)


@quiet
def tutorial(torch):
    """What PyTorch's tutorial of nested tensors prints, but for random numbers."""
    F = torch.nn.functional
    rows = [torch.arange(12.0).reshape(2, 6), torch.arange(18.0).reshape(3, 6)]
    nt = torch.nested.nested_tensor(rows, dtype=torch.float)
    print(f"{nt=}")
    print(f"{torch.nested.to_padded_tensor(nt, padding=0.0)=}")
    print(f"number of dimensions: {nt.dim()}, {nt.size(0)}, {nt.size(2)}")
    print(attempt(lambda: nt.size(1)))
    reshaped = nt.reshape(2, -1, 2, 3)
    print(f"{reshaped=}")
    turned = reshaped.transpose(1, 2)
    print(f"{turned=}")
    product = torch.matmul(turned, turned.transpose(-1, -2))
    print(f"{product=}")
    print(f"{F.dropout(product, 0.0)=}")
    print(f"{F.softmax(product, -1)=}")
