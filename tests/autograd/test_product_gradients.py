"""Gradients of products, each of which is differentiated by itself."""

from __future__ import annotations

from tests.oracle import attempt, case

PRODUCTS = {
    "mul": lambda torch, a, b: a * b,
    "mul, twice": lambda torch, a, b: (a * b) * a,
    "div": lambda torch, a, b: a / b,
    "mm": lambda torch, a, b: a @ b,
    "bmm": lambda torch, a, b: torch.bmm(a[None], b[None]),
    "mv": lambda torch, a, b: a @ b[0],
    "dot": lambda torch, a, b: a[0] @ b[0],
    "outer": lambda torch, a, b: torch.outer(a[0], b[0]),
    "linear": lambda torch, a, b: torch.nn.functional.linear(a, b),
    "addmm": lambda torch, a, b: torch.addmm(a, a, b),
    "conv": lambda torch, a, b: torch.conv2d(a[None, None], b[None, None]),
    "atan2, of products": lambda torch, a, b: torch.atan2(a * b, b),
}


@case.over(name=list(PRODUCTS), read=[False, True])
def one_after_the_other(torch, name, read):
    """Each has nodes of its own, which use up what they saved."""
    for order in ((0, 1, 0), (1, 0, 1), (1, 1)):
        for dropped in (False, True):
            for _ in range(2):  # what was met before is repeated
                a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
                b = torch.tensor([[0.5, 1.5], [2.0, 1.0]], requires_grad=True)
                out = PRODUCTS[name](torch, a, b).sum()
                found = torch.autograd.grad(out, [a, b], create_graph=True)
                if read:
                    found[0].tolist()
                for k in order:
                    value = found[k].square()
                    if dropped:
                        value.register_hook(lambda grad: grad * 0)
                    yield attempt(value.sum().backward), a.grad, b.grad


NODES = {
    "conv1d": ((1, 2, 5), (3, 2, 2), lambda F, x, w, b: F.conv1d(x, w, b)),
    "conv_transpose1d": ((1, 2, 5), (2, 3, 2), lambda F, *xs: F.conv_transpose1d(*xs)),
    "batch_norm": (
        (4, 3),
        (3,),
        lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True),
    ),
    "layer_norm": ((4, 3), (3,), lambda F, x, w, b: F.layer_norm(x, [3], w, b)),
    "group_norm": ((4, 3), (3,), lambda F, x, w, b: F.group_norm(x, 1, w, b)),
    "instance_norm": (
        (4, 3, 5),
        (3,),
        lambda F, x, w, b: F.instance_norm(x, None, None, w, b),
    ),
}


@case(atol=1e-5).over(node=list(NODES), power=[1, 2])
def gradients_of_one_node(torch, node, power):
    """The bias's has a history, as PyTorch's node holds the others."""
    first, second, function = NODES[node]
    x, w, b = (
        torch.rand(shape, dtype=torch.float64, requires_grad=True)
        for shape in (first, second, (3,))
    )
    for _ in range(2):
        y = function(torch.nn.functional, x, w, b)
        y = y if power == 1 else y * y
        grads = torch.autograd.grad(y.sum(), (x, w, b), create_graph=True)
        yield [g.requires_grad for g in grads]
        if grads[-1].requires_grad:
            total = (grads[-1] * torch.arange(3)).sum()
            yield torch.autograd.grad(total, (x, w, b), allow_unused=True)


@case
def gradients_of_sums_without_nan(torch):
    """They have the history of what arrives alone."""
    for squared in (False, True, False):
        x = torch.tensor([[1.0, float("nan")], [2.0, 3.0]], requires_grad=True)
        y = torch.nansum(x, 0)
        (g,) = torch.autograd.grad(
            (y * y if squared else y).sum(), x, create_graph=True
        )
        yield g.requires_grad
        if squared:
            yield torch.autograd.grad(g.sum(), x)
