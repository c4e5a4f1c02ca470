"""Gradients that PyTorch lacks: of complex results, and of some in-place forms."""

from __future__ import annotations

from tests.oracle import attempt, case

# `c(...)` is complex and requires grad, `i` are indices.
COMPLEX = """
F.silu(c(2))
F.embedding(i, c(3, 2))
F.bilinear(c(2, 2), c(2, 3), c(2, 2, 3))
F.soft_margin_loss(c(2), c(2).detach())
torch.nan_to_num(c(2))
torch.select_scatter(c(2, 2), c(2).detach(), 0, 0)
torch.slice_scatter(c(2, 2).detach(), c(1, 2), 0, 0, 1)
c(2).scatter_reduce(0, i, c(2).detach(), 'sum')
torch.native_dropout(c(2), 0.5, True)
torch.ops.aten.native_dropout_backward(c(2), torch.tensor([True, False]), 2.0)
torch.geqrf(c(2, 2))
torch.normal(c(2), 1.0)
""".strip().split("\n")

IN_PLACE = """
F.silu(c(2) * 1, inplace=True)
(c(2) * 1).nan_to_num_()
(c(2) * 1).scatter_reduce_(0, i, c(2), 'sum')
""".strip().split("\n")


def scope(torch):
    def c(*shape):
        return torch.ones(shape, dtype=torch.complex64, requires_grad=True)

    F = torch.nn.functional
    return {"torch": torch, "F": F, "c": c, "i": torch.tensor([0, 0])}


@case.over(*COMPLEX)
def of_complex_results(torch, line):
    names = scope(torch)
    for _ in range(2):
        yield attempt(eval, line, names)
    if "normal" in line or "dropout(" in line:
        return
    with torch.no_grad():
        yield eval(line, names)


@case.over(*IN_PLACE)
def in_place_they_are_there(torch, line):
    result = eval(line, scope(torch))
    yield result.grad_fn.name(), result.detach()


@case.over("acosh", "asinh", "atanh", "arccosh", "arcsinh", "arctanh")
def of_inverse_functions_in_place(torch, name):
    x = torch.tensor([0.25, 0.5], requires_grad=True)
    for _ in range(2):
        y = getattr(x * 1, f"{name}_")()
        yield y.grad_fn.name(), attempt(y.sum().backward), x.grad
    yield torch.autograd.grad(getattr(x, name)().sum(), x)
    with torch.no_grad():
        yield getattr(x * 1, f"{name}_")()
