"""Grad mode and inference mode: contexts, decorators, what they change."""

import contextlib
import io
import warnings

from tests.oracle import attempt, case


def leaf(torch, *values):
    data = list(values) if len(values) > 1 else values[0]
    return torch.tensor(data, requires_grad=True)


@case
def contexts(torch):
    x = leaf(torch, 1.0)
    with torch.no_grad():
        yield torch.is_grad_enabled(), (x * 2).requires_grad
        with torch.enable_grad():
            yield torch.is_grad_enabled(), (x * 2).requires_grad
        yield torch.is_grad_enabled()
    with torch.set_grad_enabled(False):
        yield torch.is_grad_enabled()
    previous = torch.set_grad_enabled(False)
    yield torch.is_grad_enabled(), repr(previous)
    torch.set_grad_enabled(True)
    yield torch.is_grad_enabled()
    for wrong in (1, "a", None):
        yield attempt(torch.set_grad_enabled, wrong)
    torch.set_grad_enabled(True)
    try:
        with torch.no_grad():
            raise ValueError
    except ValueError:
        yield torch.is_grad_enabled()


@case
def decorators(torch):
    @torch.no_grad()
    def f(x):
        "text"
        return torch.is_grad_enabled(), x

    @torch.no_grad
    def g(x):
        return torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def h():
        return torch.is_grad_enabled()

    yield torch.is_grad_enabled()
    yield f(1), g(2), h(), f.__doc__, f.__name__
    with torch.no_grad():
        yield torch.enable_grad()(lambda: torch.is_grad_enabled())()
    yield torch.inference_mode(lambda: torch.is_inference_mode_enabled())()

    @torch.no_grad()
    class C:
        def __init__(self):
            self.mode = torch.is_grad_enabled()

    yield C().mode


@case
def views_under_no_grad(torch):
    """They say of themselves what their base does, and lead nowhere."""
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    q = p * 2
    with torch.no_grad():
        for x in (p, q):
            views = x[0], x[:2], x.view(3), x.unsqueeze(0), x.reshape(3), *x.unbind()
            for v in (*views, x.detach(), x.data, x * 2, x[:2] + 1):
                yield repr(v), v.requires_grad, v.is_leaf, v.grad_fn is None
            yield x[:2].numpy().tolist(), [repr(v) for v in x]
        a, b = p[:2], q[:2]
    for v in (a, b):
        loss = (v * 3).sum()
        yield repr(loss), loss.requires_grad
        loss.backward()
        yield v.grad, p.grad
        yield attempt(v.mul_, 2)
    (a * p[0]).sum().backward()
    yield a.grad, p.grad
    a.tolist()
    (a * p[0]).sum().backward()
    yield a.grad, p.grad


@case
def generators(torch):
    @torch.no_grad()
    def gen(n):
        seen.append(torch.is_grad_enabled())
        try:
            for i in range(n):
                got = yield i, torch.is_grad_enabled()
                seen.append(got)
        except KeyError:
            seen.append(("caught", torch.is_grad_enabled()))
            yield "after"
        finally:
            seen.append(("end", torch.is_grad_enabled()))
        return "done"

    seen = []
    yield list(gen(2)), seen
    g = gen(3)
    yield next(g), torch.is_grad_enabled(), g.send("sent"), seen
    yield g.throw(KeyError()), seen
    g.close()
    yield seen

    def outer():
        result = yield from gen(1)
        seen.append(result)

    yield list(outer()), seen


@case
def threads(torch):
    import threading

    found = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    yield found


@case
def inference(torch):
    z = leaf(torch, 1.0, 2.0)
    with torch.inference_mode():
        x = torch.ones(2)
        yield x.requires_grad, x.is_inference()
        yield attempt(lambda: x._version)
        yield (z * 2).requires_grad, torch.is_grad_enabled()
        with torch.enable_grad():
            yield torch.is_grad_enabled(), (z * 2).requires_grad
        with torch.inference_mode(False):
            yield torch.is_grad_enabled(), torch.is_inference_mode_enabled()
            yield (z * 2).requires_grad
        n = torch.tensor([1.0, 2.0])
        x.add_(1)
        yield attempt((z * 2).sum().backward)
    yield n.is_inference(), x
    yield attempt(lambda: x * z)
    yield x + z
    yield attempt(n.requires_grad_)
    yield attempt(n.mul_, 2)
    with torch.no_grad():
        yield attempt(n.mul_, 2)
        yield x * z
    yield (x * 2).is_inference(), x.select(0, 0).is_inference()
    with torch.inference_mode():
        q = torch.zeros(2)
        with torch.inference_mode(False):
            p = torch.zeros(2)
        yield p.is_inference(), q.is_inference(), p.select(0, 0).is_inference()
        p.add_(1)
        yield p._version


@case
def views_of_inference(torch):
    y = leaf(torch, 1.0, 2.0) * 2
    with torch.inference_mode():
        v = y.select(0, 0)
        yield v.is_inference()
    yield attempt(v.mul_, 2)


@case
def anomaly(torch):
    x = leaf(torch, 0.0, 2.0)
    with torch.autograd.set_detect_anomaly(True):
        yield torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
        (x * x).sum().backward()
    yield x.grad, torch.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        yield torch.is_anomaly_check_nan_enabled()


@case(warnings=False)
def anomaly_finds_nan(torch):
    x = leaf(torch, 0.0, 2.0)
    with torch.autograd.detect_anomaly():
        y = (x * 0.0) / (x * 0.0)
        yield attempt(y.sum().backward)
    yield torch.is_anomaly_enabled()


@case
def variable(torch):
    from_tensor = torch.autograd.Variable(torch.tensor([1.0]), requires_grad=True)
    yield from_tensor, isinstance(from_tensor, torch.autograd.Variable)
    yield isinstance(3, torch.autograd.Variable)
    yield attempt(torch.autograd.variable, [1.0])


@case(warnings=False)
def anomaly_tells_of_the_forward(torch):
    """Where it was switched on by then: the whole stack, and what led there."""

    def told(forward_seen):
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = leaf(torch, 0.0)
            with torch.autograd.set_detect_anomaly(forward_seen):
                y = (x / 0 * 0).sum()
            with torch.autograd.set_detect_anomaly(True):
                error = attempt(y.backward)
        lines = [line for w in caught for line in str(w.message).splitlines()]
        known = ("No forward pass", "Error detected", "Previous", "y = ", "in told")
        return error, [
            [k for k in known if k in line]
            for line in lines
            if any(k in line for k in known)
        ]

    yield told(False)
    yield told(True)
    with torch.autograd.set_detect_anomaly(True):
        y = leaf(torch, 1.0) * 2
    trace = y.grad_fn.metadata["traceback_"]
    yield type(trace).__name__, "y = leaf(torch, 1.0) * 2" in trace[-1]
    yield (leaf(torch, 1.0) * 2).grad_fn.metadata


@case
def changes_of_inference_tensors(torch):
    """Outside of the mode they are refused, also where only the geometry changes."""
    import copy

    def change(name, *arguments):
        with torch.inference_mode():
            x, y, z = (torch.tensor([[1.0, 2.0], [3.0, 4.0]]) for _ in range(3))
            getattr(y, name)(*arguments)
        with torch.no_grad():
            refused = attempt(getattr(z, name), *arguments)
        return attempt(getattr(x, name), *arguments), refused, y.is_inference(), y

    yield change("t_")
    yield change("transpose_", 0, 1)
    yield change("unsqueeze_", 0)
    yield change("squeeze_")
    yield change("as_strided_", (2,), (2,))
    yield change("set_", torch.ones(3))
    yield change("set_")
    yield change("resize_", 1, 2)
    yield change("resize_", 2, 2)
    with torch.inference_mode():
        x = torch.tensor([1.0, 2.0, 3.0])
        v = x[1:]
        yield v._is_view()
        normal = leaf(torch, 1.0, 2.0) * 1
    z = copy.deepcopy(x)
    yield z.is_inference(), z.add_(1), copy.deepcopy(normal).is_inference()


@case
def memory_of_inference_tensors(torch):
    """What `detach()` and `.data` give outside of the mode counts its own versions."""
    with torch.inference_mode():
        x = torch.tensor([1.0, 2.0, 3.0])
        inner = x.detach()
    d = x.detach()
    yield d.is_inference(), d._version, attempt(lambda: inner._version)
    d.add_(1)
    d.detach().mul_(2)
    x.data.sub_(1)
    yield d, x, inner, d._version, x.data._version
    yield attempt(lambda: x._version), attempt(lambda: d[0]._version)
    w = leaf(torch, 1.0, 2.0, 3.0)
    yield attempt(lambda: d * w), attempt(lambda: (d + w).sum().backward()), w.grad
    w.data = x
    yield w.is_inference(), w._version, w
    with torch.no_grad():
        w.add_(1)
    yield w._version, x
    for refused in (x, inner, d[0]):
        yield attempt(refused.add_, 1)


# Uses of a view through which no gradient flows: PyTorch does not ask for its node.
_DATA_ALONE = {
    "comparison": lambda b: b > 0.6,
    "argmax": lambda b: b.argmax(),
    "isnan": lambda b: b.isnan(),
    "long": lambda b: b.long(),
    "not": lambda b: b.logical_not(),
    "allclose": lambda b: b.allclose(b.detach()),
    "detach": lambda b: b.detach(),
    "filled": lambda b: b.masked_fill_(b > 0.6, 3),
    "product": lambda b: b * 2,
    "written": lambda b: b.mul_(2),
}


@case.over(made=["multiple", "no_grad", "both"], use=list(_DATA_ALONE))
def data_of_views_that_lack_a_node(torch, made, use):
    for write in ("tracked", "untracked"):
        w = torch.tensor(0.5, requires_grad=True)
        base = torch.arange(4.0)
        if made != "multiple":
            base = base * w
        with torch.set_grad_enabled(made == "multiple"):
            view = base[2:] if made == "no_grad" else base.chunk(2)[1]
        with torch.set_grad_enabled(write == "tracked"):
            base.mul_(w)
        yield attempt(_DATA_ALONE[use], view)
        yield attempt(lambda view=view: view * 2)
        yield attempt(lambda view=view: view.grad_fn.name())


@case(warnings=False)
def anomaly_in_functions_of_functions(torch):
    """Each event has its own forward call, and the backward that it was made in."""

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2 + b

        @staticmethod
        def backward(ctx, grad):
            return grad, grad * float("nan")

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sum(0, keepdim=True)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            grad = grad.clone().expand(3)
            return Inner.apply(grad * x, grad + x)

    x = torch.ones(3, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            out = Outer.apply(x)
            (g,) = torch.autograd.grad(out, x, create_graph=True)
            yield attempt(g.sum().backward)
    for warning in caught:
        text = str(warning.message)
        yield text[:45].strip(), "Inner.apply" in text, "Outer.apply" in text


@case(warnings=False)
def anomaly_of_hooks_that_raise(torch):
    """The node that they hang on is told of, once, and the line that made it."""

    def bad(*gradients):
        raise ValueError("bad")

    def told(hang):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autograd.detect_anomaly():
                x = torch.ones(3, requires_grad=True)
                y = x * 2
                values, _indices = y.max(0)
                hang(x, y, values)
                error = attempt((values + y.sum()).backward)
        known = ("Error detected", "y = x * 2", "values, _indices =", "No forward")
        texts = [str(warning.message) for warning in caught]
        return (
            error,
            x.grad,
            [
                [k for k in known if k in text]
                + [text.split(".")[0]] * text.startswith("Error")
                for text in texts
            ],
        )

    yield told(lambda x, y, values: y.register_hook(bad))
    yield told(lambda x, y, values: values.register_hook(bad))
    yield told(lambda x, y, values: x.register_hook(bad))
    yield told(lambda x, y, values: x.register_post_accumulate_grad_hook(bad))
    yield told(lambda x, y, values: y.grad_fn.register_hook(bad))
    yield told(lambda x, y, values: y.grad_fn.register_prehook(bad))
    within = torch.ones(2, requires_grad=True)

    def again(grad):
        z = within * 3
        z.register_hook(bad)
        z.sum().backward()

    yield told(lambda x, y, values: y.register_hook(again))


@case
def leaves_made_in_inference_mode(torch):
    """Autograd passes over what is computed of inference tensors alone."""

    def told(tensor):
        name = type(tensor.grad_fn).__name__
        return tensor.requires_grad, tensor.is_inference(), tensor._is_view(), name

    with torch.inference_mode():
        c = torch.ones(2, 3, requires_grad=True)
        d = torch.ones(2, 3)
        for made in (c.view(-1), c[0], c * 2, *c.unbind(), c.detach(), d.view(-1)):
            yield told(made)
        yield told(torch.ones(2, requires_grad=True).resize_(3))
        yield told(torch.ones(2, requires_grad=True).resize_as_(d))
        yield told(torch.ones(2, 3, requires_grad=True).t_())
    normal = torch.ones(3, 2)
    for made in (c.view(-1), c[0], c.t(), *c.unbind(), c.expand(2, 2, 3)):
        yield told(made)
    for made in (c.exp(), c * c, c + d, c.sum(0), c.softmax(0), c**2, -c, c.cumsum(0)):
        yield told(made)
    for made in (c * 2, c + 1, c / 2, c @ normal, c + normal.t(), c.float()):
        yield told(made)
    yield told(torch.cat([c, c]))
    yield attempt(lambda: c * normal.t().clone().requires_grad_())
    (c * 2).sum().backward()
    yield c.grad


@case
def views_made_in_inference_mode_change_shape(torch):
    for name, args in (("add_", (2,)), ("t_", ()), ("transpose_", (0, 1))):
        for tracked in (True, False):
            a = torch.ones(2, 3, requires_grad=tracked).clone()
            with torch.inference_mode():
                view = a.view_as(a)
            yield attempt(getattr(view, name), *args)


@case
def whether_a_backward_keeps_the_graph(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            kept.append(torch._C._autograd._get_current_graph_task_keep_graph())
            return grad

    kept = []
    y = Same.apply(torch.ones(2, requires_grad=True)).sum()
    for retain in (True, False):
        y.backward(retain_graph=retain)
    yield kept


@case.over(replayed=[False, True])
def nodes_of_views_made_anew(torch, replayed):
    views = [
        lambda t: t.view(-1),
        lambda t: t[0],
        lambda t: t.t()[0],
        lambda t: t.expand(2, 2, 2)[1],
        lambda t: t.unbind()[0],
    ]
    for view in views:
        x = torch.ones(2, 2, requires_grad=True)
        base = x.clone()
        with torch.autograd._force_original_view_tracking(replayed):
            first = view(base)
            yield attempt(first.add_, 1)
            second = view(base)
            base.mul_(2)
            for each in (first, second, base):
                node = attempt(lambda each=each: each.grad_fn)
                yield type(node).__name__
            yield torch.autograd.is_view_replay_enabled()
        yield torch.autograd.is_view_replay_enabled()
        yield attempt(lambda first=first: first.sum().backward())
        yield x.grad


@case
def on_memory_from_outside_of_inference(torch):
    """What is recorded of such a tensor is not found again for others."""
    memory = torch.tensor([1.0, 2.0, 3.0])
    with torch.inference_mode():
        x = torch.tensor([1.0, 2.0]).set_(memory)
        part = torch.tensor([1.0, 2.0]).set_(memory, 1, (2,), (1,))
    others = torch.tensor([1.0, 2.0, 3.0]), memory, torch.arange(4.0)[1:3]
    for tensor in (x, part, *others):
        detached = tensor.detach()
        yield detached.is_inference(), attempt(detached.add_, 1), memory


@case
def anomaly_whose_warning_is_an_error(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()) as text:
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            warnings.simplefilter("error")
            y = x + 1
            z = y**2
            y += 1
            yield attempt(z.sum().backward)
    yield "Error detected in PowBackward0" in text.getvalue()
