"""Indices of any integers, and sums and products of truth values at indices."""

from __future__ import annotations

from tests.oracle import case, evaluate


@case.lines(r"""
torch.unravel_index(T([5, 1], dtype=torch.uint8), (4, 2**30))
torch.unravel_index(T([5, 1], dtype=torch.int32), 3)
b.put(i, T([False, True, True]), True)
b.index_put((i,), T([False, True, True]), True)
b.index_add(0, i, T([False, True, True]))
b.scatter_add(0, i, T([False, True, True]))
b.scatter_reduce(0, i, T([False, True, True]), "sum", include_self=False)
b.scatter_reduce(0, i, T([False, True, True]), "prod")
b.scatter_reduce(0, i, T([False, True, True]), "amin")
b.scatter_reduce(0, i, T([False, True, True]), "mean")
b.index_reduce(0, i, T([False, True, True]), "amax")
b.scatter(0, i, T([False, True, True]), reduce="multiply")
b.scatter(0, i[:0].byte(), b[:0])
b.scatter(0, i.byte(), b)
""")
def kinds(torch, line):
    b, i = torch.tensor([True, False, False]), torch.tensor([0, 1, 1])
    return evaluate(torch, line, b=b, i=i, T=torch.tensor)


@case(warnings=False)
def gather_with_sparse_gradients(torch):
    x = torch.arange(6.0).view(2, 3)
    i = torch.tensor([[0, 0], [1, 0]])
    yield torch.gather(x, 1, i, sparse_grad=True)
    y = torch.gather(x.requires_grad_(), 1, i, sparse_grad=True)
    yield torch.autograd.grad(y.sum(), x)[0].to_dense()
