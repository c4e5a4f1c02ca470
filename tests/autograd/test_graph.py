"""`torch.autograd.graph`: saved values, writes to them, and what the graph tells."""

import re

from tests.oracle import attempt, case


def leaf(torch, *values):
    return torch.tensor(list(values), requires_grad=True)


@case
def hooks_on_one_saved_value(torch):
    a = leaf(torch, 1.0, 2.0)
    y = a * a
    saved = y.grad_fn._raw_saved_self
    yield str(type(saved)), saved.data, saved.unpack(), saved.unpack_hook
    log = []
    register = saved.register_hooks
    register(
        lambda x: log.append(("pack", x.tolist(), x.requires_grad)) or x * 2,
        lambda x: log.append("unpack") or x * 10,
    )
    yield list(log), saved.data, saved.unpack(), y.grad_fn._saved_self
    yield attempt(register, lambda x: x, lambda x: x)
    y.sum().backward()
    yield a.grad, list(log), saved.data
    yield attempt(register, lambda x: x, lambda x: x)
    y = a.exp()
    saved = y.grad_fn._raw_saved_result
    yield attempt(saved.register_hooks, lambda x: x.add_(1), lambda x: x)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        y = a * a
    saved = y.grad_fn._raw_saved_other
    yield attempt(saved.register_hooks, lambda x: x, lambda x: x)
    y = a * a
    y.grad_fn._raw_saved_self.register_hooks(lambda x: x.tolist(), torch.tensor)
    (g,) = torch.autograd.grad(y.sum(), a, create_graph=True)
    yield torch.autograd.grad(g.sum(), a)


@case
def writing_to_saved_values(torch):
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors
    for f in (lambda b: b**2, torch.sin, torch.exp, lambda b: b * b.detach()):
        with allow() as context:
            a = leaf(torch, 1.0, 2.0)
            b = a.clone()
            out = f(b).sum()
            b.sin_()
            out.backward()
            yield a.grad, b
        yield len(context.cloned), len(context.original)


@case
def writing_through_views_and_several_times(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(torch, 1.0, 2.0, 3.0)
        b = a.clone()
        c = b * b
        b[0].mul_(5)
        d = b * b
        b.zero_()
        (c + d).sum().backward()
        yield a.grad, b, len(context.cloned)


@case
def writing_outside(torch):
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors
    with allow():
        a = leaf(torch, 1.0, 2.0)
        y = (a * a).sum()
    yield attempt(y.backward)

    def twice():
        with allow(), allow():
            pass

    yield attempt(twice)
    with allow():
        y = (a * a).sum()
        y.backward()
    yield a.grad


@case
def hooks_keep_what_is_overwritten(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    a = leaf(torch, 1.0, 2.0)
    b = a * 2
    with hooks(lambda x: x.clone(), lambda x: x):
        y = b * b
        z = b.exp()
    b.mul_(3)
    z.mul_(2)
    (y + z).sum().backward()
    yield a.grad


@case
def nodes(torch):
    graph = torch.autograd.graph
    a = leaf(torch, 1.0, 2.0)
    y = (a * 2).exp()
    node = y.grad_fn
    yield isinstance(node, graph.Node), issubclass(type(node), graph.Node)
    yield isinstance(a, graph.Node)
    accumulate = node.next_functions[0][0].next_functions[0][0]
    yield isinstance(accumulate, graph.Node), accumulate.name()
    yield "variable" in dir(accumulate), [n for n in dir(accumulate) if "saved" in n]
    later = y.sin().grad_fn
    yield later._sequence_nr() > node._sequence_nr()
    node.metadata["key"] = 3
    yield y.grad_fn.metadata, node is y.grad_fn
    edge = graph.get_gradient_edge(y)
    yield isinstance(edge, graph.GradientEdge), edge.node is node, edge.output_nr
    yield torch.autograd.grad(y.sum(), edge)
    yield attempt(graph.get_gradient_edge, a.detach())


@case
def budgets_and_streams(torch):
    graph = torch.autograd.graph
    for budget in (True, "a", 2.0, 0.5):
        yield attempt(
            lambda b=budget: graph.region_activation_memory_budget(b).__enter__()
        )
    yield graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    yield graph.set_override_stale_capture_stream(False)
    yield sorted(graph.__all__)


@case.over("all", "any")
def hooks_on_several_gradients(torch, mode):
    register = torch.autograd.graph.register_multi_grad_hook
    log = []
    a, b, c = leaf(torch, 1.0), leaf(torch, 2.0), leaf(torch, 3.0)
    d = a * b

    def note(grads):
        log.append([None if g is None else g.tolist() for g in grads])

    handle = register([a, b, c, d], note, mode=mode)
    (d * c).backward(retain_graph=True)
    yield list(log)
    d.backward(retain_graph=True)
    yield list(log)
    d.backward(inputs=[a], retain_graph=True)
    yield list(log)
    handle.remove()
    (d * c).backward()
    yield log
    yield attempt(register, [a], note, mode="some")


@case
def node_of_zeros(torch):
    x = torch.ones(3, requires_grad=True)
    for read in (False, True):
        for y in (x * 2, (x * 2)[:2]):
            if read:
                yield y.tolist()
            yield type(y.zero_().grad_fn).__name__
    with torch.no_grad():
        yield x.zero_(), x.grad_fn, x.is_leaf


@case
def twice_where_saved_tensors_may_change(torch):
    """Gradients of gradients, several times, while saved tensors are written to."""
    for _ in range(3):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
            b = x * 1
            y = b * b * x
            b.mul_(2)
            (g,) = torch.autograd.grad(y.sum(), [x], create_graph=True)
            h = (g * g).exp().mean() * 1e-3
            g.zero_()
            yield torch.autograd.grad(h, [x]), len(context.cloned) > 0


@case.over(of=["result", "leaf", "view", "constant"], written=[False, True])
def edges_of_views_without_history(torch, of, written):
    """Views made under `no_grad` have no node that a gradient goes to."""
    graph = torch.autograd.graph
    x = torch.ones(2, requires_grad=True)
    base = {"leaf": x, "constant": torch.ones(2)}.get(of)
    base = x * 2 if base is None else base
    with torch.no_grad():
        view = base.view(-1)[:1] if of == "view" else base[:1]
    if written:
        yield attempt(base.mul_, x)
    elif of == "constant":
        base.requires_grad_()
    yield view.requires_grad, attempt(lambda: view.grad_fn)
    yield attempt(lambda: type(graph.get_gradient_edge(view).node).__name__)
    for mode in "all", "any":
        both = base, view
        yield attempt(
            lambda m, both: graph.register_multi_grad_hook(both, print, mode=m) and 1,
            mode,
            both,
        )
    yield attempt(torch.autograd.grad, base.sum(), view, allow_unused=True)


@case
def hooks_of_saved_values_given_wrongly(torch):
    def text(*arguments, **keywords):
        a = leaf(torch, 1.0)
        saved = (a * a).grad_fn._raw_saved_self
        message = str(attempt(saved.register_hooks, *arguments, **keywords))
        return re.sub("<[^>]*SavedTensor object at [^>]*>", "<saved>", message)

    for given in ((), (1,), (1, 1), (print,), (print, 1), (print, print, print)):
        yield text(*given)
    yield text(pack_hook=1, unpack_hook=1)


@case
def what_arrives_at_a_node(torch):
    a = leaf(torch, 1.0, 2.0)
    b = a * 2
    parts = b.split(1)
    for node in (b.grad_fn, parts[0].grad_fn, b.grad_fn.next_functions[0][0]):
        for each in node._input_metadata:
            yield each.shape, each.dtype, each.device
            yield each.is_nested_tensor, each.is_cpp_nested_tensor
            yield type(each).__name__


@case
def views_of_another_base(torch):
    a = leaf(torch, 1.0, 2.0, 3.0, 4.0)
    b = a.clone()
    rows = b.view(2, 2)
    v = rows[1]
    yield v._view_func(torch.arange(4.0)), rows._view_func(torch.arange(4.0))
    yield v._view_func(a), v._view_func(torch.ones(5)), v._view_func(torch.ones(2, 2))
    yield b._view_func(b), a._view_func(b), v._view_func(torch.ones(4).double())
    c = torch.view_as_complex(rows)
    yield c._view_func(torch.arange(4.0)), c.real._view_func(torch.arange(4.0))
    yield attempt(v._view_func, 3)


@case
def saved_values_are_the_tensors(torch):
    a = leaf(torch, 1.0, 2.0)
    b = a * a
    c = a * b
    yield c.grad_fn._saved_self is a, c.grad_fn._saved_other is b
    for x in (a, b):
        y = x * x
        y.grad_fn._raw_saved_self.register_hooks(lambda t: 2 * t, lambda t: t / 2)
        yield y.grad_fn._saved_self.grad_fn is x.grad_fn, y.grad_fn._saved_self
        edges = (y.grad_fn._saved_self + 1).grad_fn.next_functions
        yield [type(node).__name__ for node, _ in edges]
    y = a.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    yield y.grad_fn._saved_result.grad_fn is y.grad_fn
    y.sum().backward()
    yield a.grad


@case
def saved_results_are_other_tensors(torch):
    a = leaf(torch, 1.0, 2.0)
    y = a.exp()
    saved = y.grad_fn._saved_result
    yield saved is y, saved.equal(y), saved.grad_fn is y.grad_fn, saved
    z = y * y
    yield z.grad_fn._saved_self is y, z.grad_fn._saved_self.equal(saved)
    y = a.exp()
    y.tolist()
    z = y * y
    yield z.grad_fn._saved_self is y
    torch.autograd.backward([saved, z], [torch.ones(2)] * 2)
    yield a.grad


@case
def whether_tensors_are_there(torch):
    a = leaf(torch, 1.0)
    refs = [torch._C._WeakTensorRef(t) for t in (a, a * 2)]
    yield [ref.expired() for ref in refs], torch._C.is_grad_enabled()
    with torch.no_grad():
        yield torch._C.is_grad_enabled(), torch._C.is_inference_mode_enabled()


@case
def what_all_nodes_are(torch):
    Node = torch.autograd.graph.Node
    a = leaf(torch, 1.0, 2.0)
    b = a.exp()

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    nodes = b.grad_fn, b.grad_fn.next_functions[0][0], Same.apply(a).grad_fn
    for node in nodes:
        yield isinstance(node, Node), issubclass(type(node), Node)
        yield Node in type(node).mro()
    functions = torch._C._functions
    yield issubclass(functions.DelayedError, Node), issubclass(Node, Node)
    yield issubclass(functions.AccumulateGrad, Node), isinstance(Node, Node)
    yield isinstance(None, Node), isinstance(1, Node), issubclass(int, Node)
    yield issubclass(torch.autograd.function.BackwardCFunction, Node)
    yield attempt(Node)


@case
def views_made_again_otherwise(torch):
    base = torch.arange(60.0).view(3, 4, 5).clone()
    other = base * 2
    wider = torch.arange(120.0).view(3, 4, 10)
    with torch.autograd._force_original_view_tracking(True):
        view = base.select(1, 2)
        yield view._view_func(other), view._view_func(wider)
        yield view._view_func(other, symint_visitor_fn=lambda n: n + 1)
        yield view._view_func(other), view._view_func_unsafe(wider)
        yield view._view_func_unsafe(wider, symint_visitor_fn=lambda n: n - 1)
        grown = torch.ones(4, 1).expand(4, 3)
        yield grown._view_func_unsafe(torch.ones(5, 1), lambda n: n + 1)
        chain = base.narrow(0, 1, 2).transpose(0, 1).select(1, 1)
        yield chain._view_func_unsafe(wider)
        yield attempt(base._view_func_unsafe, 3)


@case
def a_hook_hung_while_values_are_unpacked(torch):
    log = []

    def unpack(x):
        node = torch._C._current_autograd_node()
        node.register_hook(lambda i, o: log.append((node.name(), i)))
        return x

    a = leaf(torch, 1.0, 2.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        b = a.sin()
    b.sum().backward()
    return log


@case
def calling_the_node_of_a_leaf(torch):
    """It accumulates, and runs none of its own hooks."""
    x = torch.ones(3, requires_grad=True)
    node = torch.autograd.graph.get_gradient_edge(x).node
    for given in [(torch.ones(3),)] * 2 + [(3.0,), (), (torch.ones(3),) * 2, (None,)]:
        yield attempt(node, *given), x.grad
    seen = []
    x.register_hook(lambda grad: seen.append("tensor"))
    node.register_hook(lambda *grads: seen.append("node"))
    node.register_prehook(lambda grads: seen.append("before"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("after"))
    yield node(torch.ones(3)), node(None), x.grad, seen


@case.over(read=[False, True], kind=["leaf", "result", "view", "expanded", "base"])
def versions_incremented_by_hand(torch, read, kind):
    """A backward refuses what was said to be written to since it was saved."""
    for used in (False, True):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        base = x if kind == "leaf" else x * 2
        y = {"view": base[:], "expanded": base[:1].expand(2)}.get(kind, base)
        z = y * y if used else y + 1
        if read:
            z.tolist()
        torch.autograd.graph.increment_version(base if kind == "base" else y)
        yield y._version, y.is_leaf
        yield attempt(z.sum().backward), x.grad
        yield y.detach()
