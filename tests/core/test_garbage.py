"""What a program lets go of is gone after an explicit `gc.collect()`, as in PyTorch."""

from __future__ import annotations

import contextlib
import gc
import weakref

from tests.oracle import case


@contextlib.contextmanager
def only_new_objects():
    """Collections look at what is made within only: they take seconds otherwise."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Watched:
    """What is looked at: PyTorch's tensors outlive the Python objects for them."""


def leaf(torch, noted):
    x = torch.ones(2, requires_grad=True)
    x.noted = noted
    return (x * x).exp()


def leaf_with_gradient(torch, noted):
    x = torch.ones(2, requires_grad=True)
    x.noted = noted
    (x * x).sum().backward()
    return x


def gradient(torch, noted):
    x = torch.ones(2, requires_grad=True)
    x.noted = noted
    return torch.autograd.grad((x**3).sum(), x, create_graph=True)


def hook(torch, noted):
    y = torch.ones(2, requires_grad=True) * 2
    y.register_hook(lambda grad: noted)
    return y


def hook_after_accumulation(torch, noted):
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda grad: noted and None)
    x.sum().backward()
    return x


def hook_of_a_node(torch, noted):
    y = torch.ones(2, requires_grad=True) * 2
    y.grad_fn.register_hook(lambda *grads: noted and None)
    return y


def metadata(torch, noted):
    y = torch.ones(2, requires_grad=True).exp()
    y.grad_fn.metadata["noted"] = noted
    return y


def context(torch, noted):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, given):
            ctx.noted = given
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    return Double.apply(torch.ones(2, requires_grad=True), noted)


KINDS = {
    f.__name__: f
    for f in (
        leaf,
        leaf_with_gradient,
        gradient,
        hook,
        hook_after_accumulation,
        hook_of_a_node,
        metadata,
        context,
    )
}


@case.over(kind=list(KINDS))
def gone_after_a_collection(torch, kind):
    with only_new_objects():
        noted = Watched()
        gone = weakref.ref(noted)
        held = KINDS[kind](torch, noted)
        del noted
        gc.collect()
        yield gone() is None
        del held
        gc.collect()
        yield gone() is None


@case
def values_are_as_they_were(torch):
    """What is alive goes on: a collection is like a read."""
    x = torch.arange(3.0, requires_grad=True)
    with only_new_objects():
        y = x * 2
        y[:1].add_(1)
        gc.collect()
        z = y.exp()
        gc.collect()
        z.sum().backward()
        gc.collect()
    yield x.grad, y, z.grad_fn.name()


def test_only_an_explicit_collection_ends_a_recording():
    import torchshim as torch
    from torchshim._core.record import local

    x = torch.ones(2) * 2
    before = local.rec.flushes
    with only_new_objects():
        gc.collect(0)
        assert local.rec.flushes == before
        gc.collect()
    assert local.rec.flushes == before + 1
    assert x.tolist() == [2, 2]
