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
