"""Hooks that change what hangs on the node that they are called for."""

from __future__ import annotations

from tests.oracle import case


def pieces(torch, n):
    return (torch.ones(4, requires_grad=True) * 2).split(n)


@case.over(read=[False, True])
def gradients_retained_by_hooks(torch, read):
    for first, second in ((0, 1), (1, 0), (0, 0), (0, 3)):
        for replaced in (None, 5):
            for _ in range(2):  # what was met before is repeated
                every = pieces(torch, 1)
                out = (every[0] * every[1] * every[2]).sum()
                every[first].register_hook(
                    lambda grad, kept=every[second]: kept.retain_grad()
                )
                if replaced is not None:
                    every[second].register_hook(lambda g: None if g is None else g * 5)
                if read:
                    out.item()
                out.backward(retain_graph=True)
                yield [piece.grad for piece in every]
                out.backward()
                yield [piece.grad for piece in every]


@case
def retained_by_hooks_of_nodes(torch):
    for register in ("register_prehook", "register_hook"):
        y = torch.ones(4, requires_grad=True) * 2
        getattr(y.grad_fn, register)(lambda *grads, y=y: y.retain_grad())
        for _ in range(2):
            y.sum().backward(retain_graph=True)
            yield y.grad


@case
def order_of_hooks_on_retained_gradients(torch):
    for retained in (0, 1, None):
        log = []
        every = pieces(torch, 2)
        if retained is not None:
            every[retained].retain_grad()
        for k in (1, 0, 1):
            every[k].register_hook(lambda grad, k=k, log=log: log.append(k))
        (every[0] * every[1]).sum().backward()
        yield log


@case
def removed_by_hooks(torch):
    a, b = pieces(torch, 2)
    b.retain_grad()
    handles = [b.register_hook(lambda grad: grad * 7)]
    a.register_hook(lambda grad: handles[0].remove())
    out = (a * b).sum()
    for _ in range(2):
        out.backward(retain_graph=True)
        yield b.grad
