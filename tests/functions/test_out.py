"""`out=` of another dtype, where PyTorch refuses to cast."""

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
