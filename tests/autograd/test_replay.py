"""Backward passes with Python code in them, again and again: a walk that is remembered
from call to call must do what the first one did, whatever the code does this time."""

from __future__ import annotations

from tests.oracle import case

ROUNDS = 5


@case
def hooks_that_do_the_same(torch):
    """On values, views and leaves: looking, replacing, accumulating."""
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.tolist()))
    v.register_hook(lambda g: g * 2)
    v.register_post_accumulate_grad_hook(lambda p: seen.append("after"))
    for k in range(ROUNDS):
        y = w * v
        y.register_hook(lambda g, k=k: g + 1)
        z = y.view(3, 1)
        z.register_hook(lambda g: None)
        z.retain_grad()
        (z.sum() + (w * w).sum() * (k + 1)).backward()
        yield w.grad, v.grad, z.grad, len(seen)
        if k == 2:
            w.grad = v.grad = None
    yield seen


@case
def hooks_that_do_something_else(torch):
    """Reading, recording, removed, raising, in some rounds and not in others."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    seen = []
    for mode in ("", "", "read", "", "record", "replace", "", "raise", "", "none", ""):

        def hook(g, mode=mode):
            if mode == "read":
                seen.append(g.sum().item())
            if mode == "record":
                seen.append((g * 3).exp())
            if mode == "replace":
                return g * 10
            if mode == "raise":
                raise ValueError("hook")
            return None

        h = w * 2 + b
        handle = h.register_hook(hook)
        if mode == "none":
            handle.remove()
        try:
            (h * h).sum().backward()
        except ValueError as error:
            yield str(error)
        yield w.grad, b.grad
    yield seen


@case
def hooks_of_leaves(torch):
    """One that raises, one that is removed, `.grad` set to None and frozen leaves."""
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    log = []

    def post(p):
        log.append(("post", p.grad.tolist()))
        if len(log) == 6:
            raise RuntimeError("post")

    def clip(g):
        return g.clamp(-1, 1)

    handle = a.register_hook(clip)
    b.register_post_accumulate_grad_hook(post)
    for k in range(8):
        try:
            ((a * b).exp().sum() * 0.01 * (k + 1)).backward()
        except RuntimeError as error:
            yield str(error)
        yield a.grad, b.grad, list(log)
        if k == 2:
            a.grad = None
        if k == 3:
            handle.remove()
        if k == 4:
            a.requires_grad_(False)
        if k == 5:
            a.requires_grad_()
            a.register_hook(lambda g: log.append("again"))


@case
def optimizers_within_backward(torch):
    """A step for each parameter as soon as its gradient is there."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    )
    each = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in model.parameters()}

    def step(p):
        each[p].step()
        each[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    x = torch.tensor([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    for _ in range(ROUNDS):
        loss = (model(x) ** 2).mean()
        loss.backward()
        yield loss, [p.grad for p in model.parameters()]
    yield list(model.parameters())


@case
def custom_functions(torch):
    """Several outputs, none, numbers, saved values, a loss read before the backward."""

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, k):
            ctx.save_for_backward(x, y)
            ctx.k = k
            return x * y * k, x + y

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y * ctx.k + h, (g * x * ctx.k + h if ctx.k != 3 else None), None

    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sign()

        @staticmethod
        def backward(ctx, g):
            return g.clamp(-0.5, 0.5)

    a = torch.tensor([1.0, -2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    for k in (1, 2, 2, 3, 3, 2, 2):
        p, q = Two.apply(a, b, k)
        loss = (Sign.apply(p) * q).sum() + p.mean()
        if k == 2:
            yield loss.item()
        loss.backward(retain_graph=True)
        yield a.grad, b.grad
        yield torch.autograd.grad(loss, [a, b], allow_unused=True)
    try:
        loss.backward()
        loss.backward()
    except RuntimeError as error:
        yield str(error)[:60]


@case
def backward_within_backward(torch):
    """A hook that runs a backward of its own, on the same leaves."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for k in range(ROUNDS):
        h = w * 3

        def hook(g):
            with torch.enable_grad():
                (w * w).sum().backward()
            return g + w.detach()

        h.register_hook(hook)
        u = h.exp() * 0.1
        u.register_hook(lambda g: g * 0.5)
        (u + h).sum().backward()
        yield w.grad
        if k % 2:
            w.grad = None


@case
def callbacks_and_waiting_gradients(torch):
    """Gradients on their way, hooks on several of them, callbacks at the end."""
    engine = torch.autograd.Variable._execution_engine
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    log = []
    for k in range(ROUNDS):
        x = a * 2
        left, right = x.sin(), x.cos()

        def hook(g, k=k):
            engine.queue_callback(lambda: log.append(("end", k)))
            if k == 3:
                log.append(g.tolist())

        left.register_hook(hook)
        right.register_hook(lambda g: g * 2)
        x.register_hook(lambda g: g / 2)
        torch.stack([left, right, x]).sum().backward()
        yield a.grad, list(log)


@case
def read_losses_with_hooks(torch):
    """The forward pass ran before the backward: its values are saved ones."""
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    x = torch.tensor([[1.0, -1.0]])
    for k in range(ROUNDS):
        h = (x @ w).tanh()
        h.register_hook(lambda g: g * 2)
        loss = (h * h).sum()
        yield loss.item()
        if k == 3:
            h.register_hook(lambda g: g + 1)
        loss.backward()
        yield w.grad
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None


@case
def hooks_that_read(torch):
    """What is on its way while a hook reads something, and what hooks keep of it."""
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    kept, seen = [], []

    def clip(g):
        kept.append(g)
        norm = g.norm().item()
        return g * (2.0 / norm) if norm > 2.0 else None

    def count(g):
        kept.append(g)
        seen.append(kept[0].sum().item() + g.sum().item())

    for mode in ("", "", "", "grad", "", "keep", "", "write", "", "", ""):

        def look(g, mode=mode):
            seen.append(g.max().item())
            if mode == "keep":
                return kept[0].view(3, 1) * 1.0
            if mode == "write":
                kept[0].mul_(2.0)
            return None

        del kept[:], seen[:]
        y = x * w
        y.register_hook(count)
        z = (y * 3.0 + w).view(3, 1)
        z.register_hook(look)
        u = (z.view(3) * y).sin()
        u.register_hook(clip)
        loss = ((u + y.exp() * x) * w.detach()).sum()
        x.grad = w.grad = None
        if mode == "grad":
            yield torch.autograd.grad(loss, (y, w, u))
        else:
            loss.backward()
            yield x.grad, w.grad
        yield seen, kept[-1]


@case
def hooks_of_nodes(torch):
    """Before and after a node's gradients, of operators, functions and modules."""
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(6.0).view(2, 3) / 4)
        layer.bias.zero_()
    seen = []

    def sums(grads):
        return [None if g is None else g.sum().item() for g in grads]

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b, a + b

        @staticmethod
        def backward(ctx, g, h):
            a, b = ctx.saved_tensors
            return g * b + h, g * a + h

    layer.register_full_backward_hook(lambda m, i, o: seen.append((sums(i), sums(o))))
    layer.register_full_backward_pre_hook(lambda m, o: (o[0] * 2,))
    for mode in (
        "",
        "",
        "",
        "read",
        "",
        "after",
        "before",
        "",
        "raise",
        "",
        "none",
        "",
    ):

        def before(grads, mode=mode):
            if mode == "read":
                seen.append(sums(grads))
            return (grads[0] * 3,) if mode == "before" else None

        def after(inputs, outputs, mode=mode):
            seen.append((len(inputs), len(outputs)))
            if mode == "raise":
                raise ValueError("hook")
            return tuple(g * 2 for g in inputs) if mode == "after" else None

        p, q = Product.apply(x, x.sin())
        p.grad_fn.register_hook(after)
        y = layer(p) * 2
        y.grad_fn.register_prehook(before)
        y.grad_fn.register_hook(lambda i, o: (i[0] * 0.5, None))
        x.grad = None
        try:
            (y.sum() + q.exp().sum()).backward()
        except ValueError as error:
            seen.append(str(error))
        yield x.grad, layer.weight.grad, seen
        layer.zero_grad()
        del seen[:]


@case
def gradients_of_gradients(torch):
    """With `create_graph`, in one recording and in several, `.grad` there or not."""
    x = torch.linspace(-1, 1, 3, dtype=torch.float64).requires_grad_()
    w = torch.tensor([0.5, -2.0], dtype=torch.float64, requires_grad=True)
    log = []
    for k in range(7):
        h = x * w[0]
        if k > 1:
            h.register_hook(
                lambda g, k=k: log.append(g.sum().item()) if k == 5 else None
            )
        u = h.tanh() * w[1]
        (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        if k == 3:
            log.append(du.sum().item())
        (ddu,) = torch.autograd.grad(du.sum(), x, create_graph=True)
        yield du.requires_grad, du.is_leaf
        loss = ((ddu + du * u) ** 2).mean()
        loss.backward(create_graph=True)
        yield x.grad, w.grad.detach()
        (w.grad**2).sum().backward(inputs=[x])
        yield x.grad.detach(), log
        if k != 4:
            x.grad = w.grad = None
        else:
            x.grad, w.grad = x.grad.detach(), w.grad.detach()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda t: t[0]):
        u = (x * w[0]).tanh() * w[1]
        (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    yield du.detach()


@case
def other_ways_into_a_graph(torch):
    """The same operators on values that came out of the graph elsewhere."""
    leaf = torch.tensor([-1.0, -0.75, -0.5], requires_grad=True)
    first, second = leaf * 0.5, leaf * 0.25
    both = first, second
    first.tolist()
    for k in range(ROUNDS):
        roots = [second.sum(), (first * 3).mean()]
        torch.autograd.backward(roots, inputs=[leaf], retain_graph=True)
        yield leaf.grad
        leaf.grad = None
        if k % 2:
            first, second = both
        else:
            second = second.mul_(5) if k else second.exp()
        second.tolist()


# Alternating, and the same again before another.
CHOICES = (0, 1, 0, 1, 2, 2, 1, 1, 0, 0, 2)


def leaves_of(torch):
    return [
        torch.tensor([k, k + 1.0], requires_grad=True) for k in (1.0, 3.0, 5.0, 7.0)
    ]


@case
def gradients_of_another_leaf(torch):
    """Asked for one leaf or another of a graph that a read has closed."""
    for i in CHOICES:
        x, w, v, u = leaves_of(torch)
        y = (x * w * x).sum()
        z = y * v.sum()
        y.tolist()
        leaf = (x, w, v)[i]
        yield torch.autograd.grad(y, [leaf, u], allow_unused=True, retain_graph=True)
        z.tolist()
        z.backward(inputs=[leaf])
        yield x.grad, w.grad, v.grad


@case
def gradients_of_another_result(torch):
    """Asked for one value or another, of several closed graphs."""
    for i in CHOICES:
        x = leaves_of(torch)[0]
        y = x * 2
        u = y * 3
        other = x * 7
        other.tolist()
        z = (u * y).sum()
        z.tolist()
        yield torch.autograd.grad(z, [(y, u, other)[i]], allow_unused=True)


@case
def leaves_of_several_graphs(torch):
    """A leaf of the running graph is one of the closed graphs, too, or is not."""
    for hooked in (False, True):
        for i in CHOICES:
            x, w, v, u = leaves_of(torch)
            seen = []
            for leaf in (x, w, v, u) if hooked else ():
                leaf.register_hook(lambda g, seen=seen: seen.append(g.tolist()))
            y = x * w
            y.tolist()
            z = y * v
            z.tolist()
            (z + (x, v, u)[i] * y).sum().backward()
            yield x.grad, w.grad, v.grad, u.grad, seen


@case
def gradients_of_another_leaf_past_a_hook(torch):
    for i in CHOICES:
        x, w, v, _ = leaves_of(torch)
        seen = []
        y = x * w
        y.register_hook(lambda g, seen=seen: seen.append(g.tolist()))
        p, q = y * 2, y * v
        (p.tolist(), q.tolist())
        z = (p * 2 + q).sum()
        z.tolist()
        z.backward(inputs=[(x, w, v)[i]])
        yield x.grad, w.grad, v.grad, seen


@case.over(read=["forward", "hook", "first walk"])
def gradients_of_several_leaves_in_one_tensor(torch, read):
    """`.grad`s that are one tensor, or not, as no path tells."""
    seen = []

    def step(shared):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.tensor([0.5, -1.0], requires_grad=True)
        x.grad, y.grad = torch.ones(2), torch.ones(2)
        if read == "first walk":
            (x * y).sum().backward()
        if shared:
            x.grad = y.grad
        z = x * y
        z.register_hook(lambda grad: seen.append(len(seen)))
        if read == "hook":
            x.register_hook(lambda grad: seen.append(grad.sum().item()))
        elif read == "first walk":
            y.grad.sum().item()
        else:
            z.sum().item()
        (z * x).sum().backward()
        return x.grad, y.grad, x.grad is y.grad

    for shared in (False, False, True, True, False):
        yield step(shared)
    yield len(seen)


@case.over(of=["leaf", "another leaf", "leaf without a gradient"])
def hooks_that_change_what_a_leaf_has(torch, of):
    """Hooks of leaves, and their `grad_dtype`, from within the walk."""

    class Nothing(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: x * 2)
        backward = staticmethod(lambda ctx, grad: None)

    def step(change):
        w, x, y = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(3))
        x.register_hook(lambda grad: seen.append("x"))
        w.register_hook(lambda grad: change(x if of == "leaf" else y))
        z = x * 3 + (Nothing.apply(y) if of == "leaf without a gradient" else y)
        (z.exp() * w).sum().backward()
        return w.grad, x.grad, y.grad

    def hook(leaf):
        leaf.register_hook(lambda grad: seen.append(grad is None))

    def after(leaf):
        leaf.register_post_accumulate_grad_hook(lambda leaf: seen.append("after"))

    def dtype(leaf):
        leaf.grad_dtype = torch.float64

    def nothing(leaf):
        pass

    seen = []
    changes = nothing, hook, after, dtype
    for change in [c for each in changes for c in (nothing, each, each)]:
        yield step(change), seen.copy()
        seen.clear()


@case
def leaves_asked_for_that_get_other_data(torch):
    """From within the walk, so that the leaf has another node when that goes on."""

    def step(change):
        x, y = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        z = x * y
        z.register_hook(lambda grad: change(x))
        return torch.autograd.grad((z * z).sum(), [x, y], allow_unused=True)

    def double(x):
        x.data = x.data.double()

    for change in (len, len, double, double, len):
        yield step(lambda x, change=change: change(x) and None)
