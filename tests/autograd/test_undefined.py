"""Gradients that are None pass through the graph; code on the way is called."""

from __future__ import annotations

from tests.oracle import attempt, case


class Graph:
    """Functions and hooks that note what they are called with."""

    def __init__(self, torch):
        def double(name, materialize=True, several=False):
            class F(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.set_materialize_grads(materialize)
                    return (x * 2, x * 3) if several else x * 2

                @staticmethod
                def backward(ctx, *grads):
                    self.note(name, grads)
                    return None if grads[0] is None else grads[0] * 2

            return F.apply

        class Nothing(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return None

        self.log = []
        self.kept = []
        self.nothing = Nothing.apply
        self.function = double("function")
        self.unmaterialized = double("unmaterialized", materialize=False)
        self.several = double("several", several=True)

    def note(self, what, *given):
        shown = [[None if g is None else g.tolist() for g in grads] for grads in given]
        self.log.append((what, *shown))

    def hooked(self, x):
        x.register_hook(lambda grad: self.note("hook", [grad]))
        return x

    def node_hooked(self, x):
        node = x.grad_fn
        node.register_prehook(lambda grads: self.note("before", grads))
        node.register_hook(lambda inputs, grads: self.note("after", inputs, grads))
        return x

    def dropped(self, x):
        x = x * 2
        x.grad_fn.register_hook(lambda inputs, grads: (None,) * len(inputs))
        return x

    def kept_grad(self, x):
        x.retain_grad()
        self.kept.append(x)
        return x


FIRST = {
    "function": lambda graph, x: graph.function(x),
    "unmaterialized": lambda graph, x: graph.unmaterialized(x),
    "several": lambda graph, x: graph.several(x)[0],
    "operator": lambda graph, x: x * 1,
    "leaf": lambda graph, x: x,
    "hook": lambda graph, x: graph.hooked(x * 1),
    "hooks around": lambda graph, x: graph.hooked(graph.function(graph.hooked(x * 1))),
    "node hook": lambda graph, x: graph.node_hooked(graph.function(x)),
    "retained": lambda graph, x: graph.kept_grad(x * 1),
    "one of several": lambda graph, x: x.unbind(0)[1],
}
MIDDLE = {
    "": lambda graph, x: x,
    "operator": lambda graph, x: x.exp().view(-1),
    "hooks": lambda graph, x: graph.node_hooked(graph.hooked(x * 1)),
}
LAST = {
    "nothing": lambda graph, x: graph.nothing(x),
    "and something": lambda graph, x: graph.nothing(x) + x,
    "twice": lambda graph, x: graph.nothing(x).sum() + graph.nothing(x * 2).sum(),
    "dropped": lambda graph, x: graph.dropped(x),
}


@case.over(last=list(LAST), read=[False, True])
def ways_through(torch, last, read):
    for first in FIRST:
        for middle in MIDDLE:
            for _ in range(2):  # what was met before is repeated
                graph = Graph(torch)
                x = torch.tensor([1.0, 2.0], requires_grad=True)
                out = MIDDLE[middle](graph, FIRST[first](graph, x))
                if read:
                    out.tolist()
                LAST[last](graph, out).sum().backward()
                yield first, middle, x.grad, graph.log
                yield [each.grad for each in graph.kept]


@case
def asked_for(torch):
    for first in FIRST:
        graph = Graph(torch)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        out = graph.nothing(FIRST[first](graph, x)).sum()
        unused = {"allow_unused": True, "retain_graph": True}
        yield torch.autograd.grad(out, x, **unused)
        found = torch.autograd.grad(out, x, create_graph=True, **unused)
        yield [None if g is None else (g.tolist(), g.requires_grad) for g in found]
        yield attempt(torch.autograd.grad, out, x)
        yield graph.log


@case
def beside_others(torch):
    """A leaf is finished when all ways to it were gone, those without one, too."""
    graph = Graph(torch)
    w = torch.ones(2, requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda w: graph.note("done", [w.grad]))
    v = torch.ones(2, requires_grad=True)
    v.register_hook(lambda grad: graph.note("v", [grad]))
    (graph.nothing(w * 2 * v) + w * v).sum().backward()
    yield graph.log, w.grad, v.grad


@case
def outputs_of_modules(torch):
    class Split(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.weight, x * self.weight

    log = []
    module = Split()
    module.register_full_backward_hook(
        lambda module, inputs, outputs: log.append((inputs, outputs))
    )
    for k in range(2):
        x = torch.ones(2, requires_grad=True)
        module(x)[k].sum().backward()
        yield x.grad, module.weight.grad, log


@case
def hooks_of_nodes_with_integer_outputs(torch):
    for name in ("max", "sort", "topk", "mode", "cummax"):
        log = []
        x = torch.tensor([[1.0, 5.0, 2.0]], requires_grad=True)
        given = (1,) if name == "topk" else ()
        node = getattr(x, name)(*given, dim=1)[0].grad_fn
        node.register_prehook(lambda grads, log=log: log.append(len(grads)))
        node.register_hook(lambda inputs, grads, log=log: log.append(len(grads)))
        out = getattr(x, name)(*given, dim=1)[0]
        yield node.name(), attempt(node), len(node(torch.ones_like(out)).shape), log


@case
def hooks_of_accumulation_that_return_something(torch):
    returned = (None, 5, [], (), (None,), (torch.ones(2),), (torch.ones(3),))
    for kind in ("register_hook", "register_prehook"):
        for value in returned:
            x = torch.ones(2, requires_grad=True)
            node = torch.autograd.graph.get_gradient_edge(x).node
            getattr(node, kind)(lambda *given, value=value: value)
            yield attempt((x * 2).sum().backward), x.grad


@case
def hooks_of_several_tensors_of_a_generator(torch):
    tensors = [torch.ones(2, requires_grad=True) for _ in range(2)]
    for mode in ("all", "any"):
        register = torch.autograd.graph.register_multi_grad_hook
        handle = attempt(register, (t for t in tensors), print, mode=mode)
        yield type(handle).__name__


@case
def gradients_of_numbers(torch):
    reductions = "prod cumprod logcumsumexp logsumexp cumsum amax norm softmax"
    for name in reductions.split():
        x = torch.tensor(2.0, requires_grad=True) * 1
        args = (0,) if name not in ("prod", "norm") else ()
        y = getattr(x, name)(*args)
        (grad,) = torch.autograd.grad(y, x, create_graph=True)
        yield name, grad.requires_grad, grad.grad_fn is None
    for shape in ((), (1,), (3,)):
        x = torch.ones(shape, requires_grad=True) * 1
        yield attempt(torch.autograd.grad, x.prod(), x, create_graph=True)
    x = torch.ones(3, requires_grad=True) * 1
    (grad,) = torch.autograd.grad(torch.trapezoid(x), x, create_graph=True)
    yield grad, grad.requires_grad
