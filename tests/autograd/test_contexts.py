"""The contexts of custom functions, and how arguments reach them, against PyTorch."""

from __future__ import annotations

from tests.autograd.test_function import leaf
from tests.oracle import attempt, case


@case
def contexts(torch):
    """What the context shows in the forward, without history, and after a backward."""
    seen = []

    class Shown(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, n, b):
            ctx.save_for_backward(a)
            seen.append((ctx.needs_input_grad, ctx.saved_tensors))
            return a * n

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None

    class Bare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    a, b = leaf(torch, 1.0, 2.0), torch.tensor([3.0, 4.0])
    with torch.no_grad():
        yield Shown.apply(a, 2, b)
    yield Shown.apply(a, 2, b), Shown.apply(b, 2, b)
    yield seen
    y = Bare.apply(a)
    yield y.grad_fn.saved_tensors, y.grad_fn.metadata
    y.grad_fn.metadata["key"] = 1
    yield y.grad_fn.metadata
    y.sum().backward(retain_graph=True)
    yield y.grad_fn.saved_tensors, y.grad_fn._raw_saved_tensors
    y.sum().backward()
    yield attempt(lambda: y.grad_fn.saved_tensors)
    yield attempt(lambda: y.grad_fn._raw_saved_tensors)
    y.sum().backward()  # what is gone nobody asked for
    yield a.grad


@case
def arguments_of_a_separate_context(torch):
    """Defaults are filled in and keywords put in their places."""
    seen = []

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(a, n=3, *more):
            return a * n

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((len(inputs), inputs[1:]))
            ctx.n, ctx.count = inputs[1], len(inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.n, *[None] * (ctx.count - 1)

    a = leaf(torch, 1.0, 2.0)
    for n, named in (((), {}), ((2,), {}), ((2, 5, 6), {}), ((), {"n": 4})):
        y = Scaled.apply(a, *n, **named)
        y.sum().backward()
        yield y, a.grad
    yield seen
    yield attempt(Scaled.apply)
    yield attempt(Scaled.apply, a, 1, n=2)
    Scaled.forward = staticmethod(lambda a, n=5: a * n)  # another one from now on
    yield Scaled.apply(a), seen[-1]
