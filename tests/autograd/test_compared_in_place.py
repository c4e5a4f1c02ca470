"""Comparisons and logical functions in place: a gradient of zeros, or none at all."""

from __future__ import annotations

from tests.oracle import attempt, case

COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
LOGICAL = ["and", "or", "xor", "not"]


def node(tensor):
    return tensor.grad_fn and tensor.grad_fn.name()


@case.over(*COMPARISONS)
def comparisons(torch, name):
    x = torch.randn(3, requires_grad=True)
    z = torch.randn(3, requires_grad=True)
    for other in (1, 0.5, z, z.detach(), z * 1):
        y = x * 2
        yield getattr(y, f"{name}_")(other), len(y.grad_fn.next_functions)
        yield torch.autograd.grad(y.sum(), [x, z], allow_unused=True)
    y = torch.ones(3)
    getattr(y, f"{name}_")(z)
    yield y, torch.autograd.grad((y * y).sum(), z)
    with torch.no_grad():
        y = x * 2
        getattr(y, f"{name}_")(z)
        yield node(y), getattr(torch.ones(3), f"{name}_")(z)
    yield attempt(getattr(x, f"{name}_"), 1), attempt(getattr(x[:2], f"{name}_"), 1)
    yield attempt(getattr((x * 1).unbind()[0], f"{name}_"), 1)


@case.over(*LOGICAL)
def logical_functions(torch, name):
    x = torch.tensor([1.0, 0.0, 2.0], requires_grad=True)
    others = () if name == "not" else (torch.tensor([1.0, 0.0, 0.0]),)
    for _ in range(3):  # recorded, and found again
        y = x * 2
        kept = y.sin()
        product = y * 3
        getattr(y, f"logical_{name}_")(*others)
        yield y, y._version, product
        yield torch.autograd.grad((y * product).sum(), x)
        yield attempt(kept.sum().backward)
    for t in (x, x[:2], x[1]):
        some = [other[: t.numel()].view(t.shape) for other in others]
        yield getattr(t, f"logical_{name}_")(*some), t._version, node(t), t.is_leaf
    base = x * 1
    part = base[:2]
    getattr(part, f"logical_{name}_")(*[other[:2] for other in others])
    yield base, part, torch.autograd.grad((base * base).sum(), x)
    with torch.inference_mode():
        apart = torch.ones(3)
    yield attempt(getattr(apart, f"logical_{name}_"), *others)


@case
def of_pieces_and_other_dtypes(torch):
    x = torch.arange(4.0, requires_grad=True)
    y = x * x
    part = y[:2]
    part.ge_(1)
    yield y, part, torch.autograd.grad((y * 3).sum(), x)
    wide = torch.ones(4, dtype=torch.float64)
    wide.eq_(x)
    yield wide, torch.autograd.grad(wide.sum(), x)
    yield (x * 1).to(torch.complex64).eq_(1)
    yield [(x * 1).not_equal_(1), (x * 1).less_(1), (x * 1).greater_equal_(1)]


@case(warnings=False)  # PyTorch warns of a module that its forward mode imports
def twice_in_hooks_and_in_transforms(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * x
    y.le_(x)
    [first] = torch.autograd.grad((y * x).sum(), x, create_graph=True)
    yield first, torch.autograd.grad(first.sum(), x)
    y = x * 2
    y.register_hook(print)
    y.eq_(2).register_hook(print)
    y.sum().backward()
    yield x.grad

    def compared(x):
        return ((x * 2).gt_(1) * x).sum()

    def negated(x):
        y = x * 2
        y.logical_not_()
        return y.sum()

    for f in (compared, negated):
        yield torch.func.grad(f)(torch.ones(3))
    yield torch.func.jvp(compared, (torch.ones(3),), (torch.ones(3),))
    wide = torch.randn(4, dtype=torch.float64, requires_grad=True)
    yield torch.autograd.gradcheck(
        lambda t: (t * 1).gt_(t.detach() - 1), wide, check_forward_ad=True
    )
