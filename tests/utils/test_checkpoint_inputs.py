"""Checkpointed functions whose inputs are something else by the backward."""

from __future__ import annotations

from tests.oracle import attempt, case
from tests.utils.test_checkpoint import leaf, modules

CHANGES = {
    "detached": lambda x: x.detach_(),
    "off": lambda x: x.requires_grad_(False),
    "on": lambda x: x.requires_grad_(),
}


@case.over(change=list(CHANGES), by_hook=[False, True], tracked=[False, True])
def role(torch, change, by_hook, tracked):
    """A leaf is kept itself: the second run finds it as it is by then."""
    checkpoint = modules(torch).checkpoint
    x = torch.tensor([3.0, 4.0], requires_grad=tracked)
    w = leaf(torch, 0.5, 0.25)
    y = checkpoint(lambda x: (x * w).sin() * x, x, use_reentrant=False)

    def hook(grad):
        CHANGES[change](x)

    if by_hook:
        y.register_hook(hook)
    else:
        CHANGES[change](x)
    yield attempt(y.sum().backward), x.grad, w.grad


@case.over(reentrant=[False, True], dtype=["float64", "bfloat16"])
def dtype(torch, reentrant, dtype):
    checkpoint = modules(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    y = checkpoint(lambda x: x.exp() * x, x, use_reentrant=reentrant)
    x.data = x.data.to(getattr(torch, dtype))
    yield attempt(y.sum().backward), x.grad, x.dtype


@case.over(tracked=[False, True])
def given_twice(torch, tracked):
    checkpoint = modules(torch).checkpoint
    x, w = torch.tensor([3.0, 4.0], requires_grad=tracked), leaf(torch, 0.5, 0.25)

    def product(a, b):
        print(a is b)
        return a.sin() * b * w

    checkpoint(product, x, x, use_reentrant=False).sum().backward()
    return x.grad, w.grad
