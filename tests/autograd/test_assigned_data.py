"""`x.data = y` of an `x` that gradients need: its versions and values from then on."""

from __future__ import annotations

from itertools import product

from tests.oracle import attempt, case

# What `.data` is assigned to, of a leaf.
MADE = {
    "leaf": lambda a: a,
    "operand": lambda a: a * 2,
    "result": lambda a: a.sigmoid(),
    "both": lambda a: (a * a).softmax(0),
    "view": lambda a: (a * 2)[:],
}


def new_value(b, w, kind):
    if kind == "copy":
        return b.detach().clone()
    return w if kind == "shared" else w[:]


def written(torch, b, w, how):
    for each in how:
        if each == "b":
            with torch.no_grad():
                b[...] += 3
        elif each == "w":
            w.add_(1)
        elif each == "d":
            b.data.mul_(2)
        else:
            with torch.no_grad():
                b.mul_(2)


WRITES = ["", "b", "w", "d", "n", "bw", "wb", "db", "bd", "wd", "bn"]


@case(compiled=False)
def gradients_after_an_assignment(torch):
    """Read before, in between, after the assignment, after the writes, or not."""
    log = []
    kinds = ["copy", "shared", "view"]
    for (name, make), kind, how, read in product(MADE.items(), kinds, WRITES, range(5)):
        a = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        b = make(a)
        w = torch.tensor([5.0, 6.0, 7.0])
        if read == 0:
            b.tolist()
        c = b * b
        if read == 1:
            c.tolist()
        b.data = new_value(b, w, kind)
        if read == 2:
            c.tolist()
        written(torch, b, w, how)
        if read == 3:
            c.tolist()
        grads = attempt(
            lambda c=c, a=a, b=b: [
                None if grad is None else grad.tolist()
                for grad in torch.autograd.grad(c.sum(), [a, b], allow_unused=True)
            ]
        )
        at = b._version, w._version, b.tolist()
        log.append((name, kind, how, read, grads, at))
    return log


@case
def uses_after_an_assignment(torch):
    """What is computed from the new value; the old one's node has its own result."""
    log = []
    for (name, make), how, read in product(MADE.items(), WRITES, range(3)):
        if name == "leaf":
            continue
        a = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        b = make(a)
        w = torch.tensor([5.0, 6.0, 7.0])
        b.data = w
        if read == 1:
            b.tolist()
        attempt(lambda b=b, w=w, how=how: written(torch, b, w, how))
        if read == 2:
            b.tolist()
        grads = attempt(
            lambda a=a, b=b: torch.autograd.grad((b * b).sum(), [a])[0].tolist()
        )
        log.append((name, how, read, grads, b._version, w._version))
    return log


@case
def assigned_to_again(torch):
    log = []
    for times, read in product(range(1, 4), range(3)):
        a = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        b = a.exp()
        c = b * b
        for k in range(times):
            b.data = torch.full((3,), float(k + 2))
            if read == 1:
                c.tolist()
        if read == 2:
            with torch.no_grad():
                b.add_(1)
        again = (b * 3).sum()
        grads = attempt(lambda c=c, a=a: torch.autograd.grad(c.sum(), [a])[0].tolist())
        more = attempt(
            lambda again=again, a=a: torch.autograd.grad(again, [a])[0].tolist()
        )
        log.append((times, read, grads, more, b._version))
    return log


@case
def a_parameter_that_is_assigned_to_each_step(torch):
    """Once it is alone on its memory, it is like any other, its version goes on."""
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    log = []
    for _ in range(5):
        loss = (p * p).sum()
        (grad,) = torch.autograd.grad(loss, [p])
        p.data = p.data - 0.1 * grad
        with torch.no_grad():
            p.mul_(0.5)
        log.append((loss.item(), p.tolist(), p._version, grad.tolist()))
    product_ = (p * p).sum()
    with torch.no_grad():
        p.add_(1)
    log.append(attempt(product_.backward))
    return log


@case
def on_memory_that_numpy_shared(torch):
    """Where the array was kept, or not; used before it was taken, or after."""
    log = []
    kinds = {k: MADE[k] for k in ("leaf", "operand", "view")}
    for (name, make), taken, kept, how, read in product(
        kinds.items(), range(2), (False, True), ("", "b", "d", "w", "N"), range(3)
    ):
        a = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        b = make(a)
        array = b.detach().numpy() if taken == 0 else None
        if not kept:
            array = None
        c = (b * b).sum()
        if taken == 1:
            array = b.detach().numpy()
        if read == 1:
            c.item()
        w = torch.tensor([3.0, 4.0, 5.0])
        b.data = w
        if how == "N" and array is not None:
            array[0] = 9
        elif how != "N":
            written(torch, b, w, how)
        if read == 2:
            c.item()
        grads = attempt(lambda c=c, a=a: torch.autograd.grad(c, [a])[0].tolist())
        log.append((name, taken, kept, how, read, grads, b._version, w._version))
    return log


@case
def views_that_stay_behind(torch):
    """They are on the old memory, and still have the counter in common with `b`."""
    log = []
    kinds = ["copy", "shared", "view"]
    writes = ["", "v", "bv", "vb", "wv", "vd", "vn"]
    for kind, how, read in product(kinds, writes, range(5)):
        a = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        b = a * 2
        v = b[:]
        if read == 0:
            b.tolist()
        c = b * b
        if read == 1:
            c.tolist()
        w = torch.tensor([5.0, 6.0, 7.0])
        b.data = new_value(b, w, kind)
        if read == 2:
            c.tolist()
        for each in how:
            if each == "v":
                with torch.no_grad():
                    v.mul_(2)
            else:
                written(torch, b, w, each)
        if read == 3:
            c.tolist()
        grads = attempt(lambda c=c, a=a: torch.autograd.grad(c.sum(), [a])[0].tolist())
        at = b._version, v._version, w._version, b.tolist(), v.tolist()
        log.append((kind, how, read, grads, at))
    return log


@case
def views_that_are_written_to_behind(torch):
    """The write is of the old memory, the history that it changes is the base's."""
    changes = {
        "copy": lambda v, x: v.copy_(x[:2]),
        "times": lambda v, x: v.mul_(2),
        "item": lambda v, x: v.__setitem__(0, x[2]),
        "base": lambda v, x: v._base.__setitem__(1, 5.0),
    }
    for (name, change), hook, read in product(changes.items(), (False, True), range(3)):
        x = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        y = x * 2
        v, d = y[:2], y.detach()
        if hook:
            y.register_hook(lambda grad: grad * 2)
        y.data = torch.tensor([7.0, 8.0, 9.0])
        if read == 1:
            y.tolist()
        change(v, x)
        if read == 2:
            v.tolist()
        for each in (v, y):
            each.grad_fn  # noqa: B018
            (grad,) = torch.autograd.grad(each.sum(), [x], retain_graph=True)
            yield name, hook, read, grad
        yield y.tolist(), v.tolist(), d.tolist(), y._version, v._version


@case
def unseen_writes_before_an_assignment(torch):
    for name, read in product(("leaf", "operand", "view"), range(4)):
        a = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        b = MADE[name](a)
        c = (b * b).sum()
        if read == 1:
            c.item()
        b.data.add_(1)
        if read == 2:
            c.item()
        b.data = b.data * 2
        if read == 3:
            c.item()
        yield attempt(lambda c=c, a=a: torch.autograd.grad(c, [a])), b, b._version


@case
def walks_of_steps_that_assign(torch):
    """A walk that was right without the count is not taken for one with it."""
    for step in range(8):
        a = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        b = a * 2
        c = (b * b).sum()
        b.data = torch.tensor([5.0, 6.0, 7.0])
        if step % 4 == 3:
            torch.autograd.graph.increment_version(b)
        yield attempt(lambda c=c, a=a: torch.autograd.grad(c, [a]))


@case
def a_leaf_that_gets_another_dtype(torch):
    """It has a new node: nobody finds its gradient in the graphs before."""
    doubles = torch.tensor([5.0, 6.0, 7.0], dtype=torch.float64)
    for again, read, how in product((False, True), (False, True), "bigs"):
        a = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        seen = []
        a.register_hook(lambda g, seen=seen: seen.append(g.dtype))
        b = (a * a).double().sum()
        if read:
            b.item()
        a.data = doubles
        if again:
            b = b + (a * a).sum()
        given = {"inputs": [a]} if how == "i" else {}
        if how in "bi":
            b.backward(**given)
        else:
            yield attempt(
                lambda a=a, b=b, s=how == "s": torch.autograd.grad(b, a, allow_unused=s)
            )
        yield again, read, how, a.grad, seen


BROADCAST = {
    "mul": lambda torch, x, y: x * y,
    "sub": lambda torch, x, y: y - x,
    "pow": lambda torch, x, y: x**2,
    "sin": lambda torch, x, y: x.sin() * y,
    "exp": lambda torch, x, y: x.exp() + y,
    "where": lambda torch, x, y: torch.where(y > 0, x, y),
    "mm": lambda torch, x, y: x[None] @ y[:, None],
}


@case.over(op=list(BROADCAST), leaf=[False, True])
def data_that_broadcasts(torch, op, leaf):
    """Element-wise formulas broadcast what is there by now with what arrives."""
    shapes = ((1, 2), (2, 2), (1, 1, 2)) if leaf else ((), (1, 2), (2, 2), (3,))
    for shape in shapes:
        for read in (False, True):
            x = torch.ones(2, requires_grad=True)
            y = torch.full((2,), 2.0, requires_grad=True)
            used = x if leaf else x * 1
            out = BROADCAST[op](torch, used, y)
            if read:
                out.tolist()
            used.data = torch.full(shape, 0.5)
            yield attempt((out * torch.full(out.shape, 2.0)).sum().backward)
            yield x.grad, y.grad


@case
def gradients_of_another_dtype(torch):
    """A custom function's gradient is cast to what its input was, not is."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return (grad * 2).double()

    for dtype in (torch.float64, torch.float16):
        for wanted in (False, None, torch.float64, torch.bfloat16):
            x = torch.ones(2, requires_grad=True)
            out = Double.apply(x)
            if wanted is not False:
                x.grad_dtype = wanted
            x.data = x.data.to(dtype)
            yield attempt(out.sum().backward), x.grad, x.dtype
            x.grad = None
            Double.apply(x).sum().backward()
            yield x.grad


@case
def a_detached_alias_on_other_memory_written_to(torch):
    """What it was detached from keeps its node, though they count versions together."""
    kinds = (lambda w: w * 2, lambda w: (w * 2)[:])
    writes = (
        lambda alias: alias.__setitem__(torch.tensor([0, 2]), 2.0),
        lambda alias: alias.mul_(3),
        lambda alias: alias[:1].fill_(0),
    )
    for make, write, read in product(kinds, writes, (False, True)):
        w = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
        y = make(w)
        alias = y.detach()
        alias.data = alias.detach().clone()
        if read:
            alias.tolist()
        write(alias)
        yield y, y.grad_fn.name(), alias, y._version, alias._version
        yield attempt(torch.autograd.grad, y.sum(), w)


@case
def versions_while_aliases_share_the_counter(torch):
    """Whoever looks at the values in between does not change what was counted."""
    for looks in product(("", "x", "y"), repeat=4):
        x = torch.tensor(0.5).clone().requires_grad_()
        with torch.no_grad():
            x.detach().clamp_(min=-0.4)
        y = x
        for at in (0, 2):
            if looks[at]:
                {"x": x, "y": y}[looks[at]].detach().numpy()
            y = x / x
            if looks[at + 1]:
                {"x": x, "y": y}[looks[at + 1]].detach().numpy()
            x.data = y.detach().clone()
        yield attempt(y.backward), x.grad, x._version
        with torch.no_grad():
            x.add_(1)
        yield attempt((x * x).backward), x.grad, x._version


def square_of(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    return Square.apply


@case.over(
    how=["checkpoint", "function", "hooks"], read=[False, True], writes=[0, 1, 2]
)
def saved_by_python_code(torch, how, read, writes):
    """The version that counts is the tensor's, wherever its value is."""

    def computed(x):
        if how == "function":
            return square_of(torch)(x)
        if how == "hooks":
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                return x * x
        checkpoint = torch.utils.checkpoint.checkpoint
        return checkpoint(lambda x: x * x, x, use_reentrant=False)

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for late in (False, False, True):
        x.data = x.data * 0.5
        y = computed(x)
        if read:
            yield y.tolist()
        if late:
            with torch.no_grad():
                x.mul_(2)
        yield attempt((y * y[0]).sum().backward), x.grad, x._version
        with torch.no_grad():
            for _ in range(writes):
                x.add_(1)


@case.over(view=[False, True], write=[False, True])
def saved_by_a_function_and_dead(torch, view, write):
    """Its version was ahead of what its memory counts, and nobody holds it now."""

    for reads in range(4):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = (x * 1).add_(1).add_(1)
        y.data = torch.full((3,), 3.0)
        if reads & 1:
            yield y.tolist(), (y * 1).tolist()
        if reads & 2:
            yield (y * 2).tolist()
        y = y.view(3) if view else y
        made = square_of(torch)(y)
        if write:
            with torch.no_grad():
                y.add_(1)
        yield y._version
        del y
        # (The error names the view's node, in PyTorch that after the write.)
        yield type(attempt(made.sum().backward)).__name__, x.grad
