"""Reductions and the softmax of jagged nested tensors."""

from __future__ import annotations

from tests.nested import shown
from tests.nested.test_jagged import holes, jagged
from tests.oracle import case

DIMS = "", "0", "1", "2", "-1", "(0, 1)", "(0, 1, 2)", "(1, 2)", "(0, 2)"


@case.over(name=["sum", "mean", "amax", "amin"], keepdim=[False, True])
def several_dims(torch, name, keepdim):
    for dim in DIMS[1:]:
        line = f"torch.{name}(x, dim={dim}, keepdim={keepdim})"
        yield dim, shown(torch, line, x=jagged(torch))


@case.over(name=["max", "min", "prod", "any", "all", "argmax", "argmin"])
def one_dim(torch, name):
    for dim in "012":
        for keepdim in (False, True):
            line = f"torch.{name}(x, {dim}, keepdim={keepdim})"
            yield line, shown(torch, line, x=jagged(torch))


@case.over(name="sum mean prod max min any all argmax argmin amax amin".split())
def whole(torch, name):
    return shown(torch, f"x.{name}()", x=jagged(torch))


@case.lines(r"""
x.long().amax(1), x.long().amin(1), (x > 0).any(1), x.long().sum(1), x.long().max(1)
x.sum(1, dtype=torch.float64), x.sum(dtype=torch.float64)
x.mean(-1, dtype=torch.float64)
x.transpose(1, 2).sum(1), x.transpose(1, 2).sum(2), x.transpose(1, 2).mean(-1)
q.sum(-1), q.sum((2, 3)), q.sum(1), q.mean(1), q.amax(1), q.sum((0, 1))
h.sum(), h.mean()
h.sum(1)
h.sum(-1)
x.softmax(-1), x.softmax(2), torch.softmax(x, -1), F.softmax(x, dim=-1)
x.log_softmax(-1)
x.softmax(1), F.softmax(x, dim=1), x.sum(-1).softmax(1)
x.softmax(-1, dtype=torch.float64)
x.softmax(0)
x.log_softmax(1)
F.log_softmax(x, dim=0)
x.transpose(1, 2).softmax(1), x.transpose(1, 2).log_softmax(1)
x.transpose(1, 2).softmax(2)
h.softmax(1)
x.max(), x.max(2), x.max(1).values, x.max(1).indices
x.var(1)
x.logsumexp(1)
x.cumsum(-1)
x.topk(1)
x.median()
""")
def lines(torch, line):
    q = torch.nested.nested_tensor(
        [torch.arange(8.0).view(2, 2, 2), torch.arange(4.0).view(1, 2, 2)],
        layout=torch.jagged,
    )
    h = holes(torch)
    return shown(torch, line, x=jagged(torch), q=q, h=h)
