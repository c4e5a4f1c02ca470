"""`out=` of another dtype, where PyTorch refuses to cast, and of shared memory."""

from __future__ import annotations

from tests.oracle import case, evaluate


@case.lines(r"""
torch.mm(x, x, out=d)
torch.bmm(x[None], x[None], out=d)
torch.addmm(x, x, x, out=d)
torch.addmv(x[0], x, x[0], out=d)
torch.baddbmm(x[None], x[None], x[None], out=d)
torch.softmax(x, 0, out=d)
torch.softmax(x, 0, dtype=torch.float64, out=d)
torch.log_softmax(x, 0, out=d.half())
torch.argmax(x, out=d)
torch.isin(x, x, out=d)
torch.msort(x, out=d)
torch.renorm(x, 2, 0, 1.0, out=d)
torch.index_add(x, 0, i, x[:1], out=d)
torch.index_copy(x, 0, i, x[:1], out=d)
torch.scatter(x, 0, i[None], 2.0, out=d)
torch.scatter_add(x, 0, i[None], x, out=d)
torch.scatter_reduce(x, 0, i[None], x, "sum", out=d)
torch.t_copy(x, out=d)
torch.view_copy(x, [4], out=d)
torch.as_strided_copy(x, [1], [1], out=d)
torch.ceil(x, out=d), torch.neg(x, out=d)
torch.neg(x, out=d)
torch.round(x, out=d)
torch.sign(x, out=d)
torch.bitwise_not(i, out=d)
torch.neg(x, out=x.clone()), torch.exp(x, out=d)
""")
def dtypes(torch, line):
    x, d = torch.tensor([[1.5, -2.0], [3.0, 0.0]]), torch.zeros(0, dtype=torch.float64)
    return evaluate(torch, line, x=x, d=d, i=torch.tensor([1]))


# `a` lies within the memory of `b`: they share two of four elements.
@case.lines(r"""
torch.exp(a, out=b)
torch.exp(a, out=a)
torch.where(a > 0, a, b, out=b), torch.clamp(a, 0, 1, out=b)
torch.cumsum(a, 0, out=b)
torch.cumsum(a, 0, out=a)
torch.max(a, 0, out=(a[0], torch.tensor([0, 0])))
torch.mode(a, 0, out=(a[1], torch.tensor([0, 0])))
torch.topk(a, 2, out=(b, torch.zeros(2, 2, dtype=torch.int64)))
torch.sort(a, out=(a, torch.zeros(2, 2, dtype=torch.int64)))
torch.addmm(a, e, e, out=b)
torch.addr(e, e[0], a[0], out=b)
torch.outer(a[0], a[0], out=a)
torch.index_add(a, 0, i, e, out=b)
torch.index_add(e, 0, i, a, out=a)
torch.scatter(e, 0, i[None], a, out=b)
torch.scatter(a, 0, i[None], 2.0, out=a)
torch.gather(a, 0, i[None], out=a[:1])
torch.stack([a[0], a[1]], out=b)
b.scatter_(0, i[None], a)
b[:, 0].scatter_(0, i, b[:, 1])
b.index_add_(0, i, a), b.put_(i, a[0])
b.index_put_((i,), a)
b.addr_(a[0], a[0])
x = torch.arange(4.0); x[i] = x[1:3]; x
x = torch.arange(4.0); x[x > 1] = x[1:3]; x
x = torch.arange(4.0); x[[0, 1]] = x[[1, 0]]; x
x = torch.zeros(3, dtype=torch.bool); x[x] = True; x
torch.zeros(1).expand(3).index_put_((i,), e[0])
torch.take(a, i, out=b[0])
torch.masked_select(a, a > 1, out=b.view(4))
""")
def memory(torch, line):
    whole = torch.arange(6.0)
    a, b, e = whole[:4].view(2, 2), whole[2:].view(2, 2), torch.ones(2, 2)
    return evaluate(torch, line, a=a, b=b, e=e, i=torch.tensor([0, 1]))
