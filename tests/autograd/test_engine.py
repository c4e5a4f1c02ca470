"""The engine: deep graphs, graphs that end, threads, backward within backward."""

import gc
import threading
import weakref

import pytest

import torchshim
from tests.oracle import attempt, case


def leaf(torch, *values):
    return torch.tensor(list(values), requires_grad=True)


@case
def backward_within_hooks(torch):
    log = []
    a, b = leaf(torch, 1.0, 2.0), leaf(torch, 3.0)
    inner = (b * b).sum()

    def hook(grad):
        inner.backward()
        log.append((grad.tolist(), b.grad.tolist()))
        return grad * b.grad

    y = a * 2
    y.register_hook(hook)
    (y * y).sum().backward()
    yield log, a.grad, b.grad
    # Over the graph that is walked.
    c = leaf(torch, 2.0)
    z = c * 3
    w = z.exp()
    w.register_hook(
        lambda grad: log.append(torch.autograd.grad(z, c, retain_graph=True)[0])
    )
    (w * 0.01).backward()
    yield log[-1], c.grad
    c.grad = None

    def after(c):
        with torch.enable_grad():
            (c.detach() * b).backward()

    c.register_post_accumulate_grad_hook(after)
    (c * 3).backward()
    yield c.grad, b.grad


@case
def backward_within_functions(torch):
    class Checkpointed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.save_for_backward(x)
            ctx.depth = depth
            return x.sin() if depth == 0 else x.cos()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                twin = x.detach().requires_grad_()
                if ctx.depth:
                    y = Checkpointed.apply(twin, ctx.depth - 1) * w
                else:
                    y = twin.sin()
            y.backward(grad)
            return twin.grad, None

    x, w = leaf(torch, 0.5, 1.5), leaf(torch, 2.0)
    Checkpointed.apply(x * 2, 20).sum().backward()
    yield x.grad, w.grad


@case
def one_gradient_is_one_tensor(torch):
    x, w = leaf(torch, 1.0, 2.0, 3.0), leaf(torch, 0.5, 1.5, 2.5)
    square = torch.ones(3, 3, requires_grad=True)
    ways = {
        "add": lambda: x + w,
        "alpha": lambda: x.add(w, alpha=2),
        "broadcast": lambda: x + torch.ones(2, 3),
        "promoted": lambda: x + torch.ones(3, dtype=torch.float64),
        "sub": lambda: x - w,
        "rsub": lambda: torch.rsub(w, x),
        "addcmul": lambda: torch.addcmul(x, w, w),
        "addcdiv": lambda: torch.addcdiv(x, w, w, value=2),
        "addmv": lambda: torch.addmv(x, square, w),
        "beta": lambda: torch.addmv(x, square, w, beta=2),
        "clone": x.clone,
        "copy": lambda: torch.zeros(3).copy_(x),
        "in place": lambda: x.clone().sub_(w),
        "all": lambda: x[...],
        "slice": lambda: x[:],
        "unsqueeze": lambda: x[None],
        "squeeze": x.squeeze,
        "expand": lambda: x.expand(3),
        "expanded": lambda: x.expand(2, 3),
        "mul": lambda: x * 1,
    }
    for name, way in ways.items():
        for create in (True, False):
            y = way()
            asked = [y, x, w] if name in ("add", "sub", "alpha", "rsub") else [y, x]
            found = torch.autograd.grad((y * y).sum(), asked, create_graph=create)
            same = [[a is b for a in found] for b in found]
            yield name, same, [g.sum() for g in found]
    g = torch.ones(3)
    yield torch.autograd.grad(x + w, [x, w], g)[0] is g


@case
def grad_is_nobody_elses(torch):
    """A gradient that others hold, too, becomes a `.grad` of its own."""
    kept = []
    x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    y = x + w
    y.register_hook(kept.append)
    x.register_hook(kept.append)
    given = torch.ones(2)
    y.backward(given)
    yield [[a is b for a in (x.grad, w.grad, given, *kept)] for b in (x.grad, w.grad)]
    (x * 2 + w).sum().backward()
    x.grad.mul_(3)
    yield kept, x.grad, w.grad, given
    shared = torch.full((2,), 5.0)
    a, b = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    a.register_hook(lambda g: shared)
    b.register_hook(lambda g: shared)
    for _ in range(2):
        (a * b).sum().backward()
        yield a.grad is shared, a.grad is b.grad, a.grad, b.grad, shared

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    c, d = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    for _ in range(2):
        Sum.apply(c, d).sum().backward()
        yield c.grad is d.grad, c.grad, d.grad
    z = c + 1
    z.retain_grad()
    c.grad = None
    z.sum().backward()
    z.grad.zero_()
    yield z.grad is c.grad, c.grad


@case
def threads_share_leaves(torch):
    w = leaf(torch, 1.0, 2.0)
    failed = []

    def work(n):
        try:
            for _ in range(5):
                ((w * n).sum() * 2).backward()
        except Exception as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield failed, w.grad


@case
def a_graph_of_one_thread_ends_in_another(torch):
    w = leaf(torch, 1.0, 2.0)
    y = (w * w).exp()
    z = y.sin()
    found = []

    def work():
        z.sum().backward(retain_graph=True)
        found.append(torch.autograd.grad(y.sum(), w, retain_graph=True))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    yield found, w.grad
    z.sum().backward()
    yield w.grad, attempt(z.sum().backward)


@pytest.mark.parametrize("hooks", [False, True])
def test_a_long_chain(hooks):
    """Ten times Python's recursion limit; 100,000 take about ten seconds."""
    x = torchshim.ones(2, requires_grad=True)
    y, seen = x, []
    for i in range(10_000):
        y = y * 1.0
        if hooks and i % 2_500 == 0:
            y.register_hook(seen.append)
    y.sum().backward(retain_graph=hooks)
    assert x.grad.tolist() == [1.0, 1.0]
    assert [g.tolist() for g in seen] == [[1.0, 1.0]] * 4 * hooks
    if hooks:
        (g,) = torchshim.autograd.grad(y.sum(), x, create_graph=True)
        assert g.tolist() == [1.0, 1.0]
    ref = weakref.ref(y)
    del y
    gc.collect()
    assert ref() is None


def in_thread(work):
    import threading

    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


@case
def one_graph_for_all_threads(torch):
    """What another thread computed is one place in the graph, with its hooks."""
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    total = in_thread(lambda: x.sum())
    handle = total.register_hook(lambda grad: seen.append(grad.item()))
    print((total * 2).item())
    yield torch.autograd.grad(total, [x], create_graph=True), seen
    handle.remove()
    y = x.sum()
    in_thread(lambda: y.backward())
    y.register_hook(lambda grad: grad + 1)
    in_thread(lambda: y.backward())
    yield x.grad
    total = in_thread(lambda: x.prod())
    y = (total * 2).exp()
    yield torch.autograd.grad(y, total)
    yield attempt(torch.autograd.grad, y, x)
    z = (x.unsqueeze(0) - 2.0).abs()
    inner = z * 1
    in_thread(lambda: inner.view(-1).sub_(1))
    yield torch.autograd.grad((inner * inner).sum(), [z])
    (w,) = torch.autograd.grad((x * x).sum(), [x], create_graph=True)
    with torch.no_grad():
        w.add_(w, alpha=0.5)
    in_thread(lambda: (w * w).sum().backward())
    yield x.grad


@case
def taken_by_a_thread_that_ended(torch):
    """What it looked at keeps its history, and no backward trips over it."""
    for read in (False, True):
        x = torch.tensor(2.0, requires_grad=True)
        y = x * x
        y.retain_grad()
        y.detach().add_(1)
        in_thread(lambda y=y, read=read: y.expand(2).tolist() if read else y.expand(2))
        print((x.detach() + 1).item())
        w = torch.ones(2, requires_grad=True)
        (w * w).sum().backward()
        y.backward()
        yield w.grad, x.grad, y.grad
        ref = weakref.ref(w)
        in_thread(lambda w=w: (w * 2).sum() and None)
        del w
        gc.collect()
        yield ref() is None


@case
def threads_after_each_other(torch):
    """What one left is not what the next one holds on to."""
    x = torch.tensor(3.0, requires_grad=True)
    left = in_thread(lambda: x * 2)
    w = torch.ones(2, requires_grad=True)
    in_thread(lambda w=w: (w * 2).sum() and None)
    ref = weakref.ref(w)
    del w
    gc.collect()
    yield ref() is None, left, torch.autograd.grad(left, x)


@case
def numpys_memory_written_by_a_tensor(torch):
    """The version that the error names is the memory's, not the result's."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    array = x.detach().numpy()
    y = x * x
    with torch.no_grad():
        torch.add(x, y, out=x)
    yield attempt(y.sum().backward), array


@case
def numpys_memory_in_two_threads(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.view(-1)
    array = y.detach().numpy()
    in_thread(lambda: (x * 2).sum().backward())
    z = y[-1]
    print(x.detach().sum().item(), array)
    yield z, torch.autograd.grad(z, x), x.grad


@case
def asked_for_what_another_thread_looked_at(torch):
    x = torch.tensor([-1.0], requires_grad=True)
    for create in (False, True):
        y = x.expand(2)
        z = in_thread(lambda y=y: y.logsumexp(0))
        print(x.sum().item())
        yield torch.autograd.grad(z, [y, z], retain_graph=True, create_graph=create)
        (y * 2).sum().backward(inputs=[x, y])
        yield x.grad, in_thread(lambda y=y: y.grad_fn) is y.grad_fn
        z.backward()
        yield x.grad


@case
def threads_that_use_one_anothers_values(torch):
    """Each event's turn comes once: after all that its gradient comes from."""
    log = []

    class Noted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, name):
            ctx.name = name
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            log.append((ctx.name, grad.tolist()))
            return grad * 2, None

    for read in (False, True, True):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        a = Noted.apply(x, "a")
        b = in_thread(lambda a=a: Noted.apply(a, "b"))
        c = Noted.apply(a * b, "c")
        d = in_thread(lambda a=a, b=b, c=c: Noted.apply(a + b * c, "d"))
        if read:
            print(b.sum().item(), c.sum().item())
        (a * b * c * d).sum().backward(retain_graph=True)
        yield sorted(log), x.grad
        log.clear()
        yield torch.autograd.grad((a + d).sum(), [b, c], retain_graph=True), sorted(log)
        log.clear()
        in_thread(lambda d=d: d.sum().backward())
        yield sorted(log), x.grad
        log.clear()


@case
def written_by_another_thread_while_numpy_looks_on(torch):
    for _ in range(3):
        x = torch.tensor([[0.5, 0.75], [1.0, 1.25]], requires_grad=True)
        y = x.relu() - 2
        array = y.detach().numpy()
        in_thread(lambda y=y: y.diagonal().add_(1))
        (y * 3).sum().backward()
        yield x.grad, array


@case
def written_through_views_after_another_threads_look(torch):
    for looked in (False, True):
        for read in (False, True):
            x = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
            y = x - 0.1
            part = y[::2]
            if read:
                print(y.sum().item())
            kept = in_thread(lambda part=part: part.mean()) if looked else None
            y.unsqueeze(0).relu_()
            y.unsqueeze(0).relu_()
            yield attempt((part * part).sum().backward), kept, x.grad


@case
def results_written_after_another_threads_write_through_a_view(torch):
    for write in (lambda t: t[0:].add_(1), lambda t: t.add_(1)):
        x = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        y = x - 0.1
        in_thread(lambda y=y: y.view(-1).exp_())
        write(y)
        yield attempt(y[-1].backward), x.grad


@case
def versions_counted_on_after_another_threads_write(torch):
    for read in (False, True):
        x = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        y = x.sum()
        if read:
            print(y.item())
        in_thread(lambda y=y: y.sub_(1))
        y.view(1)[0].tanh_()
        y.zero_()
        yield attempt((y * y).backward), y._version


@case
def data_assigned_after_another_threads_backward(torch):
    for _ in range(2):
        x = torch.nn.Parameter(torch.tensor([-1.0, -0.75]).clone())
        in_thread(lambda x=x: (x * 0.5).mean().backward())
        y = x**2
        x.data = x.data - 0.5 * x.grad
        y.sum().backward()
        yield x.grad


@case
def node_that_an_error_names_after_another_threads_write(torch):
    x = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
    y = x.tanh()
    in_thread(lambda: y.mul_(y))
    yield attempt((y * y).sum().backward), x.grad


@case
def a_history_within_another_threads_recording(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        y.unsqueeze(0).mul_(3)
    z = y.sigmoid()
    in_thread(lambda: z.sum().backward(retain_graph=True))
    yield x.grad


@case
def detached_from_another_threads_graph(torch):
    x = torch.ones(2, requires_grad=True)
    y = in_thread(lambda: x + x)
    z = y * 2
    y.detach_()
    z.sum().backward()
    yield y, y.requires_grad, x.grad


@case
def backward_within_backward_far_down(torch):
    class Deep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.is_grad_enabled())
            if ctx.x > 0:
                with torch.enable_grad():
                    Deep.apply(ctx.x).sum().backward()
            return grad

    seen = []
    x = torch.tensor(60.0, requires_grad=True)
    Deep.apply(x).sum().backward()
    yield x.grad, len(seen), set(seen)


@case
def an_error_leaves_unfinished_leaves(torch):
    """Only leaves that all their gradients have reached get one."""

    def fail(grad):
        raise RuntimeError("fail")

    for early in (False, True):
        x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
        y = (x * w).exp()
        y.register_hook(fail)
        z = (y * w if early else y + w) * x
        yield attempt(z.sum().backward), x.grad, w.grad


@case
def writes_of_other_threads(torch):
    """A saved value that another thread overwrote is refused like any other."""

    def elsewhere(work):
        found = []
        thread = threading.Thread(target=lambda: found.append(attempt(work)))
        thread.start()
        thread.join()
        return found[0]

    def untracked(tensor):
        with torch.no_grad():
            tensor.sub_(0.5)

    for read in (False, True):

        def made(work, read=read):
            z = work()
            return z, z.sum().item() if read else None

        def refused(z, x):
            return attempt(lambda: z.sum().backward()), x.grad

        x = leaf(torch, 1.0, 2.0)
        y = x * 2
        z, _ = made(lambda y=y: y * y)
        elsewhere(lambda y=y: y.add_(1))
        yield refused(z, x), y._version
        z, _ = made(lambda x=x: (x * 2).exp())
        elsewhere(lambda z=z: z.mul_(2))
        yield refused(z, x)
        w = leaf(torch, 3.0, 4.0)
        z, _ = made(lambda x=x, w=w: x * w)
        elsewhere(lambda w=w: untracked(w))
        yield refused(z, x), w
        # What the other thread made, written to in this one.
        z = elsewhere(lambda x=x, w=w: x * w)
        untracked(w)
        yield elsewhere(lambda z=z: z.sum().backward()), x.grad
        y = elsewhere(lambda x=x: x * 3)
        y.add_(1)
        z, _ = made(lambda y=y: y * y)
        y[0].add_(1)
        yield refused(z, x)
        view = elsewhere(lambda x=x: x[None])
        z = view.logsumexp(0)
        x.detach().mul_(3)
        yield refused(z, x)
        # Written before it was saved: nothing is wrong.
        x = leaf(torch, 1.0, 2.0)
        y = x * 3
        elsewhere(lambda y=y: y[0].add_(1))
        z, _ = made(lambda y=y: y * y)
        yield refused(z, x)


@case.over(kind=["plain", "looking", "replacing", "custom", "adding"])
def gradients_that_are_the_ones_given(torch, kind):
    """The very tensor that was given arrives, the third time as the first."""
    w = torch.arange(3.0).requires_grad_()
    v = torch.ones(3).requires_grad_()
    fixed = torch.ones(3)
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(g)
            return g

    hooks = {
        "looking": lambda g: seen.append(g),
        "replacing": lambda g: fixed,
        "adding": lambda g: seen.append(g + 1) or seen[-1],
    }
    for k in range(4):
        y = w + v
        if kind in hooks:
            y.register_hook(hooks[kind])
        if kind == "custom":
            y = Double.apply(y)
        given = torch.full((3,), float(k))
        found = torch.autograd.grad(y, [w, v, y, y], given)
        for each in (given, fixed, *seen, *found):
            yield [each is g for g in found]
        found[0].add_(1)
        yield given, fixed, found
        yield torch.autograd.grad(w, w, given)[0] is given
        seen.clear()
        fixed.fill_(1)
