"""Python's types as dtypes, and calls that were refused or answered otherwise."""

from __future__ import annotations

import numpy as np

from tests.oracle import attempt, case, evaluate

LINES = """
x.sum(dtype=D)
x.sum(0, dtype=D)
x.mean(dtype=D)
x.prod(0, dtype=D)
x.nansum(dtype=D)
x.cumsum(0, dtype=D)
x.cumprod(0, dtype=D)
F.softmax(x, 0, dtype=D)
F.log_softmax(x, 0, dtype=D)
F.softmin(x, 0, dtype=D)
torch.norm(x, dtype=D)
torch.linalg.vector_norm(x, dtype=D)
torch.linalg.matrix_norm(x, dtype=D)
torch.masked.sum(x, 0, dtype=D)
"""


@case.over(float, int, bool, complex)
def reductions(torch, kind):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for line in LINES.strip().splitlines():
        for _ in range(2):
            yield attempt(evaluate, torch, line, x=x, D=kind)
    y = x.clone().requires_grad_()
    if kind is float:
        total = y.sum(dtype=kind) + y.softmax(0, dtype=kind)[0, 0]
        total.backward()
        yield total, y.grad


@case.lines("""
x.logsumexp((), True)
x.logsumexp((), False)
x.long().logsumexp([], True)
torch.special.logsumexp(x, (), keepdim=True)
x.pinverse(0)
torch.linalg.pinv(x, 1)
torch.linalg.pinv(x, rtol=0)
torch.linalg.pinv(x, atol=1, rtol=0)
x.to_sparse(np.int64(1)).values()
x.to_sparse(torch.tensor(1)).values()
F.multilabel_soft_margin_loss(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0]]))
F.multilabel_soft_margin_loss(x[0], x.T, torch.tensor([1.0, 3.0]), reduction="none")
F.multilabel_soft_margin_loss(x, x[0], reduction="none")
""")
def calls(torch, line):
    return evaluate(torch, line, x=torch.tensor([[1.0, 2.0], [3.0, 4.0]]), np=np)


@case
def quantiles_of_infinities(torch):
    inf = float("inf")
    q = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
    for values in ([-inf], [-inf, 1.0, 2.0], [1.0, inf], [1.0, inf, inf], [-inf, inf]):
        for how in ("linear", "midpoint", "lower", "higher", "nearest"):
            yield torch.tensor(values).quantile(q, interpolation=how)
            yield torch.tensor([*values, float("nan")]).nanquantile(q)
    x = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([0.3, 0.5, 0.9], dtype=torch.float64, requires_grad=True)
    x.quantile(w).sum().backward()
    yield x.grad, w.grad


@case
def attention_that_drops_all(torch):
    q = torch.ones(1, 2, 2, requires_grad=True)
    for p in (0.5, 0.3, 0.2, 1.0):
        dropped = torch.nn.functional.scaled_dot_product_attention(q, q, q, None, p)
        if p == 1:
            dropped.sum().backward()
            yield dropped, q.grad
