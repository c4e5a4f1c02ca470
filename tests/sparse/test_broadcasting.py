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
