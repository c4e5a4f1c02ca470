"""Views and their bases: who requires grad, and what PyTorch refuses after writes."""

from __future__ import annotations

import numpy

from tests.autograd.test_threads import by_thread
from tests.oracle import attempt, case


def facts(tensor):
    return tensor.requires_grad, tensor.is_leaf


def three(torch):
    """Something that requires grad, a base that does not, two views of it."""
    base = torch.zeros(3)
    return torch.ones(2, requires_grad=True), base, base[:2], base[1:]


@case
def follow_their_base(torch):
    base = torch.ones(3)
    with torch.no_grad():
        quiet = base[:2]
    view = base[1:]
    yield facts(quiet), facts(view)
    base.requires_grad_()
    yield facts(quiet), facts(view), facts(base.detach()), view.grad_fn
    yield attempt(view.sum().backward), base.grad, view.grad
    yield attempt(torch.autograd.grad, view * 2, view, torch.ones(2))
    yield torch.autograd.grad((view * 2).sum(), view, allow_unused=True)
    tracked = base.view(3)
    base.requires_grad_(False)
    yield facts(quiet), facts(view), facts(tracked)


@case
def require_grad_themselves(torch):
    base = torch.ones(2)
    view = base[:1]
    view.requires_grad_()
    with torch.no_grad():
        quiet = view[:1]
    yield facts(base), facts(view), facts(quiet)
    base.requires_grad_()
    quiet.requires_grad_()
    (quiet * 3).sum().backward()
    yield quiet.grad, view.grad, base.grad
    view.requires_grad_(False)
    yield facts(view)
    base.requires_grad_(False)
    yield facts(view), facts(quiet)
    base = torch.ones((), requires_grad=True)
    with torch.no_grad():
        quiet = base.view(1)
    yield attempt(quiet.backward)
    quiet.requires_grad_()
    quiet.backward()
    yield quiet.grad, base.grad


@case
def of_inference_mode(torch):
    x = torch.ones(2, requires_grad=True)
    for base in (x, x * 2, torch.ones(2)):
        with torch.inference_mode():
            view = base[:1]
            yield facts(view)
        base.requires_grad_()
        yield facts(view), attempt(view.mul_, 2), view * 2


@case
def know_of_a_history_late(torch):
    x, base, view, other = three(torch)
    view.mul_(x)
    yield other.requires_grad, attempt(other.mul_, 2)
    yield other.is_leaf, type(other.grad_fn).__name__, attempt(other.mul_, 2)
    x, base, view, other = three(torch)
    base[:2] = x
    yield attempt(view.mul_, 2)
    view[0] = 5.0
    yield view, base
    x, base, view, other = three(torch)
    view.mul_(x)
    other * 1
    yield other.mul_(2)


@case
def of_a_detached_view(torch):
    x = torch.ones(3, requires_grad=True)
    base = torch.arange(4.0).reshape(2, 2)[0]
    alias = base.detach()
    alias *= x[:2]
    yield alias, base, alias.grad_fn is None
    (alias * 2).sum().backward(retain_graph=True)
    yield x.grad
    piece = alias[:1]
    piece.mul_(x[1:2])
    yield piece, alias, base
    print(alias.tolist())
    alias.sum().backward()
    yield x.grad


@case.over("no_grad", "split", "unbind", "iter")
def outdated(torch, how):
    x = torch.ones(2, requires_grad=True)
    for base in (x * 2, torch.zeros(2), torch.ones(2).requires_grad_()):
        yield from outdated_views(torch, how, base, x)


def outdated_views(torch, how, base, x):
    with torch.set_grad_enabled(how != "no_grad"):
        if how == "split":
            view = base.split(1)[0]
        elif how == "unbind":
            view = base.unbind()[0][None]
        elif how == "iter":
            view = next(iter(base))
        else:
            view = base[:1]
    if base.is_leaf and base.requires_grad:
        with torch.no_grad():
            base.mul_(3)
    else:
        base.mul_(x)
    yield view.requires_grad, attempt(lambda: view.is_leaf)
    yield attempt(lambda: view.grad_fn), attempt(lambda: view * 2)
    yield view.detach(), view.tolist(), repr(view)
    yield attempt(view.sum), attempt(view.mul_, 2), attempt(lambda: view[...])
    with torch.no_grad():
        yield (view * 2).tolist()
    yield base * 2


@case
def outdated_views_as_roots_and_targets(torch):
    x = torch.tensor([-1.0, -0.75, -0.5], requires_grad=True)

    def made():
        base = torch.arange(6.0).reshape(2, 3)
        view = base.split(1)[1]
        base[torch.tensor([0, 1])] = x
        return base, view

    base, view = made()
    one = torch.ones(1, 3)
    yield view.requires_grad, view.detach().clone(), view.grad
    yield attempt(view.backward, one), attempt(torch.autograd.grad, view, x, one)
    yield attempt(torch.autograd.grad, base.sum(), view)
    yield attempt(base.sum().backward, inputs=[view])
    yield attempt(view.register_hook, print)
    base.sum().backward()
    yield x.grad


@case
def history_is_looked_at_first(torch):
    piece = torch.ones(3).split(1)[0]
    other = torch.ones((), dtype=torch.float64, requires_grad=True)
    leaf = torch.ones(3, requires_grad=True)
    far, few = torch.tensor([5]), torch.tensor([True])
    for index in (torch.tensor([0]), far, torch.tensor([False, True])):
        yield attempt(piece.__setitem__, index, other)
        yield attempt(piece.__setitem__, index, other.detach())
    for target in (leaf, leaf[:2], piece):
        yield attempt(target.__setitem__, far, 1.0)
        yield attempt(target.__setitem__, few, 1.0)
        yield attempt(target.index_put_, (far,), other.float())
        yield attempt(target.add_, other.float().expand(7))
    with torch.no_grad():
        yield attempt(leaf.__setitem__, far, 1.0)
    yield piece, leaf


@case
def one_of_several(torch):
    base = torch.ones(3)
    first, second = base.chunk(2)
    second.requires_grad_()
    yield attempt(second.add_, 1), first.add_(1), base.add_(1)
    yield attempt(second.view(1).add_, 1)
    second.requires_grad_(False)
    yield second.add_(1)
    base.requires_grad_()
    yield attempt(second.add_, 1), attempt(first.__setitem__, 0, 1.0)
    pieces = torch.ones(2, 3, requires_grad=True).clone().split(1)
    yield attempt(pieces[1].__setitem__, (slice(None), 0), 1.0)
    yield attempt(pieces[1].mul_, 2)


@case
def of_memory_that_numpy_writes(torch):
    x = torch.arange(4.0).reshape(2, 2).clone()
    array = x.detach().numpy()
    x.requires_grad_()
    flat = x.reshape(-1)
    diagonal = x.diagonal()
    yield flat.requires_grad, diagonal.requires_grad
    array[...] = 5.0
    yield flat.exp(), diagonal * 2
    (flat.sum() + (diagonal * 3).sum()).backward()
    yield x.grad
    y = torch.ones(2, requires_grad=True) * 2
    array = y.detach().numpy()
    z = y[:1].tanh_()
    array[0] = 0.5
    yield z * 2, y * 2


@case
def of_a_base_that_no_longer_requires_grad(torch):
    x = torch.ones(4, requires_grad=True)
    view = x.view(2, 2)
    x.requires_grad_(False)
    x[1:].zero_()
    yield view, view.requires_grad, type(view.grad_fn).__name__
    yield view * 2, x.requires_grad


@case
def written_by_assignment(torch):
    """The nodes of `x[index] = value`, by the shapes of both."""
    for index in (..., slice(None), None, True, (...,), 0, slice(0, 3)):
        for shape in ((), (1,), (3,)):
            for size in ((), (1,), (3,)):
                value = torch.full(size, 2.0, requires_grad=True)
                x = torch.zeros(shape) + 1
                if attempt(x.__setitem__, index, value) is None:
                    node, edge = x.grad_fn, x.grad_fn.next_functions[1][0]
                    yield node.name(), type(node).__name__, edge.name()


@case
def copied_onto_themselves(torch):
    wide = torch.tensor(0.5).expand(2)
    yield wide.copy_(wide), wide._version, attempt(wide.add_, wide)
    yield wide.detach().copy_(wide), wide._version, attempt(wide[:1].copy_, wide[1:])
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.copy_(y)
    y.sum().backward()
    yield y.grad_fn.name(), y._version, x.grad


@case
def results_written_through_views(torch):
    """The node of an in-place operator saves its result, which is in the base."""
    for index in (..., slice(0, None), 0):
        for held in (False, True):
            for read in (False, True):
                x = torch.ones(2, requires_grad=True)
                y = x * 3
                view = y[index]
                view.tanh_()
                if not held:
                    del view
                if read:
                    y.tolist()
                with torch.no_grad():
                    y.sub_(1)
                yield attempt(y.sum().backward), x.grad


@case
def of_numpy_memory_whose_base_leaves(torch):
    x = torch.ones(2, 3, requires_grad=True)
    array = x.detach().numpy()
    wide = x.expand(2, 2, 3)
    x.requires_grad_(False)
    array[0] = 7
    yield wide, wide.requires_grad, attempt(wide.sum().backward), x.grad


@case
def of_numpy_memory_written_before_a_view_is(torch):
    x = torch.ones(2, 2)
    array = x.numpy()
    array[...] = 5.0
    first, _ = x.split(1)
    first[:, ::2].zero_()
    yield x, array.tolist()
    array[...] = 6.0
    x[:1][:, 1:].add_(1)
    yield x, array.tolist()


@case
def written_to_before_their_base_requires_grad(torch):
    for writer in (None, "view", "base"):
        for how in ("index", "no_grad", "unbind"):
            base = torch.ones(1)
            with torch.set_grad_enabled(how != "no_grad"):
                view = base.unbind()[0] if how == "unbind" else base[...]
            if writer:
                (view if writer == "view" else base).add_(1)
            base.requires_grad_()
            yield view.requires_grad, attempt(lambda v=view: (v.is_leaf, v * 2))
            yield attempt(lambda v=view: (v * 2).sum().backward()), base.grad


@case
def of_a_base_that_is_detached(torch):
    for written in (False, True):
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        view = y[...]
        if written:
            view.mul_(3)
        y.detach_()
        yield view.requires_grad, view.is_leaf, y.requires_grad
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    a, b = y[0:1], y[...]
    a.exp_()
    b[1:].tanh_()
    total = y.sum() + a.sum()
    yield attempt(total.backward), x.grad


@case
def used_before_numpy_writes(torch):
    """A view with history shows what NumPy wrote since it was last used."""

    x = torch.ones(2, 2, 3).requires_grad_()
    array = x.detach().numpy()
    whole = x.view_as(x)
    here, there = whole[0], by_thread(lambda: whole[:, 0])
    for value in (2.0, 3.0):
        yield here.mean(), there.mean(), by_thread(whole.mean)
        array[...] = value
        yield here.mean(), there.mean(), by_thread(whole.mean)
        array[0] = value + 0.5
        yield here, there, whole.sum(), x.sum()
    (here * there[0]).sum().backward()
    yield x.grad
    # They keep their places in the graph.
    for view in (here, there):
        yield torch.autograd.grad((view * 2).sum() + view[0].sum(), view)
    y = here * 3
    array[...] = 4.0
    yield torch.autograd.grad((y + here).sum(), [here, x])
    # Of memory that requires no grad itself.
    plain = numpy.ones(3, "float32")
    z = torch.from_numpy(plain)
    z[:2].mul_(x[0, 0, :2])
    view = z[1:]
    for value in (5.0, 7.0):
        plain[...] = value
        yield view * view, view * view[0]


@case
def after_their_base_left_the_graph(torch):
    """A view that was written to gets its node when it is used: too late by then."""
    for read in (False, True):
        for used in ("not", "as an operand", "its node"):
            x = torch.ones(3, requires_grad=True)
            y = x * 2
            v = y[...]
            y.add_(1)
            if used == "as an operand":
                v * 1
            elif used == "its node":
                yield v.grad_fn is None
            if read:
                yield x.sum().item(), y.sum().item()
            y.detach_()
            if read:
                yield y.sum().item()
            (v * v).sum().backward()
            yield used, v.requires_grad, v.is_leaf, x.grad
            yield torch.autograd.grad((v * v).sum(), v)
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        v = y[1:]
        if read:
            yield y.sum().item()
        y.detach_()
        (v * v).sum().backward()
        yield x.grad
    v = x[1:]
    with torch.no_grad():
        x.add_(1)
    x.grad = None
    x.requires_grad_(False)
    (v * v).sum().backward()
    yield v.requires_grad, x.grad


@case
def a_node_made_anew_of_a_base_without_history(torch):
    """A write to the memory cuts a view off from the view that it was made of."""

    def untracked(tensor):
        with torch.no_grad():
            tensor.sub_(2)

    writes = [
        lambda base, view, inner: base.sub_(2),
        lambda base, view, inner: base.detach()[0].sub_(2),
        lambda base, view, inner: untracked(view),
        lambda base, view, inner: untracked(inner),
        lambda base, view, inner: base.data.sub_(2),
    ]
    for write in writes:
        for late in (False, True):
            base = torch.tensor([1.0, 2.0, 3.0])
            view = base[1:].requires_grad_()
            inner = view[...]
            before = inner * 2
            part = None if late else inner[1:]
            inner.retain_grad()
            write(base, view, inner)
            part = inner[1:] if late else part
            yield inner.requires_grad, part.requires_grad, view.is_leaf
            before.sum().backward()
            yield view.grad, inner.grad
            (inner * inner).sum().backward()
            yield view.grad, inner.grad, inner.grad_fn.name()
            part.sum().backward()
            yield view.grad, inner.grad, base.requires_grad


@case
def gradients_retained_at_the_node_that_a_view_has(torch):
    """Other views get another node when they are used after a write."""
    for writer in range(3):
        for used in (False, True):
            x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
            y = x * 2
            view = y[1:]
            view.retain_grad()
            before = view + 3
            (view, y, y[1:])[writer].mul_(2)
            if used:
                yield view.grad_fn.name()
            before.sum().backward(retain_graph=True)
            yield view.grad, x.grad
            y.sum().backward(retain_graph=True)
            yield view.grad, x.grad
            view.sum().backward()
            yield view.grad, x.grad, view.retains_grad


@case.over(read=[False, True], write=["add_", "zero_", "data"])
def of_a_base_that_requires_grad_later(torch, read, write):
    """After a write PyTorch makes the nodes of such views, and they are no leaves."""
    for view in (lambda t: t[1:], lambda t: t.expand(2, 3)):
        x = torch.tensor([0.5, 0.75, 1.0]) * 1
        part = view(x)
        if read:
            yield part.tolist()
        x.requires_grad_(True)
        yield part.is_leaf, part.requires_grad
        with torch.no_grad():
            if write == "add_":
                x.add_(x)
            elif write == "zero_":
                x.zero_()
            else:
                x.data.mul_(2)
        yield part.is_leaf, part.requires_grad, type(part.grad_fn).__name__, part
        yield attempt((part * 2).sum().backward), x.grad


@case.over(
    read=["", "requires_grad", "grad_fn", "detach", "no_grad", "retain_grad", "flag"],
    write=["zero_", "addcmul_", "no_grad", "view"],
)
def whose_node_nobody_asked_for(torch, read, write):
    """PyTorch takes them for leaves until somebody does, however often bases change."""
    x = torch.ones(2, 2, requires_grad=True)
    base = torch.zeros(2, 2)
    view = base[...]
    other = base[:1]

    def look():
        if read == "no_grad":
            with torch.no_grad():
                view * 2
        elif read in ("detach", "retain_grad"):
            getattr(view, read)()
        elif read == "flag":
            view.requires_grad = False
        elif read:
            getattr(view, read)

    def change():
        if write == "zero_":
            view.zero_()
        elif write == "addcmul_":
            view.addcmul_(x, x)
        elif write == "view":
            other.mul_(3)
        else:
            with torch.no_grad():
                view.mul_(2)

    for _ in range(3):
        base.addcmul_(x, x, value=0.5)
        yield attempt(look), attempt(change)
        yield view.tolist()
    yield attempt(view.mul_, 2), facts(view), facts(view)
    (view * view).sum().backward()
    yield x.grad


@case.over(read=[False, True])
def that_items_were_assigned_to(torch, read):
    """It is a view of the view that PyTorch writes to then."""
    x = torch.ones(2, requires_grad=True)
    view = torch.zeros(4).view(2, 2)
    for i in (0, 1, 0):
        view[i] = x * 3
        if read:
            yield view.grad_fn is None
        yield attempt(view.mul_, 2)
    (view * view).sum().backward()
    yield x.grad


@case.over(write=["fill_", "copy_", "mul_", "add_"], by=["view", "base"])
def that_were_written_to_before_their_base_is_detached(torch, write, by):
    """PyTorch makes the node of what is written to at once, that of others later."""
    for read in (False, True):
        x = torch.ones(2, 2, requires_grad=True)
        base = x * 2
        view, before = base.view(-1), torch.zeros(4).view(2, 2)
        late = before[0]
        writer = {"view": view, "base": base}[by]
        before.add_(x)
        getattr(writer, write)(writer.detach().clone() if write == "copy_" else 3)
        if read:
            yield view.requires_grad, view.is_leaf
        base.detach_()
        yield facts(base), facts(view)
        (view * view).sum().backward()
        yield x.grad, attempt(before.detach_), facts(late)


@case.over(tracked=[False, True])
def of_views_that_were_made_otherwise(torch, tracked):
    """What PyTorch says of where they were made, as the last of them tells."""
    makers = {
        "plain": lambda t: t[...],
        "several": lambda t: t.chunk(1)[0],
        "no_grad": torch.no_grad()(lambda t: t[...]),
        "inference": torch.inference_mode()(lambda t: t.unbind()[0]),
    }
    x = torch.ones(2, 2, requires_grad=True)
    for first in makers.values():
        for second in makers.values():
            for third in (makers["plain"], makers["no_grad"]):
                base = x * 2 if tracked else torch.zeros(2, 2)
                view = third(second(first(base)))
                yield attempt(view.add_, x.sum())
