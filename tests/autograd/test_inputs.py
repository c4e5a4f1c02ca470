"""`backward(inputs=)`: the nodes of inputs that are no leaves run, and end the walk."""

from __future__ import annotations

from itertools import product

from tests.oracle import attempt, case


def functions(torch, log):
    """Custom functions that note what their backward gets."""

    def listed(*grads):
        return [None if g is None else g.tolist() for g in grads]

    class One(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            log.append(("one", listed(grad), ctx.needs_input_grad))
            return grad * ctx.saved_tensors[0]

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grad, other):
            log.append(("two", listed(grad, other)))
            return grad * 2 + other * 3

    def watched(y):
        y.register_hook(lambda grad: log.append(("tensor", listed(grad))))
        y.grad_fn.register_prehook(lambda out: log.append(("before", listed(*out))))
        y.grad_fn.register_hook(
            lambda given, out: log.append(("after", listed(*given), listed(*out)))
        )
        return y

    return One.apply, Two.apply, watched


# What makes the input that is no leaf, of a tensor that is no leaf either.
MADE = {
    "function": lambda t, one, two, watched: one(t),
    "one of two": lambda t, one, two, watched: two(t)[1],
    "both of two": lambda t, one, two, watched: sum(two(t)),
    "product": lambda t, one, two, watched: watched(t * t),
    "exponential": lambda t, one, two, watched: watched(t.exp()),
    "negative": lambda t, one, two, watched: watched(t.neg()),
    "hooked function": lambda t, one, two, watched: watched(one(t)),
    "view": lambda t, one, two, watched: watched(t[1:]),
    "piece": lambda t, one, two, watched: watched(t.split(1)[1]),
    "written to": lambda t, one, two, watched: watched((t * 1).mul_(t)),
    "view written to": lambda t, one, two, watched: watched((t * 1)[:1].mul_(t[:1])),
}
# Of what the gradient is asked for: that, what it was made of, the leaf.
ASKED = ["y", "yt", "yx", "t", "x"]


@case
def nodes_of_inputs_run(torch):
    log = []
    one, two, watched = functions(torch, log)
    for (name, make), asked, read, retain in product(
        MADE.items(), ASKED, (False, True), (False, True)
    ):
        x = torch.tensor([0.5, 2.0], requires_grad=True)
        t = x.neg()
        y = make(t, one, two, watched)
        if read:
            y.tolist()
        z = (y * 3).sum()
        inputs = [{"x": x, "t": t, "y": y}[each] for each in asked]
        z.backward(inputs=inputs, retain_graph=retain)
        again = attempt(lambda y=y: y.sum().backward())
        yield name, asked, log[:], [each.grad for each in (*inputs, x)], again
        log.clear()


@case
def nodes_do_not_run_for_grad(torch):
    log = []
    one, two, watched = functions(torch, log)
    for name, make in MADE.items():
        t = torch.tensor([0.5, 2.0], requires_grad=True).neg()
        y = make(t, one, two, watched)
        found = torch.autograd.grad((y * 3).sum(), [y])
        y.sum().backward()
        yield name, found, log[:]
        log.clear()


@case
def values_that_the_node_saved(torch):
    for name in ("exp", "sin", "neg", "square", "sigmoid"):
        for write in ("operand", "result", "neither"):
            t = torch.tensor([0.5, 2.0], requires_grad=True) * 1
            y = getattr(t, name)()
            edge = torch.autograd.graph.get_gradient_edge(y)
            z = y + 1
            if write != "neither":
                (t if write == "operand" else y).add_(1)
            yield name, write, attempt(lambda z=z, e=edge: z.sum().backward(inputs=[e]))
    unpacked = []
    with torch.autograd.graph.saved_tensors_hooks(lambda v: v, unpacked.append):
        y = torch.ones(2, requires_grad=True).square()
    yield attempt(lambda: (y + 1).sum().backward(inputs=[y])), len(unpacked)


@case
def nodes_of_inputs_that_fail(torch):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, kind):
            ctx.kind = kind
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            if ctx.kind == "raises":
                raise ValueError("mine")
            return {
                "too many": (grad, None, grad),
                "other shape": (torch.ones(7), None),
                "nothing": (None, None),
                "no tensor": ("gradient", None),
            }[ctx.kind]

    for kind in ("raises", "too many", "other shape", "nothing", "no tensor"):
        for below in (False, True):
            t = torch.ones(2, requires_grad=True).neg()
            t.retain_grad()
            y = Fails.apply(t, kind)
            inputs = [y, t] if below else [y]
            z = (y * 3).sum()
            yield kind, attempt(lambda z=z, i=inputs: z.backward(inputs=i))
            yield y.grad, t.grad


@case
def hooks_of_other_results_come_before_the_gradient_is_kept(torch):
    log = []
    _, two, _ = functions(torch, log)
    for raises in (False, True):
        t = torch.ones(2, requires_grad=True).neg()
        a, b = two(t)

        def hook(grad, raises=raises):
            log.append(("other", grad))
            if raises:
                raise ValueError("mine")

        a.register_hook(lambda grad: log.append(("hook", grad)))
        a.retain_grad()
        b.register_hook(hook)
        roots = [(a * -1.5).mean(), a.sum()]
        yield attempt(lambda r=roots, a=a: torch.autograd.backward(r, inputs=[a]))
        yield a.grad, t.grad, log[:]
        log.clear()


@case
def node_hooks_that_replace(torch):
    ones = torch.ones(2)
    after = [(None,), (ones, None), ones, [None, None], (None, 3), (None, None)]
    before = [(None,), (ones, None), ones, [None], (3,), (ones,), (torch.ones(3),)]
    for asked in ("y", "x", "yx", ""):
        for at, answers in (("hook", after), ("prehook", before)):
            for answer in answers:
                x = torch.tensor([0.5, 2.0], requires_grad=True)
                t = x.neg()
                y = t * t
                y.retain_grad()
                register = getattr(y.grad_fn, f"register_{at}")
                register(lambda *grads, answer=answer: answer)
                inputs = [{"x": x, "y": y}[each] for each in asked] or None
                z = (y * 2).sum()
                yield asked, at, attempt(lambda z=z, i=inputs: z.backward(inputs=i))
                yield y.grad, x.grad


# What asks for the node of a view that had none before its base was written to.
ASKING = {
    "nothing": lambda torch, v, x: None,
    "input": lambda torch, v, x: torch.autograd.grad(x * 2, v, allow_unused=True),
    "output": lambda torch, v, x: torch.autograd.grad(v, x, torch.ones(2)),
    "both": lambda torch, v, x: torch.autograd.grad(v, v, torch.ones(2)),
    "root": lambda torch, v, x: v.backward(torch.ones(2)),
    "inputs": lambda torch, v, x: (x * 2).backward(inputs=v),
    "edge": lambda torch, v, x: torch.autograd.graph.get_gradient_edge(v),
    "leaf": lambda torch, v, x: v.is_leaf,
    "hook": lambda torch, v, x: attempt(v.register_post_accumulate_grad_hook, print),
}


@case.over(asking=ASKING, grad=[True, False])
def that_had_no_node(torch, asking, grad):
    x = torch.tensor(-1.0).clone().requires_grad_()
    v = torch.zeros(3)[1:]
    v[1] = x
    with torch.set_grad_enabled(grad):
        ASKING[asking](torch, v, x)
    yield attempt(v.mul_, 2), v, x.grad
    scalar = torch.zeros(3)[1]
    scalar.view(1)[0] = x
    if asking == "root":
        with torch.set_grad_enabled(grad):
            scalar.backward()
    yield attempt(scalar.mul_, 2), scalar, x.grad


WAYS = {
    "an index": lambda x: x[...],
    "indices": lambda x: x[:, :][...],
    "a part": lambda x: x[0][...],
    "expand": lambda x: x.expand(2, 3),
    "squeeze": lambda x: x.squeeze(),
    "a view": lambda x: x.view(2, 3),
    "transposed twice": lambda x: x.t().t(),
    "conj": lambda x: torch_complex(x).conj()[...],
}


def torch_complex(x):
    return x * (1 + 0j)


@case.over(way=[*WAYS], write=["none", "view", "base", "piece", "replayed"])
def that_are_bases_and_views(torch, way, write):
    """A view that was made anew after a write gets a gradient of its own."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with torch.autograd.grad_mode._force_original_view_tracking(write == "replayed"):
        for _ in range(2):
            b = x * 1
            v = WAYS[way](b)
            b = b if v._base is None else v._base
            if write == "base":
                b.mul_(2)
            elif write == "piece":
                b[0, 0] = 3
            elif write != "none":
                v[...] *= 2
            loss = (v * v.conj()).real.sum()
            seen = []
            b.register_hook(seen.append)
            v.register_hook(seen.append)
            found = torch.autograd.grad(loss, [b, v, b, x], retain_graph=True)
            yield seen[0] is seen[-1], [[a is b for a in found] for b in found]
            yield found
            b.retain_grad()
            loss.backward(inputs=[b, v])
            yield b.grad is v.grad, b.grad, v.grad, x.grad
