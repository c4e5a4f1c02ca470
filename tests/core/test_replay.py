"""Walks with Python code in them: what is repeated, and what is walked anew."""

from __future__ import annotations

import pytest

import torchshim as torch
from torchshim._core import jumps, walk


@pytest.fixture
def visited(monkeypatch):
    """How many events walks have visited one by one since this was last asked."""
    found = []
    differentiate = walk.Walk.differentiate

    def counting(self, recording, event):
        found.append(event)
        differentiate(self, recording, event)

    monkeypatch.setattr(walk.Walk, "differentiate", counting)

    def count():
        seen = len(found)
        found.clear()
        return seen

    return count


def chain(x, hook):
    for _ in range(10):
        x = x * 1.5
    x.register_hook(hook)
    for _ in range(10):
        x = x.sin()
    return x.sum()


def test_a_walk_with_a_hook_is_repeated(visited):
    x = torch.ones(3, requires_grad=True)
    calls = []

    def step(hook):
        x.grad = None
        chain(x, hook).backward()
        x.grad.tolist()
        return visited()

    def double(g):
        calls.append(1)
        return g * 2

    rounds = [step(double) for _ in range(4)]
    assert rounds[0] >= 21 and rounds[-2:] == [0, 0]
    before = x.grad.tolist()
    # From where the code does something else the rest is walked, and then repeated.
    rounds = [step(lambda g: g * 2 + 0 * g.exp()) for _ in range(4)]
    assert rounds[0] == 9 and rounds[-2:] == [0, 0]
    assert x.grad.tolist() == before
    # What reads something starts a recording of its own, where the rest goes on.
    rounds = [step(lambda g: calls.append(g.sum().item())) for _ in range(4)]
    assert rounds[0] >= 9 and rounds[-2:] == [0, 0]
    assert step(double) >= 9
    assert len(calls) == 9


def test_a_walk_whose_code_reads_gradients_is_repeated(visited):
    read = []

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            read.append(grad.abs().max().item())
            return grad * w * 2.0 ** (read[-1] < 0), grad * x

    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda p: read.append(p.grad.sum().item()))

    def step(factor):
        y = (x * w).sin()
        y.register_hook(lambda g: g * factor if read.append(g.sum().item()) else None)
        z = Scale.apply(y, w) + y.cos()
        z.register_hook(lambda g: factor if g.norm().item() < 0 else None)
        x.grad = w.grad = None
        (z * x).sum().backward()
        found = read[:], x.grad.tolist(), w.grad.tolist()
        read.clear()
        return found, visited()

    rounds = [step(1.0) for _ in range(4)]
    assert all(found == rounds[0][0] for found, _ in rounds)
    assert [n for _, n in rounds][-2:] == [0, 0]
    # Read, but given back as something else: from there on it is walked.
    handle = x.register_hook(lambda g: torch.ones(3) if g.sum().item() else None)
    for _ in range(3):
        assert step(1.0)[0][1] == [1.0, 1.0, 1.0]
    handle.remove()
    assert step(1.0)[0] == rounds[0][0]


def test_a_walk_with_hooks_of_leaves_is_repeated(visited):
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    a.register_hook(lambda g: g * 2)

    def double(p):
        p.grad.mul_(2)

    b.register_post_accumulate_grad_hook(double)
    for _ in range(4):
        a.grad = b.grad = None
        (a * b).sin().sum().backward()
        assert a.grad.tolist() == b.grad.tolist()
        rounds = visited()
    assert rounds == 0


def test_a_walk_with_custom_functions_is_repeated(visited):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = torch.ones(3, requires_grad=True)
    for _ in range(4):
        x.grad = None
        Scale.apply(Scale.apply(x).exp()).sum().backward()
        x.grad.tolist()
        rounds = visited()
    assert rounds == 0


def test_a_gradient_that_was_there_before_is_given_or_not():
    class Given(torch.autograd.Function):
        some = True

        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x)
            return x * w

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return (x if Given.some else None), None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        for Given.some in (True, True, True, False):
            x.grad = None
            Given.apply(x * 2.0, x).sum().backward()
            found = None if x.grad is None else x.grad.tolist()
            assert found == ([4.0, 8.0] if Given.some else None)


def test_many_waiting_gradients_are_not_kept(visited, monkeypatch):
    monkeypatch.setattr(jumps, "_WAITING_BOUND", 50)
    x = torch.ones(2, requires_grad=True)

    def step():
        x.grad = None
        parts = [x * k for k in range(20)]
        for part in parts:
            part.register_hook(lambda g: None)
        torch.stack(parts).sum().backward()
        return x.grad.tolist()

    rounds = [(step(), visited()) for _ in range(3)]
    assert all(grad == [190.0, 190.0] for grad, _ in rounds)
    assert rounds[-1][1] >= 20


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_walks_that_create_a_graph_are_repeated(visited):
    x = torch.linspace(-1, 1, 5).requires_grad_()
    w = torch.tensor([0.5, -2.0], requires_grad=True)
    for _ in range(5):
        u = (x * w[0]).tanh() * w[1]
        (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        (ddu,) = torch.autograd.grad(du.sum(), x, create_graph=True)
        w.grad = None
        loss = ((ddu + du * u) ** 2).mean()
        loss.backward(create_graph=True)
        x.grad = None
        (w.grad**2).sum().backward(inputs=[x])
        assert x.grad is not None
        found = [*x.grad.tolist(), *w.grad.tolist()]
        x.grad = None
        rounds = visited()
    assert rounds == 0
    assert len(found) == 7


def test_a_walk_with_a_tensors_hook_is_not_repeated_for_a_nodes_hook():
    def gradient(hang):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        hang(y)
        y.sum().backward()
        return x.grad.tolist()

    for _ in range(3):
        assert gradient(lambda y: y.register_hook(lambda g: g * 2)) == [4.0, 4.0]
    for _ in range(3):
        hang = lambda y: y.grad_fn.register_prehook(lambda g: (g[0] * 3,))  # noqa: E731
        assert gradient(hang) == [6.0, 6.0]


def test_a_walk_with_hooks_of_nodes_is_repeated(visited):
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    linear = torch.nn.Linear(3, 3)
    seen = []
    linear.register_full_backward_hook(lambda m, i, o: seen.append(len(i) + len(o)))

    def step(read, close):
        y = (x * 3.0).sin()
        y.grad_fn.register_prehook(lambda g: (g[0] * 2.0,))
        y.grad_fn.register_hook(lambda i, o: seen.append(read(i[0])))
        z = linear(y)
        if close:
            z.tolist()
        x.grad = None
        (z * z.exp()).sum().backward()
        return x.grad.tolist(), visited()

    for close in (False, True):
        rounds = [step(lambda g: 0, close) for _ in range(5)]
        assert all(grad == rounds[0][0] for grad, _ in rounds)
        assert [n for _, n in rounds][-2:] == [0, 0]
        found, n = step(lambda g: g.sum().item(), close)
        assert found == rounds[0][0] and n > 0
    assert seen.count(2) == 12
