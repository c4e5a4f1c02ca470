"""Hooks on tensors and nodes: what they get, when they run, what they change."""

from itertools import product

from tests.oracle import attempt, case


def leaf(torch, *values):
    data = list(values) if len(values) > 1 else values[0]
    return torch.tensor(data, requires_grad=True)


@case
def non_leaf(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    seen = []
    first = y.register_hook(lambda g: seen.append(("first", g.tolist())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("third", g.tolist())))
    y.sum().backward(retain_graph=True)
    yield seen, x.grad
    first.remove()
    y.sum().backward()
    yield seen, x.grad


@case
def leaf_hooks(torch):
    x = leaf(torch, 1.0, 2.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g + 1)
    ((x * 2).sum() + (x * x).sum()).backward()
    yield seen, x.grad
    yield torch.autograd.grad((x * 3).sum(), x), seen
    handle.remove()
    (x * 2).sum().backward()
    yield seen, x.grad, len(x._backward_hooks)


@case
def order(torch):
    x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    seen = []
    y = x * w
    z = y * y
    for name, tensor in (("x", x), ("w", w), ("y", y), ("z", z)):
        tensor.register_hook(lambda g, name=name: seen.append(name))
    x.register_post_accumulate_grad_hook(lambda t: seen.append("x done"))
    z.grad_fn.register_hook(lambda a, b: seen.append("z node"))
    z.grad_fn.register_prehook(lambda b: seen.append("z node first"))
    z.sum().backward()
    yield seen


@case
def leaf_finished_early(torch):
    x, w = leaf(torch, 1.0), leaf(torch, 2.0)
    seen = []
    y = x * 2
    z = y * w
    w.register_post_accumulate_grad_hook(lambda t: seen.append(("w", t.grad.item())))
    y.register_hook(lambda g: seen.append(("y", w.grad.item())))
    z.backward()
    yield seen


@case
def written_to(torch):
    x = leaf(torch, 1.0, 2.0)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.mul_(3)
    yield y._backward_hooks
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    yield seen, x.grad


@case
def across_reads(torch):
    x = leaf(torch, 1.0, 2.0)
    seen = []
    y = x * x
    y.register_hook(lambda g: seen.append(g.tolist()))
    yield y.tolist()
    z = (y * y).sum()
    yield z.item()
    z.backward()
    yield seen, x.grad


@case
def raising(torch):
    x, w = leaf(torch, 1.0), leaf(torch, 2.0)
    y = x * 2
    z = y * w

    def fail(grad):
        raise ValueError("no")

    y.register_hook(fail)
    yield attempt(z.backward)
    yield x.grad, w.grad
    (x * 3).backward()
    yield x.grad


@case
def errors(torch):
    x = leaf(torch, 1.0, 2.0)
    yield attempt(torch.tensor([1.0]).register_hook, print)
    yield attempt((x * 2).register_post_accumulate_grad_hook, print)
    yield attempt(torch.tensor([1.0]).register_post_accumulate_grad_hook, print)
    for result in (
        3,
        torch.tensor([1.0, 2.0, 3.0]),
        torch.tensor([1, 2]),
        torch.tensor([1.0, 2.0], dtype=torch.float64),
    ):

        def hook(grad, result=result):
            return result

        for on_leaf in (True, False):
            x = leaf(torch, 1.0, 2.0)
            y = x * 2
            (x if on_leaf else y).register_hook(hook)
            yield attempt(y.sum().backward), x.grad


@case
def node_hooks(torch):
    def run(pre=None, post=None):
        x = leaf(torch, 1.0, 2.0)
        y = x * 2
        if pre:
            y.grad_fn.register_prehook(pre)
        if post:
            y.grad_fn.register_hook(post)
        y.sum().backward()
        return x.grad

    five = torch.tensor([5.0, 5.0])
    for result in (3, (3,), (five,), (five, None), five, (), (None,), (five[:1],)):
        yield attempt(run, lambda g, r=result: r)
    for result in (3, (3,), (five,), (five, None), five, (None, None)):
        yield attempt(run, None, lambda a, g, r=result: r)


@case
def the_weight_of_a_linear_layer_is_shown_transposed(torch):
    x = torch.arange(6.0).reshape(2, 3)
    for bias in (True, False):
        for needed in (True, False):
            layer = torch.nn.Linear(3, 4, bias=bias)
            torch.nn.init.ones_(layer.weight)
            x.grad = None
            seen = []
            y = layer(x.requires_grad_(needed))
            node = y.grad_fn
            node.register_hook(lambda a, g, s=seen: s.append(a))
            node.register_hook(lambda a, g: tuple(t if t is None else t * 2 for t in a))
            node.register_hook(lambda a, g, s=seen: s.append(a))
            (y * torch.arange(4.0)).sum().backward()
            yield seen, layer.weight.grad, x.grad


@case
def hooks_of_accumulation(torch):
    x = leaf(torch, 1.0, 2.0)
    seen = []
    node = (x * 2).grad_fn.next_functions[0][0]
    node.register_prehook(lambda g: (g[0] * 10,))
    handle = node.register_hook(lambda a, g: seen.append((a, g[0].tolist())))
    (x * 2).sum().backward()
    yield x.grad, seen
    handle.remove()
    (x * 2).sum().backward()
    yield x.grad, seen
    # A first gradient is that of the leaf itself, a further one is added to it.
    x = leaf(torch, 1.0, 2.0)
    node = (x * 2).grad_fn.next_functions[0][0]
    x.register_post_accumulate_grad_hook(lambda x: (x.grad.add_(0.5), None)[1])
    node.register_hook(lambda a, g: seen.append(g[0].tolist()))
    for _ in range(2):
        (x * 2).sum().backward()
        yield x.grad, seen


@case
def multi_grad(torch):
    x, w, v = leaf(torch, 1.0), leaf(torch, 2.0), leaf(torch, 3.0)
    seen = []
    register = torch.autograd.graph.register_multi_grad_hook
    a = register(
        [x, w, v], lambda gs: seen.append([None if g is None else g.item() for g in gs])
    )
    b = register([x, w], lambda g: seen.append(g.item()), mode="any")
    (x * w).backward()
    yield seen
    (x * w * v).backward()
    yield seen
    a.remove()
    b.remove()
    (x * w).backward()
    yield seen
    yield attempt(register, [x], print, mode="some")


@case
def backward_in_a_hook(torch):
    x, w = leaf(torch, 1.0), leaf(torch, 2.0)
    y = x * 3
    y.register_hook(lambda g: (w * w).backward())
    y.backward()
    yield x.grad, w.grad


@case
def views(torch):
    x = leaf(torch, 1.0, 2.0)
    seen = []
    y = x * 2
    v = y.select(0, 0)
    v.register_hook(lambda g: seen.append(g.tolist()))
    (v * v).backward()
    yield seen, x.grad


@case
def with_create_graph(torch):
    x = leaf(torch, 2.0)
    x.register_hook(lambda g: g * g)
    (g,) = torch.autograd.grad(x**2, x, create_graph=True)
    yield g.item(), g.requires_grad


@case
def none_beside_a_gradient(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    p, q, r = x.unbind()
    seen = []
    for name, tensor in (("r", r), ("p", p), ("q", q), ("r again", r)):
        tensor.register_hook(lambda g, name=name: seen.append((name, g)))
        tensor.retain_grad()
    p.grad_fn.register_prehook(lambda gs: seen.append(gs))
    (p * r).backward(retain_graph=True)
    yield seen, p.grad, q.grad, r.grad, x.grad
    seen.clear()
    yield torch.autograd.grad(r * 1, [q, r], retain_graph=True, allow_unused=True), seen
    q.register_hook(lambda g: torch.ones(()))
    yield attempt((p * r).backward)


@case
def before_and_after_capture(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    z = (y * 3).sum()
    for inputs in ([y, x], [x], [y], [y, y]):
        yield torch.autograd.grad(z, inputs, retain_graph=True)


@case
def of_a_root_that_leads_nowhere(torch):
    x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    y = x * 2
    seen = []
    x.register_hook(lambda g: seen.append(("x", g)))
    y.register_hook(lambda g: seen.append(("y", g)))
    y.grad_fn.register_prehook(lambda g: seen.append("node"))
    y.retain_grad()
    ones = torch.ones(2)
    for roots in ([x], [y], [x, y]):
        given = [ones] * len(roots)
        yield torch.autograd.grad(roots, [w], given, True, allow_unused=True), seen
        yield y.grad
        seen.clear()
    y.backward(ones, inputs=[w])
    yield seen, y.grad, w.grad


@case.over(read=["", "before", "after"], numpy=[False, True])
def hooks_of_views_that_are_written_to(torch, read, numpy):
    """The nodes that a view was made by are no longer in its graph, nor their hooks."""
    writes = {
        "by itself": lambda v: v.add_(v),
        "by a number": lambda v: v.mul_(2),
        "a piece": lambda v: v[0].mul_(3),
        "an item": lambda v: v.__setitem__(0, 3.0),
    }
    for name, write in writes.items():
        for retain in (False, True):
            seen = []
            x = torch.tensor([[1.0, 1.25, 1.5], [1.75, 2.0, 2.25]], requires_grad=True)
            y = x * 1
            view = y.mT
            array = y.detach().numpy() if numpy else None
            if retain:
                view.retain_grad()
            else:
                view.register_hook(lambda grad, seen=seen: seen.append(grad.tolist()))
            if read == "before":
                yield view.tolist()
            write(view)
            if read == "after":
                yield view.tolist()
            (view * view.detach()).sum().backward()
            yield name, seen, x.grad, view.grad if retain else None, array


@case
def of_a_leaf_that_raises_before_the_next(torch):
    def fail(grad):
        raise ValueError("fail")

    for swapped in (False, True):
        x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
        x.register_hook(fail)
        y = w / x if swapped else x / w
        yield attempt((y * y).sum().backward), x.grad, w.grad


@case
def retained_gradients_are_objects_of_their_own(torch):
    for create in (False, True):
        x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
        y = x * x
        y.retain_grad()
        (g,) = torch.autograd.grad((y * y).sum(), [y], create_graph=create)
        yield g is y.grad, y.grad.requires_grad
        y.grad.data.mul_(2)
        yield g, y.grad
        z = x * x
        z.retain_grad()
        (z * z).sum().backward(create_graph=create)
        yield z.grad, x.grad


@case
def leaves_that_require_grad_no_more(torch):
    """Nothing is added to their `.grad`; their hooks and those of their nodes run."""

    def froze(x):
        x.requires_grad_(False)

    def left(x):
        x.detach_()

    def froze_and_thawed(x):
        x.requires_grad_(False)
        x.requires_grad_()

    for stop in (froze, left, froze_and_thawed):
        for before in (False, True):
            for inputs in (None, 0, 1):
                x = torch.tensor([1.0, 2.0], requires_grad=True)
                w = torch.tensor([3.0, 4.0], requires_grad=True)
                log = []
                x.register_hook(lambda g, log=log: log.append(("hook", g.tolist())))
                x.register_post_accumulate_grad_hook(
                    lambda p, log=log: log.append(("after", p.grad, p.requires_grad))
                )
                y = x * w
                node = y.grad_fn.next_functions[0][0]
                node.register_prehook(
                    lambda g, log=log: log.append(("node", g[0].tolist()))
                )
                node.register_hook(
                    lambda i, g, log=log: log.append((len(i), g[0].tolist()))
                )
                z = (y * x).sum()
                if before:
                    x.grad = torch.ones(2)
                    z.tolist()
                stop(x)
                if inputs is None:
                    z.backward(retain_graph=True)
                    z.backward()
                else:
                    try:
                        z.backward(inputs=[(x, w)[inputs]])
                    except RuntimeError as error:
                        yield str(error)
                yield x.grad, w.grad, log
                if not inputs:
                    x.requires_grad_()
                    (x * 5).sum().backward()
                    yield x.grad, log


@case
def results_that_become_leaves(torch):
    """Their hooks stay at the node that made them, and go along."""
    for later in (False, True):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        log = []
        handle = y.register_hook(lambda g, log=log: log.append(("first", g.tolist())))
        z = (y * 3).sum()
        y.detach_()
        y.requires_grad_()
        if later:
            y.register_hook(lambda g, log=log: log.append(("second", g.tolist())))
        (y * 5).sum().backward(retain_graph=True)
        z.backward(retain_graph=True)
        handle.remove()
        z.backward()
        (y * 7).sum().backward()
        yield y.grad, x.grad, log


@case
def leaves_that_get_no_gradient(torch):
    """All that hangs on them is called, with None."""

    class ForSecond(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 1, y * 1

        @staticmethod
        def backward(ctx, first, second):
            return None, second

    def show(grad):
        return None if grad is None else grad.tolist()

    def hang(x, log, kinds):
        if "tensor" in kinds:
            x.register_hook(lambda g: log.append(("tensor", show(g))))
        if "after" in kinds:
            x.register_post_accumulate_grad_hook(
                lambda p: log.append(("after", show(p.grad)))
            )
        if "replace" in kinds:
            x.register_hook(lambda g: torch.ones(2))
        if "node" in kinds:
            node = torch.autograd.graph.get_gradient_edge(x).node
            node.register_prehook(lambda g: log.append(("before", show(g[0]))))
            node.register_hook(lambda i, g: log.append((len(i), show(g[0]))))
            kept.append(node)

    kept = []
    every = "tensor after node"
    for kinds in ("", "after", "tensor", "node", every, "replace", "", every):
        for more in (False, True):
            x = leaf(torch, 1.0, 2.0)
            y = leaf(torch, 3.0, 4.0)
            log = []
            hang(x, log, kinds)
            for asked in (None, None, [x], [y]):
                a, b = ForSecond.apply(x * 2, y)
                z = (a + b).sum() + (x * 5).sum() * more
                try:
                    z.backward(inputs=asked)
                except RuntimeError as error:
                    yield str(error)
            z = sum(ForSecond.apply(x, y)).sum() + (x * 5).sum() * more
            yield attempt(torch.autograd.grad, z, [x, y], allow_unused=True)
            yield x.grad, y.grad, log


@case
def several_leaves_asked_for(torch):
    """A hook of several leaves, and a pass that gives gradients instead of adding."""
    x = leaf(torch, 1.0, 2.0)
    y = leaf(torch, 3.0, 4.0)
    log = []
    for mode in ("all", "any"):
        torch.autograd.graph.register_multi_grad_hook(
            [x, y], lambda g, mode=mode: log.append((mode, len(g))), mode=mode
        )
    for asked in ([x], [x, y]):
        yield attempt(torch.autograd.grad, (x * y).sum(), asked)
        (x * y).sum().backward(inputs=asked)
        yield x.grad, y.grad, log


@case
def replaced_where_there_is_no_gradient(torch):
    """Hooks of nodes may not give a gradient where none has come."""
    for make in (lambda x: x.unbind(), lambda x: x.split(1), lambda x: (x * 2,)):
        for used in (0, -1):
            x = leaf(torch, 1.0, 2.0)
            outs = make(x)
            node = outs[0].grad_fn
            node.register_prehook(lambda g: tuple(torch.ones(()) for _ in g))
            yield attempt(outs[used].sum().backward), x.grad
    x, y = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    z = x * y
    z.grad_fn.register_hook(lambda i, o: (torch.ones(2), torch.ones(2)))
    yield attempt(torch.autograd.grad, z.sum(), x, retain_graph=True)
    yield torch.autograd.grad(z.sum(), [x, y])


@case
def node_hooks_of_views_that_are_written_to(torch):
    """A write through a view leaves the nodes on its way to the base out."""
    ways = {
        "before": lambda node, log: node.register_prehook(lambda o: log.append(o)),
        "after": lambda node, log: node.register_hook(lambda i, o: log.append((i, o))),
    }
    views = {
        "whole": lambda x: [x.reshape(-1)],
        "column": lambda x: [x.view(3, 1)],
        "chain": lambda x: [piece := x[:], piece[1:]],
        "noted": lambda x: [piece := x[:], piece.tolist(), piece[1:]],
    }
    for (when, way), (name, make), first, read in product(
        ways.items(), views.items(), (False, True), range(4)
    ):
        log = []
        w = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        x = w * 2
        steps = make(x)
        view = steps[-1]
        way((steps[0] if first else view).grad_fn, log)
        if read == 1:
            view.tolist()
        elif read == 2:
            x.tolist()
        elif read == 3:
            (view * 2).tolist()
        view.sub_(1)
        for root in (x, view):
            (grad,) = torch.autograd.grad((root * 2).sum(), [w], retain_graph=True)
            yield when, name, first, read, grad, log


@case.over(create_graph=[False, True], read=[False, True])
def of_a_root_that_nobody_asks_for(torch, create_graph, read):
    """A leaf that got a hook after the same call had been made without it."""

    def boom(grad):
        raise RuntimeError("boom")

    x = torch.ones(2, requires_grad=True)
    root = torch.tensor(0.5, requires_grad=True)
    for _ in range(3):
        for hooked in (False, False, True, False):
            handle = root.register_hook(boom) if hooked else None
            yield attempt(
                torch.autograd.grad,
                root,
                [x],
                allow_unused=True,
                create_graph=create_graph,
            )
            if handle is not None:
                handle.remove()
            if read:
                (root + x).tolist()


_LAYERS = {
    "linear": lambda nn: (nn.Linear(2, 3), (4, 2)),
    "batch of linear": lambda nn: (nn.Linear(2, 3), (4, 5, 2)),
    "deep": lambda nn: (
        nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2, bias=False)),
        (4, 2),
    ),
    "attention": lambda nn: (nn.TransformerEncoderLayer(4, 2, 8, 0.0), (3, 2, 4)),
    "lstm": lambda nn: (nn.LSTM(2, 3), (4, 1, 2)),
    "gru": lambda nn: (nn.GRU(2, 3), (4, 1, 2)),
    "rnn": lambda nn: (nn.RNN(2, 3, 2), (4, 1, 2)),
    "cell": lambda nn: (nn.GRUCell(2, 3), (4, 2)),
    "convolution": lambda nn: (nn.Conv1d(2, 3, 1), (1, 2, 4)),
}


@case.over(*_LAYERS)
def order_of_a_layers_parameters(torch, name):
    layer, shape = _LAYERS[name](torch.nn)
    x, seen = torch.ones(shape, requires_grad=name != "lstm"), []
    for named, p in layer.named_parameters():
        p.register_hook(lambda g, named=named: seen.append(named))
        p.register_post_accumulate_grad_hook(lambda p, at=named: seen.append(at + "!"))
    for _ in range(3):
        out = layer(x)
        out = out[0] if isinstance(out, tuple) else out
        (out * torch.arange(out.numel()).view(out.shape)).sum().backward()
        yield seen.copy()
        seen.clear()


@case
def results_after_accumulating(torch):
    """The leaf itself may be given, as functions in place do."""

    def step(p, rate):
        with torch.no_grad():
            return p.add_(p.grad, alpha=-rate)

    for result in (step, lambda p, _: p, lambda p, _: p.grad, lambda p, _: 3):
        x, seen = torch.ones(2, requires_grad=True), []
        x.register_post_accumulate_grad_hook(lambda p, f=result: f(p, 0.5))
        x.register_post_accumulate_grad_hook(lambda p, seen=seen: seen.append(len(p)))
        for _ in range(2):
            yield attempt((x * 3).sum().backward), x, x.grad, len(seen)
