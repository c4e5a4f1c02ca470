"""What a graph holds is freed with it, as in PyTorch."""

import gc
import weakref

import pytest

import torchshim
from torchshim._core.hooks import move_retained, retaining


def alive_after(make):
    refs = [weakref.ref(each) for each in make()]
    gc.collect()
    return [ref() is not None for ref in refs]


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("backward", [False, True])
def test_graphs_end_with_their_tensors(create, read, backward):
    def make():
        x = torchshim.ones(3, requires_grad=True)
        y = x.exp() * 2
        z = (y * y).sum()
        kept = [x, y, z, y.grad_fn]
        if backward:
            (g,) = torchshim.autograd.grad(z, x, create_graph=create)
            kept.append(g)
            if create:
                (h,) = torchshim.autograd.grad(g.sum(), x)
                kept.append(h)
        if read:
            z.item()
        return kept

    torchshim.zeros(1).item()
    found = alive_after(make)
    if not read:
        # The recording holds what came into it until it ends.
        torchshim.zeros(1).add(1).item()
        found = alive_after(make)
        torchshim.zeros(1).add(1).item()
    assert not any(found[1:])


@pytest.mark.parametrize("read", [False, True])
def test_steps_leave_nothing_behind(read):
    import jax

    w = torchshim.ones(8, requires_grad=True)

    def step():
        loss = (w * 2).sin().sum()
        (grad,) = torchshim.autograd.grad(loss, w, create_graph=True)
        grad.sum().backward()
        w.grad = None
        if read:
            loss.item()
        else:
            w.sum().item()

    for _ in range(3):
        step()
    gc.collect()
    arrays, objects = len(jax.live_arrays()), len(gc.get_objects())
    for _ in range(10):
        step()
    gc.collect()
    assert len(jax.live_arrays()) <= arrays
    assert len(gc.get_objects()) - objects < 200


class Doubled(torchshim.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


# What is done to a value on the way from a leaf to a loss.
BETWEEN = {
    "nothing": lambda y: y,
    "hook": lambda y: (y.register_hook(lambda g: g * 2), y)[1],
    "retained": lambda y: (y.retain_grad(), y)[1],
    "node hook": lambda y: (y.grad_fn.register_hook(lambda *grads: None), y)[1],
    "custom function": Doubled.apply,
    "view written to": lambda y: (y[1:].mul_(3), y)[1],
}


@pytest.mark.parametrize("between", BETWEEN)
def test_steps_leave_no_cycles(between):
    """As in PyTorch, a graph is freed without waiting for the garbage collector."""
    w = torchshim.ones(8, requires_grad=True)

    def step():
        w.grad = None
        BETWEEN[between](w * 2).sum().backward()
        w.grad.sum().item()

    for _ in range(12):
        step()
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            step()
        assert gc.collect() == 0
    finally:
        gc.enable()


class Note:
    pass


def test_what_is_noted_at_nodes_ends_with_them():
    """At once, without the garbage collector and before the recording ends."""
    torchshim.zeros(1).item()
    gc.disable()
    try:
        notes = []

        def note(tensor):
            found = Note()
            tensor.grad_fn.metadata["note"] = found
            notes.append(weakref.ref(found))

        def left():
            return [ref() is not None for ref in notes]

        x = torchshim.ones(3, requires_grad=True)
        y = x.exp()
        note(y)
        z = y * 2
        note(z)
        w = z.sum()
        note(w)
        del w
        assert left() == [True, True, False]
        u = z.sin()
        del z
        assert left() == [True, True, False]
        u.sum().backward()
        assert left() == [True, True, False]
        node = u.grad_fn
        del u
        assert left() == [True, True, False]
        del node
        assert left() == [True, False, False]
        v = y[1:]
        v.mul_(3)
        del y
        assert left() == [True, False, False]
        del v
        assert left() == [False, False, False]
    finally:
        gc.enable()


def test_copies_of_what_may_be_written_to_end_with_the_graph():
    with torchshim.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = torchshim.ones(2, 3, requires_grad=True).clone()
        b = a**2
        a.sin_()
        c = a**2
        a.sin_()
        assert len(context.cloned) == 2
        del b
        assert len(context.cloned) == 1
        torchshim.sum(c).backward()
        del c
        assert not context.cloned


def test_hooks_on_several_gradients_forget_a_backward_that_failed():
    x, y = (torchshim.ones(2, requires_grad=True) for _ in range(2))
    seen = []

    def fails(grad):
        raise ValueError("not this one")

    for mode in ("all", "any"):
        torchshim.autograd.graph.register_multi_grad_hook(
            (x, y), lambda grads, mode=mode: seen.append(mode), mode=mode
        )
    out = (x * (y * 2)).sum()
    inner = y * 2
    handle = inner.register_hook(fails)
    for _ in range(5):
        with pytest.raises(ValueError, match="not this one"):
            (x * inner).sum().backward()
        out.backward(retain_graph=True)
    handle.remove()
    assert seen.count("all") == 5


def test_retained_gradients_die_while_they_are_looked_for():
    class Held:
        _hooks = None
        cycle: object = None

    usual, others = gc.get_threshold(), len(retaining)
    gc.disable()
    try:
        for _ in range(5000):
            held = Held()
            held.cycle, key = held, id(held)
            retaining[key] = weakref.ref(held, lambda _, key=key: retaining.pop(key, 0))
        del held
        # The garbage is found in the midst of it, by whatever that makes.
        gc.set_threshold(gc.get_count()[0] + 1000)
        gc.enable()
        move_retained()
    finally:
        gc.set_threshold(*usual)
        gc.enable()
    assert len(retaining) <= others
