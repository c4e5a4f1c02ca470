"""Views of resized memory: what they are views of, what they show, their versions."""

from __future__ import annotations

from tests.oracle import attempt, case

MADE = {
    "part": lambda b: [b[1:3]],
    "whole": lambda b: [b.view(-1)],
    "split": lambda b: [b.split(2)[1]],
    "of a view": lambda b: [b[1:], b[1:][1:3]],
    "steps": lambda b: [b[::2]],
    "transposed": lambda b: [b.view(2, 2).t()],
    "expanded": lambda b: [b[:1].expand(3)],
    "one": lambda b: [b[1]],
    "detached": lambda b: [b[1:].detach()],
    "of detached": lambda b: [(d := b[1:].detach()), d[1:]],
    "data": lambda b: [b[1:].data],
}


def facts(tensors):
    for t in tensors:
        base = [i for i, other in enumerate(tensors) if other is t._base]
        memory = t.untyped_storage()
        yield (t.clone(), t.stride(), t.storage_offset(), t._version, t._is_view())
        yield base, memory.nbytes(), memory.data_ptr() == tensors[0].data_ptr()
        yield t.requires_grad, t.is_leaf, type(t.grad_fn).__name__


def sized(torch, tensor, size, how):
    if how == "resize_":
        tensor.resize_(size)
    elif how == "resize_as_":
        tensor.resize_as_(torch.empty(size))
    elif how == "as_strided_":
        tensor.as_strided_(size, torch.empty(size).stride(), 0)
    else:
        torch.add(torch.full(size, 2.0), 1, out=tensor)


SIZES = [(0,), (1,), (2,), (1, 2), (3,), (2, 2), (6,), ()]


@case.over(made=list(MADE), how=["resize_", "resize_as_", "out", "as_strided_"])
def stays_a_view(torch, made, how):
    for size in SIZES:
        base = torch.arange(1.0, 5.0)
        views = MADE[made](base)
        tensors = [base, *views]
        if made == "expanded" and how == "out":
            continue  # PyTorch refuses elements that are one before it resizes them
        error = attempt(sized, torch, views[-1], size, how)
        view = views[-1]
        if view.numel() > 2 and how != "out":
            attempt(view.fill_, 7)
        yield error, *facts(tensors)
        yield attempt(view.mul_, 2)
        base[:1] = 5
        yield from facts([*tensors, view.view(view.shape)])
        yield attempt(view.view(view.shape).add_, 1)
        yield attempt(view.detach().add_, 1)
        yield from facts(tensors)


RESIZED = {
    "smaller": lambda torch, b, v: v.resize_(2),
    "longer": lambda torch, b, v: v.resize_(2, 2),
    "out": lambda torch, b, v: torch.add(torch.ones(1), 1, out=v),
    "longer out": lambda torch, b, v: torch.add(torch.ones(4), 1, out=v),
    "strided": lambda torch, b, v: v.as_strided_((2, 2), (2, 1)),
    "base": lambda torch, b, v: b.resize_(2, 3),
    "smaller base": lambda torch, b, v: b.resize_(5),
    "base's shape": lambda torch, b, v: b.unsqueeze_(0),
    "longer base": lambda torch, b, v: b.resize_(8)[6:].zero_(),
    "and back": lambda torch, b, v: b.resize_(2).resize_(6),
}


@case.over(how=list(RESIZED), through=["view", "base", "other"])
def histories_of_resized(torch, how, through):
    w = torch.tensor(2.0, requires_grad=True)
    base = torch.arange(1.0, 7.0)
    view, other = base[1:4], base[2:5]
    RESIZED[how](torch, base, view)
    tensors = [base, view, other]
    yield from facts(tensors)
    {"view": view, "base": base, "other": other}[through].mul_(w)
    for _ in range(2):
        yield from facts(tensors)
        for t in tensors:
            weights = torch.arange(1.0, t.numel() + 1).view(t.shape)
            total = (t * weights).sum()
            yield torch.autograd.grad(total, w, retain_graph=True, allow_unused=True)
        view.add_(1)


@case
def in_a_loop(torch):
    """A view that is resized in every turn goes on from its base."""
    base = torch.zeros(6)
    view = base[1:3]
    w = torch.tensor(1.0, requires_grad=True)
    for turn in range(6):
        torch.add(torch.ones(turn % 3 + 1), turn, out=view)
        view.resize_(4 - turn % 2)
        yield view, base, view._version, view._base is base
        (base * w).sum().backward()
        yield w.grad
        base = base.clone()
        view = base[1:3]


OUTS = """
    exp(a); add(a, a); sum(m, 0); cumsum(m, 0); mm(m, m); cat([a, a]); stack([a, a])
    index_select(a, 0, i); tril(m); clamp(a, 1, 2); zeros(4); ones(4); full((4,), 2.0)
    empty(4); arange(4); linspace(0, 1, 4); eye(2); rand(4); randn(4); bernoulli(a / 9)
    normal(a, a); normal(1.0, a); where(a > 1, a, a); dot(a, a)
    masked_select(a, a > 1); take_along_dim(a, i, 0); chain_matmul(m)
    renorm(m, 2, 0, 1); select_copy(m, 0, 0); narrow_copy(a, 0, 1, 2)
    as_strided_copy(m, (2,), (1,))
"""


@case.over(call=[c.strip() for c in OUTS.replace("\n", ";").split(";") if "(" in c])
def versions_of_out(torch, call):
    a, i = torch.arange(1.0, 5.0), torch.tensor([0, 1])
    m = a.view(2, 2)
    size = (0,)
    for _ in range(3):  # empty, resized, and of the result's size
        base = torch.zeros(9)
        for out in (torch.empty(size), base[1:8]):
            version = out._version
            names = {"torch": torch, "a": a, "m": m, "i": i, "out": out}
            eval(f"torch.{call[:-1]}, out=out)", names)
            yield out._version - version, out._is_view(), out._base is base, out.shape
        size = (7,) if size == (0,) else out.shape


@case
def positions_as_out(torch):
    out = torch.empty(3, dtype=torch.int64)
    found = torch.nonzero(torch.tensor([[0, 1], [1, 1]]), out=out)
    yield found is out, out, out.stride(), out._version
    base = torch.zeros(9, dtype=torch.int64)
    view = base[1:]
    torch.nonzero(torch.tensor([1, 0, 1]), out=view)
    yield view, view.stride(), view._base is base, base, base._version
    parts = [torch.empty(0), torch.empty(2)]
    torch.split_with_sizes_copy(torch.arange(4.0), [2, 2], out=parts)
    yield parts, [p._version for p in parts]
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.ones(3)
        yield torch.empty(3, out=x).clone(), x._version
        yield torch.empty(2, out=x).clone(), x._version
    finally:
        torch.use_deterministic_algorithms(False)


@case.over(of=["constant", "result", "view", "base of a view"], size=[1, 2, 8])
def saved_for_a_gradient(torch, of, size):
    """PyTorch's error names the new size, ours the one that was saved."""
    for function in ("mul", "add"):
        w = torch.tensor(2.0, requires_grad=True)
        x = torch.arange(4.0)
        if of != "constant":
            x = x * 1
        v = x[:2] if "view" in of else x
        y = getattr(v, function)(w).sum()
        resized = v if of == "view" else x
        if size == 2:
            resized.as_strided_((2,), (1,))
        else:
            resized.resize_(size)
        failed = None
        try:
            y.backward()
        except RuntimeError as error:
            failed = str(error).split("[")[0]
        yield failed, w.grad, x[:1]
