"""Tensors that take another shape in place, in a graph."""

from __future__ import annotations

from tests.oracle import attempt, case

CHANGES = {
    "transpose_": (1, 2),
    "swapaxes_": (1, 2),
    "swapdims_": (0, 1),
    "squeeze_": (),
    "squeeze_.dim": (0,),
    "squeeze_.dims": ((0, 1),),
    "unsqueeze_": (0,),
    "t_": (),
}


def value(torch, change):
    shape = (2, 3) if change == "t_" else (1, 2, 3)
    return torch.arange(6.0).reshape(shape).requires_grad_()


def changed(tensor, change):
    return getattr(tensor, change.partition(".")[0])(*CHANGES[change])


@case.over(change=list(CHANGES), read=[False, True])
def nodes(torch, change, read):
    x = value(torch, change)
    y = x * 2
    if read:
        y.tolist()
    changed(y, change)
    node = y.grad_fn
    yield node.name(), [edge[0].name() for edge in node.next_functions], y._version
    (y * y).sum().backward()
    yield x.grad


@case(message=False).over(change=list(CHANGES), tracked=[False, True])
def saved(torch, change, tracked):
    """What was saved before is refused, though the text tells the old size."""
    for read in (False, True):
        for untracked in (False, True):
            x = value(torch, change)
            w = x * 1 if tracked else x.detach().clone()
            y = x.exp() * w
            if read:
                y.tolist()
            with torch.set_grad_enabled(not untracked):
                changed(w, change)
            yield attempt(y.sum().backward)
            yield w._version, w.shape, x.grad


@case.over(change=list(CHANGES))
def used_on(torch, change):
    for read in (False, True):
        x = value(torch, change)
        y = x * 2
        z = y.sin()
        w = changed(z, change) * 3
        if read:
            w.tolist()
        with torch.no_grad():
            changed(w, "unsqueeze_")
        w = w.cos()
        w.sum().backward()
        yield z.shape, w, x.grad


@case.over(change=list(CHANGES))
def on_memory_that_numpy_writes(torch, change):
    for tracked in (False, True):
        x = value(torch, change)
        y = x * 2 if tracked else x.detach().clone()
        array = y.detach().numpy()
        changed(y, change)
        array += 2
        yield y * 2, y + 1, y.is_leaf
        changed(y, change)
        array += 2
        z = y * 3
        array[...] = 5
        yield z, y.clone(), y.tolist()
        if tracked:
            z.sum().backward()
            yield x.grad


def _both(torch, a, x, v, w):
    ((x.reshape(-1) * torch.arange(6.0)).sum() + (v * 3).sum()).backward()


def _through_view(torch, a, x, v, w):
    v[:2].mul_(5)
    yield x.grad_fn.name(), v.grad_fn.name(), w.grad_fn.name()
    ((x.reshape(-1) * torch.arange(6.0)).sum() + w.sum()).backward()


def _through_base(torch, a, x, v, w):
    x.mul_(3)
    ((v * torch.arange(6.0)).sum() + w.sum()).backward()


def _through_new_view(torch, a, x, v, w):
    u = x[0]
    u.mul_(2)
    yield u._base is x, u
    ((v * torch.arange(6.0)).sum() + u.sum()).backward()


def _of_view_too(torch, a, x, v, w):
    w.unsqueeze_(0).mul_(2)
    yield w.shape, w._base is x
    ((v * torch.arange(6.0)).sum() + x.sum()).backward()


def _with_hook(torch, a, x, v, w):
    seen = []
    x.register_hook(lambda g: seen.append(g.shape))
    x.retain_grad()
    v.mul_(2)
    x.sum().backward()
    yield seen, x.grad


def _saved_before(torch, a, x, v, w):
    y = v * v
    x.mul_(2)
    yield attempt(y.sum().backward)


@case.over(
    change=list(CHANGES),
    then=[
        *(_both, _through_view, _through_base, _through_new_view, _of_view_too),
        *(_with_hook, _saved_before),
    ],
)
def with_views(torch, change, then):
    """The base changes; its views stay as they were, on the same memory."""
    for read in (False, True, False):
        a = value(torch, change)
        x = a * 2
        v, w = x.view(6), x[:1]
        changed(x, change)
        if read:
            x.tolist()
        yield x.shape, x._version, x._is_view(), v._base is x
        yield x.grad_fn.name(), v.grad_fn.name(), w.grad_fn.name()
        yield from then(torch, a, x, v, w) or ()
        yield x, v, w, a.grad


@case.over(change=list(CHANGES))
def with_views_unseen(torch, change):
    for write in (False, True):
        a = value(torch, change)
        x = a * 2
        v = x.view(6)
        with torch.no_grad():
            changed(x, change)
        if write:
            v.mul_(3)
            yield x, v
            continue
        yield attempt((x * 2).sum().backward)
        yield x, v, a.grad
