"""Results of transforms that are views of what the function was given."""

from __future__ import annotations

import pickle
import warnings

from tests.oracle import case

VIEWS = {
    "narrow": lambda t: t.narrow(1, 1, 2),
    "expanded": lambda t: t[:, :1].expand(3, 5),
    "diagonal": lambda t: t.diagonal(),
    "windows": lambda t: t.unfold(1, 2, 1),
    "column": lambda t: t[:, 1],
    "steps": lambda t: t[::2, ::2],
    "transposed": lambda t: t.T[1:],
}


def forward(torch, function, x):
    """Values and tangents. (PyTorch warns of a script when it first gives any.)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.func.jvp(function, (x,), (x,))


def read(result):
    """What is read of a result in several ways."""
    detached = result.detach()
    yield result, detached, detached[0], detached[-1], detached + 1
    yield result.numpy().tolist(), detached.numpy().tolist()
    yield detached[-1].numpy().tolist(), detached
    yield pickle.loads(pickle.dumps(result)).tolist()


@case.over(name=list(VIEWS))
def results(torch, name):
    view = VIEWS[name]
    x = torch.arange(12.0).reshape(3, 4)
    for give in (
        lambda: torch.func.vjp(view, x)[0],
        lambda: forward(torch, view, x)[0],
        lambda: torch.func.grad(lambda t: (t.sum(), view(t)), has_aux=True)(x)[1],
        lambda: torch.vmap(view)(x[None])[0],
    ):
        torch.testing.assert_close(give(), view(x), rtol=0, atol=0)
        yield from read(give())
        yield from give().detach()
    result, pull = torch.func.vjp(view, x)
    yield result.storage_offset(), pull(torch.ones_like(result))
    result.requires_grad_()
    yield torch.autograd.grad((result * result).sum(), result)
    result = torch.func.vjp(view, x)[0].detach()
    yield result.stride()
    if name not in ("expanded", "windows"):
        result.numpy()[-1] = 7
        yield result, result[-1], result.sum()


@case.over(name=list(VIEWS))
def arguments(torch, name):
    """What the function does with views that it is given."""
    seen = []

    def function(t):
        seen.append(t.detach().tolist())
        seen.append(t.detach()[-1].tolist())
        seen.append(t.stride())
        return t.sum()

    x = VIEWS[name](torch.arange(12.0).reshape(3, 4))
    torch.func.vjp(function, x)
    torch.func.grad(function)(x)
    forward(torch, function, x)
    yield seen
    yield from read(torch.func.vjp(lambda t: t, x)[0].contiguous())
    result = torch.func.vjp(lambda t: t, x)[0]
    yield pickle.loads(pickle.dumps(result)).tolist()
    yield torch.func.hessian(lambda t: (VIEWS["narrow"](t) ** 2).sum())(
        torch.arange(6.0).view(2, 3)
    )


@case.over(name=list(VIEWS))
def nested(torch, name):
    view = VIEWS[name]
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()

    def inner(t):
        value, pull = torch.func.vjp(view, t * t)
        return pull(value.sin())[0].sum() + value.sum(), value

    grads, value = torch.func.grad(inner, has_aux=True)(x)
    yield grads, value, torch.autograd.grad(value.sum() + grads.sum(), x)
    if name != "windows":  # PyTorch warns of its speed
        yield torch.vmap(torch.func.grad(lambda t: inner(t)[0]))(x.detach()[None])
