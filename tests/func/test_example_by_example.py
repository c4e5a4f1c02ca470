"""`vmap` of functions that PyTorch computes in a loop over examples."""

from __future__ import annotations

from tests.oracle import attempt, case


@case(warnings=False)
def counts(torch):
    vmap = torch.vmap
    x = torch.tensor([[0, 1], [2, 1]])
    at_least = vmap(lambda t: torch.bincount(t, minlength=3))
    yield at_least(x)
    yield attempt(vmap(lambda t: torch.bincount(t)), torch.tensor([[0, 1], [3, 1]]))
    yield vmap(lambda t: t.bincount())(torch.tensor([[2], [2]]))
    weighted = vmap(lambda t, w: torch.bincount(t, w, minlength=3))
    yield weighted(x, torch.tensor([[0.5, 1], [2, 3]]))
    yield vmap(lambda t: torch.bincount(t, torch.ones(2), minlength=3))(x)
    yield vmap(lambda w: torch.bincount(x[0], w))(torch.eye(2))
    yield attempt(at_least, -x)
    yield attempt(at_least, x * 1.0)
    yield vmap(at_least)(x.view(1, 2, 2)), attempt(at_least, x.view(1, 2, 2))
    inner = vmap(lambda a: vmap(lambda t: torch.bincount(t + a.sum(), minlength=9))(x))
    yield inner(x.view(2, 1, 2))
    yield attempt(at_least, torch.zeros(0, 2, dtype=torch.long))


@case
def counts_warn(torch):
    yield torch.vmap(lambda t: torch.bincount(t, minlength=2))(torch.eye(2).long())
