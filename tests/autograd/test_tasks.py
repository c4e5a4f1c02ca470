"""A backward in progress: the nodes that it runs, and what its Python code leaves."""

from __future__ import annotations

import functools

from tests.oracle import attempt, case


def leaf(torch, value):
    return torch.tensor(value, requires_grad=True)


def names(nodes):
    return [node.name() for node in nodes]


def accumulator(tensor):
    return tensor.view_as(tensor).grad_fn.next_functions[0][0]


def at_end(torch, code):
    torch.autograd.Variable._execution_engine.queue_callback(code)


@case
def order(torch):
    found = []

    def look(grad):
        found.append(torch._C._current_graph_task_execution_order())

    for _ in range(3):
        a, b = leaf(torch, 1.0), leaf(torch, 2.0)
        c, d = b.sin(), a.cos()
        out = c * d * a
        out.register_hook(look)
        with torch.autograd.set_multithreading_enabled(False):
            out.backward(retain_graph=True)
        yield names(found.pop())
    with torch.autograd.set_multithreading_enabled(False):
        torch.autograd.grad(out, (a, c), retain_graph=True)
        nodes = found.pop()
        yield names(nodes)
        yield nodes[0] is out.grad_fn, accumulator(a) in nodes, c.grad_fn in nodes
        e, f, g = a.exp(), a.log(), a.sqrt()
        g.register_hook(look)
        torch.autograd.grad((e, g, f), (a,), retain_graph=True)
        yield names(found.pop())
        yield attempt(torch._C._current_graph_task_execution_order)
    yield attempt(out.backward)


@case
def which_nodes(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def ask(nodes, log, grad):
        runs = torch._C._will_engine_execute_node
        log.append([attempt(runs, node) for node in nodes])

    for _ in range(3):
        a, other = leaf(torch, [1.0, 2.0]), leaf(torch, [3.0, 4.0])
        b = a * other
        unused, c = b.cos(), Double.apply(b)
        out = c.sum()
        nodes = [
            *(accumulator(a), accumulator(other)),
            *(b.grad_fn, unused.grad_fn, c.grad_fn, out.grad_fn),
        ]
        log = []

        look = functools.partial(ask, nodes, log)
        c.register_hook(look)
        b.register_hook(look)
        out.backward(retain_graph=True)
        torch.autograd.backward(out, inputs=(a, b), retain_graph=True)
        torch.autograd.grad(out, (b,), retain_graph=True)
        torch.autograd.grad(out, (a,), retain_graph=True)
        torch.autograd.backward((out, unused), (None, torch.ones(2)))
        yield from log
    yield attempt(torch._C._will_engine_execute_node, nodes[0])
    yield attempt(torch._C._will_engine_execute_node, out)
    yield attempt(type(nodes[2]._input_metadata[0]))


@case
def whose_code_runs(torch):
    log = []

    def look(tag):
        node = torch._C._current_autograd_node()
        log.append((tag, node and node.name(), node is expected.get(tag)))

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            look("outer")
            with torch.enable_grad():
                a = leaf(torch, [1.0])
                b = a * 2
                b.register_hook(lambda grad: look("within"))
                b.sum().backward()
                look("outer")
                Inner.apply(a).sum().backward()
            look("outer")
            return grad * 2

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            look("inner")
            return grad

    for _ in range(3):
        x = leaf(torch, [1.0, 2.0])
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: t, lambda t: (look("unpack"), t)[1]
        ):
            y = x.exp()
        z = Outer.apply(y)
        pieces = z.unbind()
        out = torch.stack(pieces).sum()
        nodes = accumulator(x), y.grad_fn, z.grad_fn, pieces[0].grad_fn, out.grad_fn
        tags = "leaf", "unpack", "outer", "piece", "end"
        expected = dict(zip(tags, nodes, strict=True))
        x.register_hook(lambda grad: look("leaf"))
        x.register_post_accumulate_grad_hook(lambda x: look("leaf"))
        nodes[0].register_prehook(lambda *grads: look("leaf"))
        nodes[0].register_hook(lambda *grads: look("leaf"))
        z.register_hook(lambda grad: look("outer"))
        z.grad_fn.register_prehook(lambda *grads: look("outer"))
        z.grad_fn.register_hook(lambda *grads: look("outer"))
        pieces[0].register_hook(lambda grad: look("piece"))
        out.register_hook(lambda grad: at_end(torch, lambda: look("end")))
        out.backward()
        look("outside")
        yield log
        log.clear()


CHANGES = {
    "grad mode": lambda torch: torch.set_grad_enabled(True),
    "autocast": lambda torch: torch.set_autocast_enabled("cpu", True),
    "default dtype": lambda torch: torch.set_default_dtype(torch.float64),
    "saved-tensor hooks": lambda torch: saving(torch).__enter__(),
    "function mode": lambda torch: counting(torch).__enter__(),
}


def saving(torch):
    return torch.autograd.graph.saved_tensors_hooks(lambda t: 5, lambda v: None)


def counting(torch):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    return Mode()


def thread_state(torch):
    with torch.enable_grad():
        node = leaf(torch, 1.0).exp().grad_fn
    return (
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
        type(node._raw_saved_result.data).__name__,
        torch._C._len_torch_function_stack(),
    )


@case.over(
    change=list(CHANGES),
    where=["hook", "node", "several", "unpack", "function", "leaf", "leaf node", "end"],
)
def what_python_code_changes_of_its_thread(torch, change, where):
    """It is as before for the next node, and after the backward."""
    log = []

    def code(*given):
        CHANGES[change](torch)
        log.append(thread_state(torch))
        return given[0] if where == "unpack" else None

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            code()
            return grad * 2

    for _ in range(2):
        x = leaf(torch, [2.0, 3.0])
        y = x * 3
        y.register_hook(lambda grad: log.append(thread_state(torch)))
        if where == "unpack":
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, code):
                z = y.sin()
        elif where == "function":
            z = Function.apply(y)
        else:
            z = y.sin()
        pieces = z.unbind()
        if where == "several":
            pieces[0].register_hook(code)
        elif where == "hook":
            z.register_hook(code)
        elif where == "node":
            z.grad_fn.register_hook(code)
        elif where == "leaf":
            x.register_hook(code)
        elif where == "leaf node":
            node = accumulator(x)
            node.register_prehook(code)
            node.register_hook(lambda *grads: log.append(thread_state(torch)))
        elif where == "end":
            z.register_hook(lambda grad: at_end(torch, code))
        torch.stack(pieces).sum().backward()
        yield log, thread_state(torch), x.grad
        log.clear()
        torch.set_default_dtype(torch.float32)


@case
def metadata_of_nodes(torch):
    """What is noted at a node is there for as long as its graph."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(torch, [1.0, 2.0])
    y = Double.apply(x.exp())
    out = y.sum()
    for number, node in enumerate((out.grad_fn, y.grad_fn)):
        node.metadata["number"] = number
    y.grad_fn.next_functions[0][0].metadata["inner"] = True
    del node
    found = []

    def look(grad):
        found.append(torch._C._current_autograd_node().metadata)

    y.register_hook(look)
    out.backward(retain_graph=True)
    yield found, x.grad
    yield out.grad_fn.metadata, y.grad_fn.metadata
    yield y.grad_fn.next_functions[0][0].metadata
    with torch.autograd.detect_anomaly():
        z = x.exp()
    yield list(z.grad_fn.metadata)
    z.grad_fn.metadata["more"] = 1
    yield list(z.grad_fn.metadata)
