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


# `r(...)` requires grad, but PyTorch has no formula for that operand.
FIXED = """
F.soft_margin_loss(torch.ones(2), r(2))
F.soft_margin_loss(r(2), r(2) * 2, reduction='none')
F.binary_cross_entropy(r(2) / 2, torch.ones(2), r(2))
F.binary_cross_entropy_with_logits(torch.ones(2), torch.ones(2), r(2))
F.binary_cross_entropy_with_logits(torch.ones(2), torch.ones(2), None, pos_weight=r(2))
F.multilabel_soft_margin_loss(r(2, 2), torch.ones(2, 2), r(2))
F.nll_loss(r(2, 3), i, r(3))
F.nll_loss(r(3), i[0], r(3))
F.nll_loss(r(2, 3, 4), torch.ones(2, 4).long(), r(3))
F.cross_entropy(torch.ones(2, 3), i, r(3))
F.cross_entropy(torch.ones(2, 3), i, r(3), label_smoothing=0.1)
F.cross_entropy(torch.ones(2, 3), torch.ones(2, 3), r(3))
F.multi_margin_loss(r(2, 3), i, weight=r(3))
F.batch_norm(torch.ones(2, 3), r(3), torch.ones(3))
F.batch_norm(r(2, 3), torch.ones(3), r(3), training=True)
F.instance_norm(torch.ones(2, 3, 4), r(3), torch.ones(3))
F.instance_norm(torch.ones(2, 3, 4), torch.ones(3), r(3), use_input_stats=False)
F.fractional_max_pool2d(torch.ones(1, 1, 5, 5), 2, 2, _random_samples=r(1, 1, 2) / 2)
F.fractional_max_pool3d(torch.ones(1, 1, 5, 5, 5), 2, 2, _random_samples=r(1, 1, 3) / 2)
torch.linalg.pinv(torch.eye(2), r(1)[0])
torch.linalg.pinv(torch.eye(2), atol=r(1)[0], hermitian=True)
""".strip().split("\n")


@case.over(*FIXED)
def of_fixed_operands(torch, line):
    def r(*shape):
        return torch.ones(shape, requires_grad=True)

    names = {**scope(torch), "r": r}
    with torch.no_grad():
        yield attempt(eval, line, names)
    yield attempt(eval, line, names)


@case(warnings=False).over(pool=["adaptive_avg_pool", "adaptive_max_pool"], n=[1, 2, 3])
def of_windows_of_nothing(torch, pool, n):
    function = getattr(torch.nn.functional, f"{pool}{n}d")
    x = torch.ones((2, 3, 4, 5, 2)[: n + 2], requires_grad=True)
    for sizes in (0, (2, 0, 1)[3 - n :] if n > 1 else (0,)):
        for input in (x, x[0], x[:0]):
            y = function(input, sizes)
            yield y, attempt(y.sum().backward)
        given = (x.detach(),)
        yield torch.func.jvp(lambda x, to=sizes: function(x, to), given, given)


@case
def unpacked_integers(torch):
    """Hooks that give integers in the place of a leaf, of a number, and of a result."""

    def gradient(function):
        x = torch.ones(3, requires_grad=True)
        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(lambda x: x, lambda x: x.to(torch.int8)):
            y = function(x).sum()
        y.backward()
        return x.grad

    yield attempt(gradient, torch.sin)
    yield attempt(gradient, lambda x: x * torch.ones(3, requires_grad=True))
    yield gradient(lambda x: x * torch.arange(3)), gradient(torch.exp)
