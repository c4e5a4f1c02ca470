"""Custom functions: what their forward and backward get and may return."""

from tests.oracle import attempt, case


def leaf(torch, *values):
    data = list(values) if len(values) > 1 else values[0]
    return torch.tensor(data, requires_grad=True)


@case
def plain(torch):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, n):
            ctx.n = n
            ctx.save_for_backward(a, b)
            return a * b * n

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad * b * ctx.n, grad * a * ctx.n, None

    a, b = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    y = Product.apply(a, b, 2)
    yield y, y.grad_fn.name(), type(y.grad_fn).__name__, y.grad_fn.n
    yield y.grad_fn.needs_input_grad, y.grad_fn.saved_tensors[0] is a
    yield [
        n.variable is t
        for (n, _), t in zip(y.grad_fn.next_functions, (a, b), strict=True)
    ]
    y.sum().backward()
    yield a.grad, b.grad
    yield attempt(y.sum().backward)
    yield attempt(lambda: y.grad_fn.saved_tensors)
    yield Product.apply(a, b.detach(), 2).grad_fn.needs_input_grad
    yield Product.apply(a.detach(), b.detach(), 2)
    with torch.no_grad():
        yield Product.apply(a, b, 2)
    y = Product.apply(a, b, n=3)
    yield y.tolist()
    y.sum().backward()
    yield a.grad
    yield attempt(Product.apply, a, b)
    yield attempt(Product.apply, 1, 2)


@case
def returned_gradients(torch):
    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, n):
            return a * b * n

        @staticmethod
        def backward(ctx, grad):
            return Given.result(grad)

    def run(result):
        a, b = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
        Given.result = staticmethod(result)
        Given.apply(a, b, 2).sum().backward()
        return a.grad, b.grad

    tensor = torch.tensor
    for result in (
        lambda g: g,
        lambda g: (g, g, None, None),
        lambda g: (g, g, g),
        lambda g: (g, g, None, g),
        lambda g: (g, 3, None),
        lambda g: (g, tensor([1.0, 2.0, 3.0]), None),
        lambda g: (g, tensor(5.0), None),
        lambda g: (g, tensor([[1.0, 2.0], [3.0, 4.0]]), None),
        lambda g: (tensor([1.0, 2.0], dtype=torch.float64), tensor([1, 2]), None),
        lambda g: [g, g, None],
        lambda g: None,
        lambda g: (g, g * tensor(1 + 0j), None),
        lambda g: (g, None, None),
    ):
        yield attempt(run, result)


@case
def missing_parts(torch):
    class Nothing(torch.autograd.Function):
        pass

    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(3)
            return a * 1

    x = leaf(torch, 1.0, 2.0)
    yield attempt(Nothing.apply, x)
    yield attempt(Forward.apply(x).sum().backward)
    yield attempt(Wrong.apply, x)
    yield attempt(Forward(), 1)


@case
def kinds_of_outputs(torch):
    class Out(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, what):
            return what(a)

        @staticmethod
        def backward(ctx, *grads):
            seen.append([g if g is None else g.tolist() for g in grads])
            return grads[0], None

    seen = []
    x = leaf(torch, 1.0, 2.0)
    for what in (
        lambda a: 3,
        lambda a: (a * 2, 3),
        lambda a: [a * 2, a],
        lambda a: (a * 2, None, "a", [a]),
        lambda a: (a * 2,),
        lambda a: None,
    ):
        yield Out.apply(x, what)
    Out.apply(x, lambda a: (a * 2, None, "a"))[0].sum().backward()
    yield seen, x.grad


@case
def inputs_given_back(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a * 2, a, None)
            return a

        @staticmethod
        def backward(ctx, grad):
            seen.append((ctx.saved_tensors[0].tolist(), ctx.saved_tensors[1] is x))
            return grad * 5

    seen = []
    x = leaf(torch, 1.0, 2.0)
    y = Same.apply(x)
    yield y is x, y
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    yield seen, x.grad
    yield attempt(y.sum().backward)
    yield attempt(y.add_, 1)
    z = torch.tensor([1.0])
    yield Same.apply(z) is z, Same.apply(z)


@case
def in_place(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            a.add_(1)
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = leaf(torch, 1.0, 2.0)
    z = x * 1
    w = AddOne.apply(z)
    yield w is z, z, z._version
    w.sum().backward()
    yield x.grad
    yield attempt(AddOne.apply, x)
    z = torch.tensor([1.0, 2.0])
    yield AddOne.apply(z) is z, z

    class Lost(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.mark_dirty(a)
            return a * 2

    yield attempt(Lost.apply, x * 1)

    class NoInput(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            b = a * 1
            ctx.mark_dirty(b)
            return b

    NoInput.apply(x * 1)


@case
def undifferentiable_outputs(torch):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, materialize):
            b = a * 1
            ctx.mark_non_differentiable(b)
            ctx.set_materialize_grads(materialize)
            return a * 2, b, a * 3, torch.tensor([1, 2])

        @staticmethod
        def backward(ctx, *grads):
            seen.append([g if g is None else g.tolist() for g in grads])
            return grads[0], None

    seen = []
    x = leaf(torch, 1.0, 2.0)
    for materialize in (True, False):
        p, q, r, n = Two.apply(x, materialize)
        yield p, q, r, n
        (p + q).sum().backward()
        yield seen[-1], x.grad


@case
def setup_context(torch):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(a, n=2):
            return a * n, n

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((len(inputs), inputs[1], output[1]))
            ctx.n = inputs[1]
            ctx.save_for_backward(inputs[0], output[0])

        @staticmethod
        def backward(ctx, grad, _):
            a, y = ctx.saved_tensors
            seen.append((a is x, y.tolist(), y.requires_grad))
            return grad * ctx.n, None

    seen = []
    x = leaf(torch, 1.0, 2.0)
    for y in (Scale.apply(x), Scale.apply(x, n=3), Scale.apply(a=x)):
        yield y[0]
        y[0].sum().backward()
        yield x.grad
    yield seen


@case
def once_differentiable(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * a

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = leaf(torch, 1.0, 2.0)
    yield torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    (g,) = torch.autograd.grad((Square.apply(x) ** 2).sum(), x, create_graph=True)
    yield g
    yield attempt(g.sum().backward)


@case
def twice(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a * a

        @staticmethod
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            return grad * 3 * a * a

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            y = a * a
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * y

    x = leaf(torch, 1.0, 2.0)
    (g,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    yield g.tolist()
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    yield h.tolist()
    yield torch.autograd.grad(h.sum(), x)
    (g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    yield g.tolist()
    yield torch.autograd.grad(g.sum(), x)


@case
def nested(torch):
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            with torch.enable_grad():
                b = a.detach().requires_grad_()
                c = (Inner.apply(b) * b).sum()
            ctx.c, ctx.b = c, b
            return c.detach()

        @staticmethod
        def backward(ctx, grad):
            ctx.c.backward()
            return grad * ctx.b.grad

    x = leaf(torch, 1.0, 2.0)
    Outer.apply(x).backward()
    yield x.grad


@case
def numpy_inside(torch):
    import numpy as np

    class Sinh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            value = a.detach().numpy()
            ctx.cosh = np.cosh(value)
            return torch.tensor(np.sinh(value))

        @staticmethod
        def backward(ctx, grad):
            return torch.tensor(grad.numpy() * ctx.cosh)

    x = leaf(torch, 1.0, 2.0)
    for _ in range(2):
        y = x * 1.5
        (Sinh.apply(y) * y).sum().backward()
        yield x.grad

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return torch.from_numpy(a.detach().numpy() * 2)  # on NumPy's memory

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    for shown in (False, True):
        x = leaf(torch, 1.0, 2.0)
        y = Doubled.apply(x)
        if shown:
            yield str(y)
        y.backward(torch.ones(2))
        yield x.grad, y.is_leaf


@case
def modified_saved(torch):
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 1

        @staticmethod
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            return grad * a

    x = leaf(torch, 1.0, 2.0)
    z = x * 1
    y = Keep.apply(z)
    z.add_(1)
    yield attempt(y.sum().backward)


@case
def after_reading(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            return 2 * a * grad

    x = leaf(torch, 1.0, 2.0)
    for _ in range(3):
        y = Square.apply(x * 3)
        z = (y * y).sum()
        yield z.item()
        z.backward()
        yield x.grad


@case
def in_threads(torch):
    import threading

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            return 2 * a * grad

    found = {}

    def work(n):
        x = leaf(torch, float(n), 2.0)
        for _ in range(3):
            Square.apply(x).sum().backward()
        found[n] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield sorted(found.items())


@case
def views_inside(torch):
    class Part(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.n = a.size(0)
            return a.select(0, 0)

        @staticmethod
        def backward(ctx, grad):
            full = torch.zeros(ctx.n)
            full.select(0, 0).copy_(grad)
            return full

    x = leaf(torch, 1.0, 2.0)
    y = Part.apply(x * 2)
    yield y
    (y * y).backward()
    yield x.grad
    yield attempt(Part.apply(x * 2).add_, 1)


@case
def hooks_see_all_outputs(torch):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_non_differentiable(b)
            return a * 2, "text", b * 3, b

        @staticmethod
        def backward(ctx, *grads):
            return grads[0] * 2, None

    seen = []
    x = leaf(torch, 1.0, 2.0)
    y = Two.apply(x, torch.tensor([1.0, 1.0]))
    y[0].grad_fn.register_prehook(lambda g: seen.append([v is None for v in g]))
    y[0].grad_fn.register_hook(lambda a, g: seen.append((len(a), len(g))))
    y[0].sum().backward()
    yield seen, x.grad


@case
def dirty_views(torch):
    """The base of a view that a function changed, and its other views, know of it."""

    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = leaf(torch, 1.0, 2.0)
    base = x * 1
    view, other = base[:1], base.view(2, 1)
    changed = Triple.apply(view)
    yield changed is view, type(view.grad_fn).__name__, type(base.grad_fn).__name__
    yield base, other, base._version
    (base * other.view(2)).sum().backward()
    yield x.grad


@case
def contexts_keep_what_users_call_as_they_like(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.run = ctx.node = ctx.slots = ctx.spread = ctx.gathered = 3
            ctx.returned, ctx.name = [x], "F"
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.run * ctx.slots

    x = torch.ones(2, requires_grad=True)
    y = F.apply(x)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.sum().backward()
    yield x.grad
