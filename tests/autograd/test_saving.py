"""Hooks on what operators keep for backward."""

from itertools import product

from tests.oracle import attempt, case


def leaf(torch, *values):
    data = list(values) if len(values) > 1 else values[0]
    return torch.tensor(data, requires_grad=True)


@case
def what_is_packed(torch):
    log = []

    def pack(x):
        node = type(x.grad_fn).__name__
        log.append(("pack", x.tolist(), x.requires_grad, node, torch.is_grad_enabled()))
        return x

    def unpack(x):
        log.append(("unpack", x.tolist()))
        return x

    a = leaf(torch, 1.0, 0.5)
    b = a * 2
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = a * b
        z = y.tanh()
        w, v, q = y + 1, y * 3, y**2
    yield log[:2], len(log)
    (z.sum() + w.sum() + v.sum() + q.sum()).backward()
    yield len(log), a.grad
    yield attempt(z.sum().backward)
    log.clear()
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        with torch.no_grad():
            a * a
        a.detach() * 2
        a + 1
    yield log


@case
def what_is_unpacked(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    a = leaf(torch, 1.0, 2.0)
    with hooks(lambda x: x * 1, lambda x: x * 10):
        y = a * a
    y.sum().backward()
    yield a.grad
    a.grad = None
    with hooks(lambda x: x.tolist(), lambda x: torch.tensor(x)):
        for _ in range(3):
            y = (a * a * a).sum()
    y.backward()
    yield a.grad
    with hooks(lambda x: x, lambda x: x):
        y = a * a
    yield y.grad_fn._saved_self
    (g,) = torch.autograd.grad(y.sum(), a, create_graph=True)
    yield torch.autograd.grad(g.sum(), a)


@case
def again_and_again(torch):
    """One operator that saves, the same in each iteration."""
    w = leaf(torch, 1.0, 3.0)
    found = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        for i in range(3):
            out = torch.tensor([float(i), 1.0]) * w
            found += [out.tolist()]
    yield found
    out.sum().backward()
    yield w.grad


def test_results_are_not_kept():
    import weakref

    import torchshim as torch

    w = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.tolist(), torch.tensor):
        out = w * torch.ones(2)
        ref = weakref.ref(out)
        del out
        assert ref() is None


@case
def in_which_order(torch):
    """By the names of the operands in PyTorch; results last."""

    def packed(call, *args):
        log = []

        def noted(kind):
            return lambda x: log.append((kind, x.flatten()[0].item())) or x

        leaves = [torch.full((2, 2), v).requires_grad_() for v in args]
        with torch.autograd.graph.saved_tensors_hooks(noted("pack"), noted("unpack")):
            y = call(*leaves)
        y.abs().sum().backward()
        return log

    for name in ("mul", "div", "atan2", "pow", "hypot", "maximum", "dist", "mm"):
        yield name, packed(getattr(torch, name), 0.5, 0.25)
    for name in ("clamp", "lerp", "addcmul", "addcdiv", "addmm"):
        yield name, packed(getattr(torch, name), 0.5, 0.25, 0.125)
    yield packed(lambda a, b: torch.mv(a, b[0]), 0.5, 0.25)
    yield packed(lambda a, b: a[0] @ b[0], 0.5, 0.25)
    yield packed(torch.nn.functional.linear, 0.5, 0.25)
    yield packed(lambda a, b: (a * 1).div_(b), 0.5, 0.25)
    yield packed(lambda a, b: a.div(b).atan2_(b), 0.5, 0.25)


@case
def in_place_operators(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    a = leaf(torch, 1.0, 2.0)
    with hooks(lambda x: x.tolist(), lambda x: torch.tensor(x)):
        y = a * 3
        y.mul_(a)
    y.sum().backward()
    yield y, a.grad


@case
def nested(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    log = []
    a = leaf(torch, 1.0, 2.0)
    with hooks(lambda x: log.append("outer"), lambda x: x):
        a * a
        with hooks(lambda x: log.append("inner"), lambda x: x):
            a * a
        a**2
    a * a
    yield log


@case
def errors(torch):
    graph = torch.autograd.graph
    a = leaf(torch, 1.0, 2.0)

    def run(pack, unpack):
        with graph.saved_tensors_hooks(pack, unpack):
            y = a * a
        y.sum().backward()

    yield attempt(run, lambda x: x, lambda x: 3)
    yield attempt(run, lambda x: x.detach().mul_(2), lambda x: x)
    yield attempt(run, lambda x: 1 / 0, lambda x: x)
    a = leaf(torch, 1.0, 2.0)
    (a * a).sum().backward()
    yield a.grad

    def within(outer, inner):
        with outer:
            with inner:
                pass

    pair = graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    disable = graph.disable_saved_tensors_hooks
    yield attempt(within, disable("not here"), pair)
    yield attempt(within, pair, disable("not here"))
    yield attempt(within, disable("a"), disable("b"))
    within(pair, pair)


@case
def custom_functions(torch):
    log = []

    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            y = a * 2
            ctx.save_for_backward(a, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            log.append(len(log))
            log.append([t.tolist() for t in ctx.saved_tensors])
            return grad

    a = leaf(torch, 1.0, 2.0)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: log.append(x.tolist()) or x, lambda x: x.detach() * 3
    ):
        y = Keep.apply(a)
    y.sum().backward()
    yield log, a.grad


@case
def custom_functions_whose_hooks_read(torch):
    """Reading ends the recording in the middle of what a function saves."""

    class Plus(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            out = x * y
            ctx.save_for_backward(x, y, out)
            return out

        @staticmethod
        def backward(ctx, grad):
            x, y, out = ctx.saved_tensors
            return grad * y + out, grad * x

    def pack(x):
        return x.detach().numpy().copy()

    a = leaf(torch, 1.0, 2.0)
    for other in (lambda: a, lambda: a * 3, lambda: torch.ones(2)):
        with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
            for _ in range(2):
                out = Plus.apply(a * 2, other())
                (first,) = torch.autograd.grad(out.sum(), a, create_graph=True)
                yield first, torch.autograd.grad(first.pow(2).sum(), a)


@case
def values_saved_by_gradients(torch):
    """Under `create_graph` hooks see what the gradient of a gradient needs."""
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (a**3).sum()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: 2 * x, lambda x: x):
        (g,) = torch.autograd.grad(y, a, create_graph=True)
    yield torch.autograd.grad(g.sum(), a)
    seen = []

    def pack(value):
        seen.append(value.sum().item())
        return value.detach().numpy()

    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for _ in range(3):
        with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
            y = torch.sigmoid(w @ a).log().sum()
            before = len(seen)
            g, h = torch.autograd.grad(y, [a, w], create_graph=True)
        yield len(seen) > before, g.detach(), h.detach(), h.requires_grad
        yield torch.autograd.grad((g * g).sum() + (h * h).sum(), [a, w])
    with torch.autograd.graph.save_on_cpu():
        (g,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
        g.pow(2).sum().backward()
    yield a.grad


@case
def detached_in_place_since(torch):
    for before in (False, True):
        for after in (False, True):
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            y = x * 3
            if before:
                print(y.sum().item())
            z, w = y * y, y.exp()
            other = (y * 2).sum()
            if after:
                print(z.sum().item(), w.sum().item())
            y.detach_()
            yield attempt(z.sum().backward), x.grad
            yield attempt(w.sum().backward), x.grad
            yield attempt(other.backward), x.grad


@case
def overwritten_through_an_alias_with_a_history(torch):
    for read in (False, True):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        w = torch.tensor([3.0, 4.0], requires_grad=True)
        plain = torch.tensor([5.0, 6.0])
        y, z = x / w, plain * x
        if read:
            print(y.sum().item())
        alias = w.detach()
        alias *= y
        plain *= x
        yield attempt(y.sum().backward), alias.grad_fn.name()
        yield attempt(z.sum().backward), plain.grad_fn.name(), x.grad


@case.over("", "read", "flushed before", "write", "read, write", "read, write, grad")
def results_written_before_a_second_derivative(torch, how):
    """PyTorch's formulas hold results: the second derivative looks at these, too."""
    for function in (torch.tanh, torch.exp, torch.sin):
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = function(x)
        if "read" in how:
            yield y.tolist()
        (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        if "grad" in how or "before" in how:
            yield grad.tolist()
        if "write" in how:
            with torch.no_grad():
                y[:1] *= 2
        yield attempt(grad.sum().backward), x.grad


@case
def results_freed_by_a_second_derivative(torch):
    for function in (torch.tanh, torch.prod, torch.sin):
        for read in (False, True):
            for order in ("gyg", "ygy", "gy"):
                x = torch.tensor([0.5, 0.75], requires_grad=True)
                y = function(x)
                (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
                if read:
                    print(y.tolist(), g.tolist())
                roots = {"g": g.sum(), "y": y.sum()}
                yield [attempt(roots[name].backward) for name in order], x.grad


OVERWRITTEN = (
    "x.gather(0, i)",
    "x.take(i)",
    "x.index_select(0, i[0])",
    "x.sort(0)[0]",
    "x.topk(1)[0]",
    "x.max(0)[0]",
    "x.kthvalue(1)[0]",
    "x.median(0)[0]",
    "x.mode(0)[0]",
    "x.msort()",
    "x.cummax(0)[0]",
    "x.quantile(0.3, 0)",
    "x.nanquantile(0.3, 0)",
    "torch.index_add(z, 0, i[0], x)",
    "torch.index_copy(z, 0, i[0], x)",
    "torch.cdist(x, z)",
    "torch.pdist(x)",
    "torch.cov(x)",
    "torch.corrcoef(x)",
    "torch.trapezoid(x)",
    "x.square().cumsum(0)",
    "torch.complex(x, z).abs()",
    "torch.frexp(x)[0]",
    "F.pairwise_distance(x, z)",
    "torch.linalg.matrix_power(x, 3)",
)


@case.over(*OVERWRITTEN)
def what_may_be_overwritten(torch, call):
    scope = {"torch": torch, "F": torch.nn.functional, "i": torch.tensor([[0, 2, 1]])}
    values = torch.linspace(0.5, 2.0, 9).reshape(3, 3)
    for what in ("operand", "result"):
        leaf = values.clone().requires_grad_()
        x = leaf * 1
        y = eval(call, scope, {"x": x, "z": torch.zeros(3, 3)})
        with torch.no_grad():
            (x if what == "operand" else y).mul_(3)
        yield attempt(y.sum().backward), leaf.grad


@case.over(*OVERWRITTEN)
def what_is_saved_comes_back(torch, call):
    scope = {"torch": torch, "F": torch.nn.functional, "i": torch.tensor([[0, 2, 1]])}
    x = torch.linspace(0.5, 2.0, 9).reshape(3, 3).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = eval(call, scope, {"x": x, "z": torch.zeros(3, 3)})
    y.sum().backward()
    yield x.grad


@case.over(read=range(8))
def versions_after_untracked_writes(torch, read):
    leaf = torch.tensor([[-1.0, -0.75], [0.5, 0.25]], requires_grad=True)
    y = leaf.logsumexp(0)
    if read & 1:
        y.tolist()
    with torch.no_grad():
        torch.mul(y, y, out=y)
    if read & 2:
        y.tolist()
    y += y
    z = y.clamp(max=0.9)
    if read & 4:
        z.tolist()
    yield y._version, attempt(z.mean().backward)


@case
def kept_as_they_are_and_overwritten(torch):
    """What an operator in place overwrites is packed as a copy."""
    for changed in (1, 2, 3):
        x, w = leaf(torch, 1.0, 2.0, 3.0), leaf(torch, 0.5, 2.0, 4.0)
        seen = []

        def pack(t, seen=seen):
            seen.append((type(t.grad_fn).__name__, t.is_leaf, t._version))
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = x * 1
            y.mul_(w)
            if changed > 1:
                y[1:].mul_(w[1:])
            if changed > 2:
                y.pow_(2)
                y.div_(w)
        y.sum().backward()
        yield x.grad, w.grad, seen


def test_unpacked_of_another_shape():
    """Told at the backward, and not by the program that could not be made of it."""
    import pytest

    import torchshim

    x = torchshim.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with torchshim.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:2]):
        y = (x * x).sum()
    with pytest.raises(RuntimeError, match=r"shape \[2\] in the place of .* \[3\]"):
        y.backward()


@case.over(grad=[True, False], read=[True, False])
def saved_values_have_a_history(torch, grad, read):
    """Under hooks and `no_grad`, and once the results were read."""
    a = torch.tensor([1.0, 2.0], requires_grad=True)

    def hooked(out, name):
        kept = getattr(out.grad_fn, f"_raw_saved_{name}")
        kept.register_hooks(lambda t: t * 2, lambda t: t / 2)
        return out

    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2)
    with hooks:
        within = torch.exp(a), torch.exp(a).sin()
    middle = torch.exp(a)
    outs = [
        *((torch.exp(a), "result"), (hooked(torch.exp(a), "result"), "result")),
        *((middle.sin(), "self"), (hooked(middle.sin(), "self"), "self")),
        *((hooked(a.sin(), "self"), "self"), (a.sin(), "self")),
        *((within[0], "result"), (within[1], "self")),
    ]
    if read:
        yield [out for out, _ in outs]
    for out, name in outs:
        with torch.set_grad_enabled(grad):
            saved = getattr(out.grad_fn, f"_saved_{name}")
        node = saved.grad_fn
        yield saved, node is out.grad_fn, node is middle.grad_fn, saved is a


@case
def whether_hooks_are_forbidden(torch):
    known = torch._C._autograd

    def state():
        enabled = known._saved_tensors_hooks_is_enabled()
        return enabled, known._saved_tensors_hooks_get_disabled_error_message()

    def hooked():
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return state()

    yield state(), attempt(hooked)
    with torch.autograd.graph.disable_saved_tensors_hooks("outer"):
        yield state(), attempt(hooked)
        with torch.autograd.graph.disable_saved_tensors_hooks("inner"):
            yield state(), attempt(hooked)
        yield state(), attempt(hooked)
    yield torch.func.grad(lambda x: (x * state()[0]).sum())(torch.ones(2)), state()
    known._saved_tensors_hooks_disable("by hand")
    yield state(), attempt(hooked)
    known._saved_tensors_hooks_enable()
    yield state(), attempt(hooked)


OPERATORS = ["mul", "exp", "div", "pow"]


@case.over(name=OPERATORS, read=[False, True])
def what_is_unpacked_in_another_dtype(torch, name, read):
    """Gradients arrive in the dtypes of the operands."""
    graph = torch.autograd.graph
    for wider in (torch.float64, torch.float16):
        x = torch.tensor([0.5, 1.0, 1.5], requires_grad=True)
        w = torch.tensor([2.0, 3.0, 1.0], requires_grad=True)
        with graph.saved_tensors_hooks(lambda t: t, lambda t, wider=wider: t.to(wider)):
            y = {
                "mul": lambda x, w: x * w,
                "exp": lambda x, w: (x * 1).exp() + w,
                "div": lambda x, w: x / w,
                "pow": lambda x, w: x**3 + w**2,
            }[name](x, w)
        if read:
            yield y
        yield attempt(lambda y=y: (y * 3).sum().backward())
        yield x.grad, w.grad


@case
def detached_in_place_after_its_value_went_through_recordings(torch):
    """Its history is several recordings back, as values were read in between."""

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    for read in product((False, True), repeat=5):
        a = torch.ones(2, 3, requires_grad=True)
        b = a + 1
        if read[4]:
            b.detach().numpy()
        b.T.sub_(3)
        if read[0]:
            b.detach().numpy()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            c = Cube.apply(b)
        if read[1]:
            b.detach().numpy()
        (b * -1.5).sum().backward()
        if read[2]:
            b.detach().numpy()
        d = c / b
        if read[3]:
            d.detach().numpy()
        d.register_hook(lambda grad, b=b: (b.detach_(), None)[1])
        yield attempt(d.sum().backward)
