"""What sparse tensors take part in: products, sums, pieces, gradients, programs."""

import pytest

from tests.oracle import attempt, case, evaluate

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

quiet = case(warnings=False)


def _names(torch):
    indices = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
    v = torch.tensor([3.0, 4.0, 5.0, 1.0], requires_grad=True)
    d = torch.arange(8.0).view(4, 2).requires_grad_()
    s = torch.sparse_coo_tensor(indices, v, (2, 4))
    pairs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    h = torch.sparse_coo_tensor([[0, 2]], pairs, (3, 2))  # hybrid
    parts = torch.tensor([1 + 2j, 3 - 1j, 1j])
    c = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], parts, (2, 3))
    z = torch.tensor([[1 + 2j, 0], [0, 3 - 1j]])
    e = torch.eye(2).to_sparse()
    return {"s": s, "v": v, "d": d, "h": h, "e": e, "c": c, "z": z}


@quiet.lines("""
s.coalesce()
s.coalesce().values()
torch.tensor(5.).sparse_mask(torch.tensor(False).to_sparse()).coalesce().values()
torch.tensor(5.).sparse_mask(torch.tensor(True).to_sparse()).coalesce().values()
torch.mm(s, d)
torch.spmm(s, d)
torch.sparse.mm(s, d)
s @ d
s.mm(d)
s @ torch.ones(4)
torch.mv(s, torch.ones(4))
torch.addmm(torch.ones(2, 2), s, d, beta=2, alpha=3)
torch.sparse.addmm(torch.ones(2, 2), s, d, beta=2, alpha=3)
torch.ops.aten._sparse_addmm.default(torch.ones(2, 2), s, d)
torch.ones(3, 2) @ s
torch.ones(2) @ e
torch.ones(2, 3, 2) @ e
torch.mm(d, s.detach())
F.linear(s, torch.ones(3, 4), torch.ones(3))
torch.sparse.mm(s, s.t())
s @ s.t()
torch.bmm(torch.stack([e, e]), torch.ones(2, 2, 2))
s.to_dense()
s.t()
s.T
s.transpose(0, -1)
s.permute(1, 0)
s.permute(0, 0)
s.permute(0, -2)
c.conj()
c.requires_grad_().conj()
c.conj_physical()
e.conj()
c.resolve_conj()
z.to_sparse_csr().conj()
z.to_sparse_csr().resolve_neg()
z.to_sparse_csr().adjoint()
z.to_sparse().mH
z.to_sparse().real
torch.imag(c)
c.conj().numpy()
z.to_sparse_csr().numpy(force=True)
z.to_sparse_csc().numpy()
s * 2
2 * s
s / 2
e // 2
-s
s + s
s - s
s * s
s ** 2
s.relu()
F.relu(s)
s.abs()
s.tanh()
s.isnan()
s * d.t()
torch.ones(2, 4) * s
torch.ones(2, 4) + s
torch.ones(2, 4) - s
torch.add(torch.ones(2, 4), s, alpha=3)
e + torch.ones(2, 2).to_sparse()
torch.add(e, torch.ones(2, 2).to_sparse(), alpha=2)
e * torch.ones(2, 2).to_sparse()
e * torch.ones(2)
torch.sparse.sum(s)
torch.sparse.sum(s, 1)
torch.sparse.sum(s, dim=(0, 1))
torch.sparse.sum(s, dtype=torch.double)
torch.sparse.sum(h, 0)
torch.sparse.sum(h, 1)
s.sum(), s.sum(dtype=torch.double)
s.sum(1)
s.sum(1, keepdim=True)
torch.sparse.softmax(s, 1)
torch.sparse.softmax(s, 0, dtype=torch.double)
torch.sparse.log_softmax(s, 1)
torch.sparse.log_softmax(s, 1, torch.double)
torch.sparse.softmax(s, 1, torch.double)
torch.sparse.addmm(*d.detach().view(2, 2, 2), torch.eye(2), beta=2, alpha=3)
torch.sparse.addmm(e.to_dense(), e, e)
torch.sparse.addmm(e, e, e.to_dense())
torch.sspaddmm(e, e, torch.ones(2, 2), beta=3, alpha=2)
torch.sparse_coo_tensor([[0, 0], [1, 1]], [1., 2.]).sspaddmm(e, torch.ones(2, 2))
torch.sparse.softmax(h, 1)
torch.sparse.softmax(h, 0)
s.detach().norm(), e.norm(1)
torch.norm(e), torch.norm(s.detach(), 1), torch.norm(e, dim=(0, 1)), torch.norm(h, 3)
torch.any(h, keepdim=True), torch.any(h)
e.is_pinned(), e.to_sparse_csr().is_pinned()
s.clone()
s.double()
s.detach()
s.requires_grad_()
torch.cat([s, s])
torch.cat([s, s], 1)
torch.stack([s, s])
s.index_select(0, torch.tensor([1, 0, 1]))
s.index_select(1, torch.tensor([2]))
s[0]
s[1, 2], h[0], h[2, 1], e[0, 1]
s[:, 0], s[..., -1], s[0, ...], s[-1, :], s[:9, 1], s[:, torch.tensor(0)]
s[None], s[0, None], s[None, 1, None, 2], h[:, 0], h[..., 1, None], h[2, None, 1]
s[:, 5]
s[None, 5]
s[0, None, 5]
s[..., 5]
s[-9]
s[0, 0, 0]
s.unsqueeze(0)
h.unsqueeze(2)
e.unbind()
e.narrow_copy(0, 0, 1)
s.to_sparse_csr()
d.to_sparse()
s.sparse_mask(s)
d.t().sparse_mask(s)
h.to_dense(), h.coalesce().is_coalesced(), h.dense_dim()
torch.zeros_like(s)
torch.zeros_like(s, layout=torch.strided, dtype=torch.double, requires_grad=True)
torch.zeros_like(s, layout=torch.strided, memory_format=torch.contiguous_format)
torch.empty_like(h, layout=torch.sparse_coo, pin_memory=False).dense_dim()
e.new_zeros(3, 2, layout=torch.strided), e.new_zeros(size=(3, 2), requires_grad=True)
e.float(memory_format=torch.contiguous_format), e.cpu(memory_format=None)
torch.hspmm(e, torch.ones(2, 2))
torch.smm(e, torch.ones(2, 2))
e.sparse_resize_((3, 3), 2, 0)
e.sparse_resize_((1, 2), 2, 0)
e.sparse_resize_((2, 2, 2), 2, 1)
e.sparse_resize_((3, 3), 2, 1)
e.sparse_resize_((3, 3), 2.0, 0)
e.sparse_resize_(3, 2, 0)
h.detach().clone().sparse_resize_((4, 2), 1, 1)
h.detach().clone().sparse_resize_((3, 1), 1, 1)
h.detach().clone().sparse_resize_((3, 2), 2, 0)
h.detach().clone().sparse_resize_((3, 3), 1, 1).shape
h.detach().clone().sparse_resize_((3, 3), 1, 1)._values().flatten()[:4]
torch.zeros(3).to_sparse().sparse_resize_((2,), 1, 0)
torch.zeros(3).to_sparse().sparse_resize_((2, 4), 1, 1).is_coalesced()
torch.zeros(3).to_sparse().sparse_resize_((2, 4), 0, 2)
torch.zeros(3).to_sparse().sparse_resize_((2, -4), 1, 1)
e.sparse_resize_and_clear_((3, 3), 2, 0)
e.any(), e.bool(), e.long().dtype, e.half().dtype, e.byte().dtype
e.long() * 2.5
e * torch.tensor(2.0, dtype=torch.double)
""")
def operators(torch, line):
    found = evaluate(torch, line, **_names(torch))
    first = found[0] if isinstance(found, tuple) else found
    layout = getattr(first, "layout", torch.strided)
    return str(found) if layout is not torch.strided else found


@quiet.lines("""
torch.mm(s, d)
torch.sparse.mm(s, d)
torch.sparse.mm(s, s.t())
s.coalesce().to_dense()
s.coalesce().values()
torch.sparse.softmax(s, 1)
torch.sparse.log_softmax(s, 0)
torch.sparse.sum(s, 1)
s * s
s * d.t().detach()
(s + s) * 2
torch.addmm(d[:2], s, d)
d.t() + s
s.abs()
torch.sparse.mm(s.to_sparse_csr(), d)
torch.sparse.mm(s.to_sparse_csr(), d, "sum")
torch.sparse.mm(s.to_sparse_csr(), d.relu() * 0, "max")
torch.sparse.mm(s.to_sparse_csr(), d * 0, "amin")
torch.sparse.mm(s.to_sparse_csr(), d, "mean")
s.to_sparse_csr().t()
d.to_sparse() * 2
""")
def gradients(torch, line):
    names = _names(torch)
    found = evaluate(torch, line, **names).to_dense()
    weights = torch.arange(1.0, found.numel() + 1).view(found.shape)
    (found * weights).sum().backward()
    return names["v"].grad, names["d"].grad


@quiet.lines("""
torch.sparse.mm(s, d)
s.to_dense()
s * 2
torch.sparse.sum(s, 1)
torch.sparse.softmax(s, 1)
s.coalesce().values()
""")
def gradients_of_sparse_leaves(torch, line):
    names = _names(torch)
    s = torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]]),
        [3.0, 4.0, 5.0, 1.0],
        (2, 4),
        requires_grad=True,
    )
    names["s"] = s
    found = evaluate(torch, line, **names).to_dense()
    (found * torch.arange(1.0, found.numel() + 1).view(found.shape)).sum().backward()
    return str(s.grad), str(s), s.is_leaf


@quiet.lines("""
c @ torch.ones(3, 2)
c @ torch.ones(3)
torch.mm(c, torch.ones(3, 2))
torch.sparse.mm(c, torch.ones(3, 2), "sum")
torch.sparse.mm(c, torch.ones(3, 2), "mean")
torch.sparse.mm(c, torch.ones(3, 2), "amax")
torch.sparse.mm(c, torch.ones(3, 2), "amin")
torch.sparse.mm(c, torch.ones(3, 2), "min")
torch.sparse.mm(c, torch.ones(3, 2), "prod")
torch.sparse.mm(c, torch.ones(3, 2), "mode")
torch.sparse.mm(c, torch.ones(2, 2), "sum")
torch.sparse.mm(c, torch.ones(3, 2, dtype=torch.float64), "max")
torch.sparse.mm(c, torch.ones(3, 2), 1)
torch.sparse.mm(c.to_sparse_csc(), torch.ones(3, 2), "sum")
torch.addmm(torch.ones(2, 2), c, torch.ones(3, 2))
torch.sparse.sampled_addmm(c, torch.ones(2, 4), torch.ones(4, 3), beta=2., alpha=.5)
c.t() @ torch.ones(2, 2)
c * 2
c + c
c * c
c.abs()
c.sum()
c.sum(1, keepdim=True)
c.clone()
c.double()
c.transpose(0, 1)
c.to_sparse()
c.to_sparse_csc()
c[0]
c[:, 1]
c[0, :]
c[..., 0]
c[:, 7]
-c
""")
def compressed(torch, line):
    c = torch.sparse_csr_tensor([0, 1, 3], [1, 0, 2], [1.0, 2.0, 3.0], (2, 3))
    found = evaluate(torch, line, c=c)
    return str(found) if found.layout is not torch.strided else found


@quiet.lines("""
u.add_(i)
u.add_(f)
u.sub(b)
b.sub(b)
i.sub(u)
f.add_(f.double())
f.sub_(i)
f.mul_(b)
i.mul(b)
i.mul_(f)
i.coalesce().mul_(f.coalesce())
i.mul_(2.5)
i.mul_(3)
i.div_(2)
f.div_(2)
torch.ones(2, 3).div(f)
torch.ones(2, 3).div_(f)
torch.ones(2, 3, dtype=torch.int32).add_(f)
torch.ones(2, 3, dtype=torch.int32).sub_(f)
torch.ones(2, 3, dtype=torch.int32).mul_(f)
torch.ones(2, 3).sub_(b)
f.to_sparse_csr().mul_(f.double().to_sparse_csr())
""")
def of_other_dtypes(torch, line):
    def made(dtype, column):
        indices = torch.tensor([[0, 1, 1, 0], [1, column, 2, 1]])
        return torch.sparse_coo_tensor(indices, torch.ones(4, dtype=dtype), (2, 3))

    names = {"u": made(torch.uint8, 0), "i": made(torch.int32, 1)}
    names |= {"f": made(torch.float32, 0), "b": made(torch.bool, 1)}
    found = evaluate(torch, line, **names)
    return found.dtype, found.to_dense()


def _adjacency(torch, edges, n):
    loops = torch.arange(n).repeat(2, 1)
    both = torch.cat([edges, edges.flip(0), loops], 1)
    ones = torch.ones(both.shape[1])
    adjacency = torch.sparse_coo_tensor(both, ones, (n, n)).coalesce()
    scale = torch.sparse.sum(adjacency, 1).to_dense().pow(-0.5)
    i = adjacency.indices()
    values = adjacency.values() * scale[i[0]] * scale[i[1]]
    return torch.sparse_coo_tensor(i, values, (n, n))


@quiet
def graph_convolution(torch):
    F = torch.nn.functional

    class Convolution(torch.nn.Module):
        def __init__(self, n, m):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(n, m) * 0.3)

        def forward(self, x, adjacency):
            return torch.spmm(adjacency, torch.mm(x, self.weight))

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Convolution(4, 8), Convolution(8, 3)
            self.register_buffer("adjacency", adjacency)

        def forward(self, x):
            x = F.dropout(F.relu(self.first(x, self.adjacency)), 0.5, self.training)
            return F.log_softmax(self.second(x, self.adjacency), 1)

    adjacency = _adjacency(torch, torch.randint(0, 12, (2, 30)), 12)
    x, y = torch.randn(12, 4), torch.randint(0, 3, (12,))
    network = Network().to("cpu")
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.nll_loss(network(x), y)
        loss.backward()
        optimizer.step()
        yield loss.detach()
    yield list(network.state_dict())


@quiet
def graph_attention(torch):
    F = torch.nn.functional
    edges = torch.randint(0, 8, (2, 20))
    x = torch.randn(8, 4)
    w = torch.nn.Parameter(torch.randn(4, 3) * 0.3)
    a = torch.nn.Parameter(torch.randn(6) * 0.3)
    optimizer = torch.optim.SGD([w, a], lr=0.1)
    for _ in range(3):
        h = x @ w
        scores = F.leaky_relu(torch.cat([h[edges[0]], h[edges[1]]], 1) @ a, 0.2)
        weights = torch.sparse_coo_tensor(edges, scores, (8, 8))
        out = torch.sparse.mm(torch.sparse.softmax(weights, dim=1), h)
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.detach(), w.grad, a.grad


@quiet
def page_rank(torch):
    edges = torch.randint(0, 10, (2, 40))
    out = torch.bincount(edges[0], minlength=10).float()
    steps = torch.sparse_coo_tensor(edges.flip(0), 1 / out[edges[0]], (10, 10))
    rank = torch.full((10, 1), 0.1)
    for _ in range(10):
        rank = 0.85 * torch.sparse.mm(steps, rank) + 0.015
    yield rank
    yield rank - torch.mm(steps.to_sparse_csr(), rank)


def test_gradients_that_pytorch_has_not():
    import torchshim as torch

    for pick, expected in (
        (lambda s: s.index_select(1, torch.tensor([2, 2])), [3.0, 0.0, 7.0, 3.0]),
        (lambda s: torch.cat([s, s], 1).t(), [18.0, 12.0, 20.0, 18.0]),
        (lambda s: s[0], [3.0, 0.0, 0.0, 3.0]),
    ):
        names = _names(torch)
        found = pick(names["s"]).to_dense()
        weights = torch.arange(1.0, found.numel() + 1).view(found.shape)
        (found * weights).sum().backward()
        assert names["v"].grad.tolist() == expected


def test_a_sparse_parameter():
    import torchshim as torch

    weight = torch.nn.Parameter(torch.eye(2).to_sparse())
    assert isinstance(weight, torch.nn.Parameter) and weight.is_leaf
    module = torch.nn.Module()
    module.weight = weight
    assert list(module.state_dict()) == ["weight"]
    torch.sparse.mm(weight, torch.tensor([[1.0], [2.0]])).sum().backward()
    assert weight.grad.layout is torch.sparse_coo
    assert weight.grad.to_dense().tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_a_step_is_one_program_found_again():
    """The pattern is found once: later steps read nothing and compile nothing."""
    import torchshim as torch
    from torchshim._core.record import local

    edges = torch.tensor([[0, 1, 1], [1, 0, 1]])
    scores = torch.ones(3, requires_grad=True)
    programs = []
    for _ in range(4):
        weights = torch.sparse_coo_tensor(edges, scores * 2, (2, 2), is_coalesced=None)
        torch.sparse.softmax(weights, 1).to_dense()[0].sum().backward()
        assert local.rec.state is not local.rec.root
        programs.append(local.rec.state.depth)
        scores.grad.tolist()
        scores.grad = None
    assert programs[1:] == [programs[1]] * 3


@case(warnings=False)
def saved_by_functions(torch):
    """A product of a sparse matrix as graph attention writes it."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            a = torch.sparse_coo_tensor(indices, values, shape)
            ctx.save_for_backward(a, b)
            return torch.matmul(a, b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            places = a._indices()[0] * a.shape[1] + a._indices()[1]
            return None, grad.matmul(b.t()).view(-1)[places], None, a.t().matmul(grad)

    indices = torch.tensor([[0, 1, 1], [2, 0, 2]])
    values = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    b = torch.arange(6.0).view(3, 2).requires_grad_()
    for _ in range(2):
        y = Product.apply(indices, values, (2, 3), b)
        saved = y.grad_fn.saved_tensors[0]
        yield y, saved, saved.requires_grad, saved.layout
        y.square().sum().backward()
        yield values.grad, b.grad


@case(warnings=False)
def products_with_a_sparse_weight(torch):
    weight = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 3))
    x = torch.arange(12.0).view(4, 3).requires_grad_()
    for each in (weight, weight.to_sparse_csr()):
        out = torch.nn.functional.linear(x, each)
        yield out, torch.autograd.grad(out.sum(), x)
        yield each.to_dense() + torch.ones(2, 3)
    bias = torch.ones(2)
    for each in (weight, weight.to_sparse_csr(), weight.to_sparse_csc()):
        for given in (x.detach(), x[0].detach(), x.detach()[None]):
            yield attempt(torch.nn.functional.linear, given, each, bias)
    csr = weight.to_sparse_csr()
    yield csr + torch.ones(2, 3), torch.add(csr, torch.ones(2, 3), alpha=2)
    yield attempt(lambda: weight + torch.ones(2, 3))
    yield weight.movedim(0, 1), torch.moveaxis(weight, (0, 1), (1, 0))
    yield attempt(weight.movedim, (0, 0), (0, 1))
