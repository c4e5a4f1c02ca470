"""What a custom function returns: tensors by where they come from, and gradients."""

from __future__ import annotations

import numpy as np

from tests.oracle import attempt, case

INPUTS = {
    "leaf": lambda torch, a: a,
    "result": lambda torch, a: a * 1,
    "view": lambda torch, a: (a * 1)[1:],
    "piece": lambda torch, a: (a * 1).split([1, 2])[1],
    "data": lambda torch, a: a.data,
    "plain": lambda torch, a: torch.ones(3),
    "plain view": lambda torch, a: torch.ones(3)[1:],
}


def function(torch, forward, backward=lambda ctx, *grads: None):
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("F", (torch.autograd.Function,), body)


def traits(torch, out):
    """What a tensor is, apart from its value."""
    if not isinstance(out, torch.Tensor):
        return out
    shown = out.requires_grad, out.is_leaf, out._is_view(), out._version, out.output_nr
    node = out.grad_fn
    if node is None:
        return *shown, None, []
    return *shown, node.name(), [(n and n.name(), k) for n, k in node.next_functions]


@case.over(
    returns=[
        *("x", "x * 2", "x.view(-1)", "x[:1]", "x.detach()", "x.data", "(x, x)"),
        *("(x[:1], x * 2)", "(None, x * 2)", "(5, x.long(), x * 2)", "y[:1]"),
        *("(y[:1], y)", "[x]", "(x * 2, [x])", "G", "G[:1]", "x.unbind(0)"),
    ]
)
def tensors(torch, returns):
    def forward(ctx, x):
        return eval(returns, {"x": x, "y": x * 3, "G": held[0]})

    for kind, make in INPUTS.items():
        for mode in (True, False):
            held = [torch.ones(2, requires_grad=True) * 1]
            x = make(torch, torch.tensor([1.0, 2.0, 3.0], requires_grad=True))
            with torch.set_grad_enabled(mode):
                outs = function(torch, forward).apply(x)
            yield kind, mode, outs is x
            for out in outs if isinstance(outs, tuple) else (outs,):
                yield attempt(traits, torch, out)
            yield traits(torch, x)


@case.over(
    returns=["x", "x[:1]", "(x[:1], x * 2)", "(x, x)", "y[:1]", "(y[:1], y)", "x * 2"],
    marks=[False, True],
)
def written_afterwards(torch, returns, marks):
    def forward(ctx, x):
        found = eval(returns, {"x": x, "y": x * 3})
        if marks:
            first = found[0] if isinstance(found, tuple) else found
            ctx.mark_non_differentiable(first)
        return found

    def written(write, out, x, w, tracked):
        with torch.set_grad_enabled(tracked):
            write(out, x, w)

    writes = {
        "output": lambda out, x, w: out.mul_(w),
        "output by a number": lambda out, x, w: out.mul_(2),
        "input": lambda out, x, w: x.mul_(w),
    }
    for kind in ("leaf", "result", "view", "plain"):
        for name, write in writes.items():
            for tracked in (True, False):
                w = torch.tensor(2.0, requires_grad=True)
                x = INPUTS[kind](torch, torch.ones(3, requires_grad=True))
                out = function(torch, forward).apply(x)
                out = out[0] if isinstance(out, tuple) else out
                yield kind, name, tracked
                yield attempt(written, write, out, x, w, tracked)
                yield attempt(traits, torch, out)
                yield attempt(lambda out=out: out * 2)
                yield attempt(out.detach_)
                wanted = {"allow_unused": True}
                yield attempt(torch.autograd.grad, x.sum(), w, **wanted)


@case
def roots_that_are_views(torch):
    def forward(ctx, x):
        return x[:2], x, x * 2

    def backward(ctx, *grads):
        seen.append(grads)
        return torch.ones(3)

    seen: list = []
    for k in range(3):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        outs = function(torch, forward, backward).apply(x)
        given = torch.full_like(outs[k], 3)
        yield torch.autograd.grad(outs[k], x, given, retain_graph=True)
        edge = torch.autograd.graph.get_gradient_edge(outs[k])
        yield edge.output_nr, torch.autograd.grad(edge, x, given)
    yield seen


@case
def edges_of_outputs_after_others(torch):
    def forward(ctx, x):
        return None, x.long(), x * 2, 5, x * 3

    def backward(ctx, *grads):
        seen.append([None if g is None else g.tolist() for g in grads])
        return sum(g for g in grads if g is not None)

    seen: list = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    outs = function(torch, forward, backward).apply(x)
    edges = [torch.autograd.graph.get_gradient_edge(outs[k]) for k in (2, 4)]
    for edge in edges:
        yield edge.node.name(), edge.output_nr
        yield torch.autograd.grad(edge, x, torch.ones(2), retain_graph=True)
    yield outs[4].exp().grad_fn.next_functions[0][1]
    yield torch.autograd.grad(outs[4].sum(), edges, allow_unused=True)
    yield seen


RETURNED = {
    **{str(n): lambda ctx, g, n=n: (g,) * n for n in range(5)},
    "more of nothing": lambda ctx, g: (g, g, None, None, None),
    "list": lambda ctx, g: [g, g, None],
    "array": lambda ctx, g: (np.ones(3), g, None),
    "number": lambda ctx, g: (1.0, g, None),
    "nested": lambda ctx, g: ((g, g), g, None),
    "short": lambda ctx, g: (g[:2], g, None),
    "to sum": lambda ctx, g: (g.expand(2, 3), g, None),
    "to sum all": lambda ctx, g: (g[None], g.double(), None),
    "column": lambda ctx, g: (g[:, None], g, None),
    "scalar": lambda ctx, g: (g.sum(), g, None),
    "long": lambda ctx, g: (g.long(), g.bool(), None),
    "complex": lambda ctx, g: (g * 1j, g, None),
    "meta": lambda ctx, g: (g.to("meta"), g, None),
    "meta scalar": lambda ctx, g: (g, g.sum().to("meta"), None),
    "for the number": lambda ctx, g: (g, g, g),
}


@case.over(complex=[False, True])
def gradients(torch, complex):
    for name, backward in RETURNED.items():
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        if complex:
            x = torch.tensor([1j, 2.0, 3.0], requires_grad=True)
        y = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)

        def forward(ctx, x, y, n):
            return x * y

        out = function(torch, forward, backward).apply(x, y, 5).abs().sum()
        yield name
        yield attempt(torch.autograd.grad, out, (x, y), retain_graph=True)
        # Those that are not asked for are checked, too.
        yield attempt(torch.autograd.grad, out, x, allow_unused=True)


@case.over(reads=[1, 2], retain=[False, True])
def saved_tensors_that_are_read_once(torch, reads, retain):
    class Squared(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            for _ in range(reads):
                (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    out = Squared.apply(x)
    yield attempt(out.sum().backward, retain_graph=retain)
    yield x.grad
    yield attempt(out.sum().backward)
    yield attempt(lambda: out.grad_fn.saved_tensors)


@case
def marks_of_what_is_no_tensor(torch):
    calls = ("save_for_backward", "mark_dirty", "mark_non_differentiable")
    for call in (*calls, "set_materialize_grads"):
        for what in (None, 5, "a", [torch.ones(2)], np.ones(2)):
            for requires_grad in (True, False):

                def forward(ctx, x, call=call, what=what):
                    getattr(ctx, call)(what)
                    return x * 2

                x = torch.ones(2, requires_grad=requires_grad)
                yield attempt(function(torch, forward).apply, x)


def _positional_only(ctx, a, /, b):
    return a * b


FORWARDS = {
    "plain": lambda ctx, a, b: a * b,
    "default": lambda ctx, a, b=2: a * b,
    "keyword": lambda ctx, a, *, b=3: a * b,
    "positions": lambda ctx, *a: a[0] * 2,
    "keywords": lambda ctx, a, **k: a * 2,
    "positional": _positional_only,
}
SEPARATE = {
    "plain": lambda a, b: a * b,
    "default": lambda a, b=2: a * b,
    "keyword": lambda a, *, b=3: a * b,
    "positions": lambda *a: a[0] * 2,
    "keywords": lambda a, **k: a * 2,
}


@case.over(*FORWARDS)
def arguments(torch, kind):
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    calls = [
        ((x, y), {}),
        ((x,), {}),
        ((x,), {"b": y}),
        ((), {"a": x, "b": y}),
        ((), {"b": x}),
        ((x, y), {"b": y}),
        ((x, y), {"c": 1}),
        ((x,), {"ctx": 1}),
        ((x, y, 3), {}),
    ]
    made = function(torch, FORWARDS[kind])
    apart = function(torch, SEPARATE.get(kind, FORWARDS[kind]))
    apart.setup_context = staticmethod(lambda ctx, inputs, output: seen.append(inputs))
    for given, keywords in calls:
        seen: list = []
        for each in (made, apart):
            out = attempt(each.apply, *given, **keywords)
            yield out
            if isinstance(out, torch.Tensor):
                yield out.grad_fn.needs_input_grad, seen


@case
def nodes_are_not_copied(torch):
    import copy
    import pickle

    x = torch.ones(2, requires_grad=True)
    for node in (
        function(torch, lambda ctx, x: x * 2).apply(x).grad_fn,
        (x * 2).grad_fn,
    ):
        yield attempt(copy.copy, node), attempt(copy.deepcopy, node)
        yield attempt(pickle.dumps, node)
    yield attempt(setattr, (x * 2).grad_fn, "note", 5)


BODIES = {
    "as it is": lambda ctx, x: x,
    "piece": lambda ctx, x: x[:2],
    "view_as": lambda ctx, x: x.view_as(x),
    "detach": lambda ctx, x: x.detach(),
    "data": lambda ctx, x: x.data,
    "pieces": lambda ctx, x: (x[:2], x[1:]),
    "piece and result": lambda ctx, x: (x[:2], x * 2),
    "unbind": lambda ctx, x: x.unbind()[0],
    "expand": lambda ctx, x: x.expand(2, 3),
    "view of a result": lambda ctx, x: (x * 2)[:2],
    "twice": lambda ctx, x: (lambda v: (v, v))(x[:2]),
}
ROOTS = {
    "plain": lambda torch: (x := torch.ones(3), x),
    "leaf": lambda torch: (x := torch.ones(3, requires_grad=True), x),
    "result": lambda torch: (x := torch.ones(3, requires_grad=True) * 1, x),
    "view": lambda torch: (x := torch.ones(3, requires_grad=True) * 1, x[:]),
    "view of a leaf": lambda torch: (x := torch.ones(3, requires_grad=True), x[:]),
    "one of several": lambda torch: (x := torch.ones(1, 3), x.unbind()[0]),
    "custom": lambda torch: (
        x := torch.ones(3, requires_grad=True) * 1,
        function(torch, lambda ctx, x: x.view(3)).apply(x),
    ),
}


@case.over(body=list(BODIES))
def bases_of_views(torch, body):
    def constant(ctx, x):
        found = BODIES[body](ctx, x)
        ctx.mark_non_differentiable(*(found if isinstance(found, tuple) else [found]))
        return found

    for make in ROOTS.values():
        for made in function(torch, BODIES[body]), function(torch, constant):
            for mode in True, False:
                root, x = make(torch)
                with torch.set_grad_enabled(mode):
                    outs = made.apply(x)
                yield mode, x is root
                for out in outs if isinstance(outs, tuple) else (outs,):
                    with torch.no_grad():
                        hidden = out.view_as(out)
                    for view in out, out[...], out.detach(), hidden:
                        base = view._base
                        known = [base is t for t in (None, root, x, out)]
                        yield known, view._is_view(), view.requires_grad
