"""Transforms one after the other, with nothing read between: numbers of levels."""

import pytest

import torchshim
from tests.oracle import attempt, case
from torchshim._core.record import local


@case
def escaped(torch):
    """What escapes from one `vmap` is no part of the next."""
    kept = []
    x = torch.arange(6.0).view(2, 3) * 1
    torch.vmap(lambda v: kept.append(v * 2) or v)(x)
    y = torch.vmap(lambda v: v + 1)(x)
    yield y
    yield type(attempt(torch.vmap(lambda v: v + kept[0]), x)).__name__ != "Tensor"
    kept.clear()
    yield torch.vmap(lambda v: v * 3)(x)


@case
def histories(torch):
    """A graph of one `vmap` that is differentiated within another."""
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    y = torch.vmap(lambda v: v.sin() * v.sum())(x * 1)
    z = torch.vmap(lambda v: v * 2)(x.detach() * 1)
    rows = torch.eye(6).view(6, 2, 3)

    def gradient(v):
        return torch.autograd.grad(y, x, v, retain_graph=True)[0]

    found = torch.vmap(gradient)(rows)
    y = None
    again = torch.vmap(lambda v: v.cos())(z)
    yield found, z, again


@case
def held_nodes(torch):
    """As before, where only the node is held."""
    x = torch.arange(3.0).requires_grad_()
    edge = torch.autograd.graph.get_gradient_edge(
        torch.vmap(lambda v: v.exp() * v)(x * 1)
    )
    w = torch.vmap(lambda v: v * 2)(torch.ones(3) * 1)

    def gradient(v):
        return torch.autograd.grad(edge, x, v, retain_graph=True)[0]

    yield torch.vmap(gradient)(torch.eye(3) * w)


@case(warnings=False)
def nested_one_after_the_other(torch):
    func, x = torch.func, torch.arange(1.0, 4.0) * 1
    found = []
    for _ in range(3):
        jacobian = func.jacrev(lambda v: v**3)(x)
        value, pull = func.vjp(lambda v: v.sin(), x)
        hessian = func.hessian(lambda v: (v**3).sum())(x)
        found += [jacobian, value, *pull(x), hessian]
        _, tangent = func.jvp(lambda v: v.cos(), (x,), (x,))
        found.append(func.vmap(func.grad(lambda v: v**2))(tangent))
    yield found
    pulls = [func.vjp(lambda v, k=k: v**k, x)[1] for k in (2, 3, 4)]
    found = [func.vmap(pull)(torch.eye(3) * 1) for pull in pulls]
    yield found, [pull(x) for pull in pulls]


@pytest.mark.parametrize("grad", [False, True])
def test_numbers_are_used_again(grad: bool) -> None:
    func = torchshim.func
    w, data = torchshim.zeros(3) + 0, torchshim.rand(5, 3) + 0
    if grad:  # may be differentiated through an earlier level
        w.requires_grad_()
    base = local.rec.level_base
    for _ in range(10):
        found = func.vmap(func.grad(lambda w, x: (w @ x - 1) ** 2), (None, 0))(w, data)
        w = w - 0.1 * found.mean(0)
    assert local.rec.last_level == base + (20 if grad else 2)
    w.sum().item()
