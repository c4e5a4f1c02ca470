"""Sparse tensors of other shapes and patterns, in place and in `out=`."""

import pytest

from tests.oracle import case, evaluate

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

quiet = case(warnings=False)


def _names(torch):
    x = torch.tensor([[1.0, 0, 2], [0, 0, 3]])
    y = torch.arange(24.0).view(2, 3, 4)
    indices = torch.tensor([[0, 0, 1], [1, 1, 2]])
    return {
        "x": x,
        "s": x.to_sparse(),
        "u": torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2, 3]), (2, 3)),
        "y": y,
        "h": y.to_sparse(2),
        "c": x.to_sparse_csr(),
        "z": torch.zeros(2, 3, layout=torch.sparse_csr),
        "one": torch.ones(2),
        "o": torch.zeros(2, 3, layout=torch.sparse_coo),
    }


@quiet.lines("""
s * torch.tensor(2.0).to_sparse()
torch.tensor(2.0).to_sparse() * s
s * y[:, :, :1].permute(2, 0, 1)
y[0, :2, :3] * s, s * y.permute(2, 0, 1)
y.permute(2, 0, 1) * s
s * x[:1].to_sparse()
s * y.to_sparse()
h * y.sum(2, True).to_sparse(2)
h * y.sum(1, True).to_sparse(2)
h + torch.zeros(2, 3, 4, layout=torch.sparse_coo)
torch.zeros(2, 3, 4, layout=torch.sparse_coo) - h
h + y.to_sparse()
torch._sparse_broadcast_to(s, (4, 2, 3))
torch._sparse_broadcast_to(x[:, 2:].to_sparse(), (2, 3))
torch._sparse_broadcast_to(s, (2, 4))
torch.sparse_coo_tensor((2**40, 2**40))
h.sum(2), torch.sparse_coo_tensor([[0, 1, 1]], y[0], (2, 4)).sum(1)
h.permute(dims=(1, 0, 2))
y.to_sparse(1).permute(0, 2, 1)
h.permute(2, 1, 0)
s.narrow_copy(-1, 0, 3)
s.narrow_copy(0, 1, 3)
torch.cat([s, x[:, 1:].to_sparse()])
torch.cat([y.to_sparse(), h])
u.log1p_()
u.arcsin_()
s.floor_divide_(2)
s // s
s // torch.tensor(1.0).to_sparse()
s / torch.tensor(1.0).to_sparse()
s.mv(torch.ones(3, 1))
s @ torch.ones(2)
torch.hsmm(s, torch.ones(3, 2))
torch.saddmm(torch.eye(2).to_sparse(), s, torch.ones(3, 2))
s.copy_(s.narrow_copy(0, 0, 1))
torch.sparse.spdiags(torch.ones(0, 3), torch.tensor([], dtype=torch.int64), (3, 3))
torch.zeros_like(x, layout=torch.sparse_coo)
torch.zeros_like(x, layout=torch.sparse_csr, dtype=torch.int32)
torch.neg(s, out=o), o
torch.neg(s, out=torch.zeros(2, 3))
torch.sin(s, out=o) is o, o
torch.sin(s, out=o.int())
torch.div(s, 2, rounding_mode="floor", out=o), o
torch.mul(s, s, out=o), torch.add(s, s, out=o), torch.pow(s, 2, out=o), o
torch.add(x, s, out=torch.zeros(0))
torch.add(s.requires_grad_(), s, out=o)
torch.zeros(3, 2, out=s), s
torch.mm(s, y[0], out=torch.zeros(2, 4))
torch.mm(c, y[0], out=torch.zeros(2, 4)), torch.mv(c, one.new_ones(3), out=one)
torch.addmm(y[0, :2], s, y[0], out=torch.zeros(0)), torch.hspmm(s, y[0], out=o)
torch.addmv(one, c, torch.ones(3), beta=2, alpha=3), torch.addmv(one, c, y[0, 0, :3])
torch.addmm(z, c, torch.eye(3).to_sparse_csr(), alpha=2)
torch.sparse.sampled_addmm(c, y[0, :2], y[0, 0, :3].expand(4, 3), out=z), z
torch.add(c, c, out=z), torch.mul(c, c, out=z), z
c.zero_()
c.fill_(7)
torch.ones_like(c), torch.zeros_like(c, layout=torch.sparse_csc)
c.copy_(c.to_sparse_csc())
x.copy_(c)
c + x.t().contiguous().to_sparse_csr()
c * x.t().contiguous().to_sparse_csr()
s.permute(-2, -1).is_coalesced(), s.permute(0, 1).is_coalesced()
s.negative_()
s.mv(s)
torch.sparse.mm(s, s.t().double())
torch.sparse.spdiags(one, torch.tensor(0), (2, 2), layout=torch.strided)
one.double()[0].to_sparse() * one[0].to_sparse()
one[0].to_sparse() * one.double()[0].to_sparse()
torch._validate_sparse_coo_tensor_args(s.indices(), s.values(), (2, 3))
torch._validate_sparse_coo_tensor_args(s.indices(), s.values(), (1, 3))
torch._validate_sparse_coo_tensor_args(u._indices(), u._values(), (2, 3), True)
torch._validate_sparse_csr_tensor_args(c.crow_indices(), c.col_indices(), one, (2, 3))
torch._validate_sparse_csc_tensor_args(one.long(), one.long(), one, (2, 3))
""")
def shapes_and_patterns(torch, line):
    found = evaluate(torch, line, **_names(torch))
    return [
        str(each) if getattr(each, "is_sparse", True) is True else each
        for each in (found if isinstance(found, tuple) else (found,))
    ]


@quiet.lines("""
h * y.sum(2, True).to_sparse(2)
h.permute(1, 0, 2)
""")
def gradients(torch, line):
    y = torch.arange(24.0).view(2, 3, 4).requires_grad_()
    x = torch.tensor([[1.0, 0, 2], [0, 0, 3]])
    v = torch.ones(3, requires_grad=True)
    s = torch.sparse_coo_tensor(x.nonzero().t(), v, (2, 3))
    h = torch.sparse_coo_tensor(torch.tensor([[0], [2]]), y[0, :1], (2, 3, 4))
    found = evaluate(torch, line, s=s, h=h, y=y.detach()).to_dense()
    (found * torch.arange(1.0, found.numel() + 1).view(found.shape)).sum().backward()
    return v.grad, y.grad


@quiet.lines("""
torch.sparse.softmax(t, 1).backward(other)
torch.sparse.log_softmax(t, 1).backward(t.detach())
torch.sparse.softmax(s, 0).backward(other)
(t * 2).backward(t.detach().clone())
(t * 2).backward(t.detach().coalesce())
(t + t).backward(torch.zeros(2, 3, layout=torch.sparse_coo))
t.coalesce().backward(within)
torch.sparse.sum(s, 1).backward(torch.tensor([0.0, 2]).to_sparse())
""")
def gradients_given(torch, line):
    """As many values as the tensor has may be at other places than its own."""
    i = torch.tensor([[0, 0, 1, 1], [0, 2, 0, 0]])
    v = torch.tensor([1.0, 2, 3, 4])
    t = torch.sparse_coo_tensor(i, v, (2, 3)).requires_grad_()
    s = t.detach().coalesce().requires_grad_()
    at = torch.tensor([[0, 0, 1], [0, 1, 0]])
    other = torch.sparse_coo_tensor(at, torch.tensor([1.0, 7, 3]), (2, 3))
    at = torch.tensor([[1, 0], [0, 0]])
    within = torch.sparse_coo_tensor(at, torch.tensor([5.0, 6]), (2, 3))
    names = {"torch": torch, "t": t, "s": s, "other": other, "within": within}
    eval(line, names)
    grad = t.grad if s.grad is None else s.grad
    return grad.to_dense()
