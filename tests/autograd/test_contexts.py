"""The contexts of custom functions, and how arguments reach them, against PyTorch."""

from __future__ import annotations

from itertools import product

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


@case(warnings=False)
def views_in_forward_mode(torch):
    """The tangent of a view of an input has to be a view of the input's tangent."""
    fw = torch.autograd.forward_ad
    forwards = (lambda x, y: x, lambda x, y: x.view(2), lambda x, y: (x + y, x))
    jvps = (
        lambda x, y: x,
        lambda x, y: x.view_as(x),
        lambda x, y: x.clone(),
        lambda x, y: x.clone().view_as(x),
        lambda x, y: y.view_as(y),
        lambda x, y: (x + y, x),
        lambda x, y: (x + y, x.view_as(x)),
    )
    tangents = torch.tensor([1.0, 10.0]), torch.tensor([5.0, 6.0])
    for n, made in enumerate(forwards):
        for k, moved in enumerate(jvps):

            class F(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, y, made=made):
                    return made(x, y)

                @staticmethod
                def jvp(ctx, x, y, moved=moved):
                    return moved(x, y)

            for view, first, second in ((0, 1, 0), (1, 1, 1), (0, 0, 1), (1, 0, 1)):
                with fw.dual_level():
                    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
                    x = fw.make_dual(x, tangents[0]) if first else x
                    y = fw.make_dual(y, tangents[1]) if second else y
                    got = attempt(F.apply, x.view(2) if view else x, y)
                    if isinstance(got, torch.Tensor):
                        got = (got,)
                    if isinstance(got, tuple):
                        got = [fw.unpack_dual(each) for each in got]
                    yield n, k, view, first, got


@case
def inputs_given_back_and_saved(torch):
    """A separate context may not save an input that the forward gives back as it is."""
    for method in ("save_for_backward", "save_for_forward"):

        class Same(torch.autograd.Function):
            @staticmethod
            def forward(x, view):
                return x.view_as(x) if view else x

            @staticmethod
            def setup_context(ctx, inputs, output, method=method):
                getattr(ctx, method)(inputs[0])

            @staticmethod
            def backward(ctx, grad):
                return grad, None

        for tracked in (True, False):
            x = torch.ones(2, requires_grad=tracked)
            yield Same.apply(x, True), attempt(Same.apply, x, False)
            with torch.no_grad():
                yield attempt(Same.apply, x, False)


@case
def hooks_on_what_is_saved(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = leaf(torch, 1.0, 2.0)
    y = Same.apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    for kind in (torch.autograd.SavedTensor, torch._C._autograd.SavedTensor):
        yield isinstance(first, kind), isinstance(second, kind), attempt(kind)
    yield first.data, second.data, first.unpack_hook
    yield attempt(second.register_hooks, abs, abs)
    yield first.register_hooks(lambda x: x * 2, lambda x: x * 10)
    yield attempt(first.register_hooks, abs, abs)
    yield y.grad_fn.saved_tensors[0], first.data
    y.sum().backward()
    yield x.grad, attempt(lambda: y.grad_fn._raw_saved_tensors)


@case
def needs_input_grad_that_is_assigned(torch):
    """It holds what was assigned, and decides nothing."""
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, value):
            seen.append(ctx.needs_input_grad)
            ctx.needs_input_grad = value
            return x * y

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            ctx.needs_input_grad = None
            seen.append(ctx.needs_input_grad)
            return grad, grad, None

    for value, _ in product([(False, False), (True,), "ab"], range(2)):
        x = torch.ones(2, requires_grad=True)
        y = torch.ones(2)
        made = Product.apply(x, y, value)
        yield made, made.grad_fn.needs_input_grad
        yield torch.autograd.grad(made.sum(), x)
    yield seen
