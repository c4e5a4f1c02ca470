"""Checkpointing (`torch.utils.checkpoint`)."""

import pytest

from tests.oracle import attempt, case
from torchshim._core.program import count


def modules(torch):
    from importlib import import_module

    return import_module(f"{torch.__name__}.utils.checkpoint")


def leaf(torch, *values):
    return torch.tensor(list(values), requires_grad=True)


def network(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(3, 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3), nn.Sigmoid()
    )


@case.over(kind=["plain", "reentrant", "not", "late"], read=[False, True])
def gradients_and_random_numbers(torch, kind, read):
    net = network(torch)
    x = torch.randn(2, 3, requires_grad=True)
    options = {
        "reentrant": {"use_reentrant": True},
        "not": {"use_reentrant": False},
        "late": {"use_reentrant": False, "early_stop": False},
    }
    if kind == "plain":
        y = net(x)
    else:
        y = modules(torch).checkpoint(net, x, **options[kind])
    loss = (y * 2).sum()
    if read:
        yield loss
    loss.backward()
    yield y, x.grad, [p.grad for p in net.parameters()], torch.rand(2)


@case
def arguments(torch):
    checkpoint = modules(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)

    def f(x, scale=1.0, *, shift=None):
        y = (x * x).exp() * scale
        return (y if shift is None else y + shift * x), "text", None

    y, text, nothing = checkpoint(f, x, 3.0, shift=x.detach(), use_reentrant=False)
    y.sum().backward()
    yield y, text, nothing, x.grad
    x.grad = None
    y, text, nothing = checkpoint(f, x, 3.0, use_reentrant=True)
    y.sum().backward()
    yield y, text, nothing, x.grad
    y, _, _ = checkpoint(f, x)
    yield y
    yield attempt(checkpoint, f, x, shift=x, use_reentrant=True)
    noop = modules(torch).noop_context_fn
    for options in (
        {"debug": True, "use_reentrant": True},
        {"context_fn": lambda: noop(), "use_reentrant": True},
        {"context_fn": lambda: noop(), "use_reentrant": False, "debug": True},
        {"determinism_check": "all", "use_reentrant": False},
    ):
        yield attempt(lambda options=options: checkpoint(f, x, **options))


@case
def without_gradients(torch):
    checkpoint = modules(torch).checkpoint
    x = torch.ones(2)
    yield checkpoint(lambda x: x * 2, x, use_reentrant=True)
    yield checkpoint(lambda x: x * 2, x, use_reentrant=False)
    w = leaf(torch, 1.0, 2.0)
    with torch.no_grad():
        yield checkpoint(lambda x: x * w, x, use_reentrant=False)
    y = checkpoint(lambda x: x * w, x, use_reentrant=True)
    yield y
    y = checkpoint(lambda x: x.detach(), w, use_reentrant=True)
    yield attempt(y.sum().backward)


@case
def reentrant_refuses_inputs(torch):
    checkpoint = modules(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    y = checkpoint(lambda x: x * x, x, use_reentrant=True)
    yield attempt(lambda: torch.autograd.grad(y.sum(), x))
    yield attempt(lambda: y.sum().backward(inputs=[x]))
    y = checkpoint(lambda x: x * x, x, use_reentrant=False)
    yield torch.autograd.grad(y.sum(), x)


@case
def how_often_it_runs(torch):
    checkpoint = modules(torch).checkpoint
    log = []
    x = leaf(torch, 1.0, 2.0)

    def f(x):
        log.append("start")
        y = x * x
        z = y.sin()
        log.append("end")
        return z * 1

    for early in (True, False):
        log.clear()
        y = checkpoint(f, x, use_reentrant=False, early_stop=early)
        y.sum().backward(retain_graph=True)
        yield list(log)
        y.sum().backward()
        yield list(log), x.grad
        yield attempt(y.sum().backward)
    with modules(torch).set_checkpoint_early_stop(False):
        y = checkpoint(f, x, use_reentrant=False)
    log.clear()
    y.sum().backward()
    yield log


@case
def nested(torch):
    checkpoint = modules(torch).checkpoint
    log = []
    for inside in (False, True):
        for outside in (False, True):
            x = leaf(torch, 0.5, 0.2)
            log.clear()

            def inner(x):
                log.append("inner")
                return x.sin().exp()

            def outer(x, inner=inner, inside=inside):
                log.append("outer")
                y = checkpoint(inner, x * x, use_reentrant=inside)
                return checkpoint(inner, y * 2, use_reentrant=inside) * 3

            y = checkpoint(outer, x, use_reentrant=outside)
            y.sum().backward()
            yield y, x.grad, list(log)


@case
def second_derivatives(torch):
    checkpoint = modules(torch).checkpoint
    x = leaf(torch, 0.5, 0.2)
    y = checkpoint(lambda x: (x * x * x).exp().tanh(), x, use_reentrant=False)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    yield g.detach()
    yield torch.autograd.grad(g.sum(), x)

    def with_gradient(x):
        y = x.sin().exp()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return x.cos() * g

    for early in (True, False):
        x = leaf(torch, 0.5, 0.2)
        y = checkpoint(with_gradient, x, use_reentrant=False, early_stop=early)
        y.sum().backward()
        yield y, x.grad


@case
def differences_are_errors(torch):
    mod = modules(torch)
    x = leaf(torch, 1.0, 2.0)
    first = [True]

    def fewer(x):
        y = x * x
        if first[0]:
            y = y * x
        return y.sin() if first[0] else y

    def more(x):
        y = x * x
        if not first[0]:
            y = y.sin().sin()
        return y

    def other(x):
        return (x if first[0] else torch.cat([x, x])).sin()

    for f in (fewer, more, other):
        for early in (True, False):
            first[0] = True
            y = mod.checkpoint(f, x, use_reentrant=False, early_stop=early)
            first[0] = False
            yield attempt(y.sum().backward)
    first[0] = True
    y = mod.checkpoint(fewer, x, use_reentrant=False, determinism_check="none")
    first[0] = False
    yield attempt(y.sum().backward)
    first[0] = True
    yield mod.CheckpointError.__mro__[1].__name__


@case
def inputs_written_to(torch):
    checkpoint = modules(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    a = x * 1
    y = checkpoint(lambda a: a * a, a, use_reentrant=False)
    a.add_(1)
    yield attempt(y.sum().backward)


@case
def autocast_is_as_before(torch):
    checkpoint = modules(torch).checkpoint
    for reentrant in (False, True):
        w = torch.ones(2, 2, requires_grad=True)
        log = []

        def f(x, log=log):
            y = x @ x
            log.append((y.dtype, torch.is_autocast_enabled("cpu")))
            return y.float() * 1

        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = checkpoint(f, w, use_reentrant=reentrant)
        y.sum().backward()
        yield log, w.grad


@case
def contexts(torch):
    import contextlib

    checkpoint = modules(torch).checkpoint
    log = []

    @contextlib.contextmanager
    def noted(name):
        log.append(f"+{name}")
        yield
        log.append(f"-{name}")

    x = leaf(torch, 1.0, 2.0)
    y = checkpoint(
        lambda x: x * x,
        x,
        use_reentrant=False,
        context_fn=lambda: (noted("first"), noted("again")),
        early_stop=False,
    )
    yield list(log)
    y.sum().backward()
    yield log

    @contextlib.contextmanager
    def silent():
        with contextlib.suppress(ZeroDivisionError):
            yield

    def fails(x):
        raise ZeroDivisionError

    yield attempt(checkpoint, fails, x, use_reentrant=False)
    yield attempt(
        lambda: checkpoint(
            fails, x, use_reentrant=False, context_fn=lambda: (silent(), silent())
        )
    )


@case
def sequential(torch):
    mod = modules(torch)
    layers = [torch.nn.Linear(3, 3), torch.tanh, torch.nn.Linear(3, 3), torch.sigmoid]
    net = torch.nn.Sequential(
        layers[0], torch.nn.Tanh(), layers[2], torch.nn.Sigmoid(), torch.nn.Tanh()
    )
    x = torch.randn(2, 3, requires_grad=True)
    for segments in (1, 2, 5):
        for reentrant in (True, False):
            for functions in (net, layers):
                if segments == 5 and functions is layers:
                    continue
                x.grad = None
                y = mod.checkpoint_sequential(
                    functions, segments, x, use_reentrant=reentrant
                )
                y.sum().backward()
                yield y, x.grad
    yield mod.checkpoint_sequential(net, 2, x)
    yield attempt(mod.checkpoint_sequential, net, 2, x, scale=2, use_reentrant=True)


@case
def groups(torch):
    mod = modules(torch)
    runs = []

    def f(x):
        runs.append(1)
        return x.sin(), (x * 2).cos()

    x = leaf(torch, 0.5, 0.2)
    a, b = mod.checkpoint(f, x, use_reentrant=False)
    with mod.GraphExecGroup():
        a.sum().backward(retain_graph=True)
        b.sum().backward()
    yield len(runs), x.grad
    a, b = mod.checkpoint(f, x, use_reentrant=False)
    with mod.GraphExecGroup():
        a.sum().backward(retain_graph=True)
        yield attempt(a.sum().backward)

    def within():
        with mod.GraphExecGroup(), mod.GraphExecGroup():
            pass

    yield attempt(within).__class__.__name__


@case
def custom_functions(torch):
    checkpoint = modules(torch).checkpoint
    log = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            log.append("forward")
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            log.append("backward")
            return grad * 2 * x + y * 0

    x = leaf(torch, 0.5, 0.2)
    for reentrant in (True, False):
        x.grad = None
        log.clear()
        y = checkpoint(
            lambda x: Square.apply(x.sin()).exp(), x, use_reentrant=reentrant
        )
        y.sum().backward()
        yield x.grad, list(log)


@case
def selective(torch):
    mod = modules(torch)
    runs = []
    aten = torch.ops.aten

    def policy(context, op, *args, **kwargs):
        runs.append((str(op), context.is_recompute))
        if op is aten.sin.default:
            return mod.CheckpointPolicy.MUST_SAVE
        return mod.CheckpointPolicy.PREFER_RECOMPUTE

    def f(x, y):
        return torch.sigmoid(torch.matmul(torch.matmul(x, y).sin(), y)) * y

    for chosen in (policy, [aten.mm.default], [aten.sigmoid.default, aten.sin.default]):
        x = torch.randn(2, 2, requires_grad=True)
        y = torch.randn(2, 2, requires_grad=True)
        out = mod.checkpoint(
            f,
            x,
            y,
            use_reentrant=False,
            context_fn=lambda chosen=chosen: mod.create_selective_checkpoint_contexts(
                chosen
            ),
        )
        out.sum().backward(retain_graph=True)
        yield x.grad, y.grad
        yield attempt(out.sum().backward)
    yield runs
    create = mod.create_selective_checkpoint_contexts
    yield attempt(create, 3)
    yield attempt(lambda: create([aten.mm]))
    yield [p.name for p in mod.CheckpointPolicy]


@case
def names_that_policies_see(torch):
    """The forms of operators that are one here and in PyTorch."""
    F = torch.nn.functional
    functions = {
        "numbers": lambda x, w: (x * 2, x + 1, x / 2, x - 1, 1 - x, 2 / x, x % 2),
        "tensors": lambda x, w: (x * w, x + w, x / w, x - w, x % w, x.maximum(w)),
        "powers": lambda x, w: (x**2, x**w, 2**x, x.atan2(w)),
        "comparisons": lambda x, w: (x > 0, x > w, x == 1, x != w),
        "whole": lambda x, w: (x.sum(), x.mean(), x.max(), x.prod(), x.any(), x.var()),
        "rows": lambda x, w: (x.sum(0), x.mean((0, 1)), x.max(0), x.prod(0), x.all(0)),
        "moments": lambda x, w: (x.std(0), torch.var_mean(x), torch.std_mean(x, 1)),
        "limits": lambda x, w: (x.clamp(0, 1), x.clamp(min=w), x.masked_fill(w > 0, 1)),
        "views": lambda x, w: (
            x.transpose(0, 1),
            x.flatten(),
            x.reshape(16),
            x.unbind(),
        ),
        "choices": lambda x, w: (torch.where(w > 0, x, w), x.median(1), x.double()),
        "pictures": lambda x, w: (
            F.max_pool2d(x[None, None], 2),
            F.interpolate(x[None, None], scale_factor=2),
        ),
    }
    aten = torch.ops.aten
    left_out = [aten.detach, aten.unsqueeze]
    for function in functions.values():
        seen = []

        def policy(context, op, *args, seen=seen, **kwargs):
            if op.overloadpacket not in left_out and "index" not in str(op):
                seen.append(str(op))
            return torch.utils.checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

        def contexts(policy=policy):
            make = torch.utils.checkpoint.create_selective_checkpoint_contexts
            return make(policy)

        x = torch.ones(4, 4, requires_grad=True)
        w = torch.full((4, 4), 2.0)
        torch.utils.checkpoint.checkpoint(
            function, x, w, use_reentrant=False, context_fn=contexts
        )
        yield seen


@case
def helpers(torch):
    mod = modules(torch)
    x = leaf(torch, 1.0, 2.0)
    (a, b) = mod.detach_variable((x * 2, 3))
    yield a, a.is_leaf, b
    yield attempt(mod.detach_variable, [x])
    mod.check_backward_validity([x])
    mod.check_backward_validity([x.detach(), 2])
    yield mod.get_device_states(x), mod.DefaultDeviceType.get_device_type()
    yield sorted(n for n in mod.__all__)


# -- memory and programs ---------------------------------------------------------------


class Blocks:
    """A deep perceptron; each block makes four times the memory of its input."""

    def __init__(self, rows):
        from torchshim import nn, randn

        self.blocks = [
            nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 32), nn.Tanh())
            for _ in range(6)
        ]
        self.x = randn(rows, 32)
        self.parameters = [p for b in self.blocks for p in b.parameters()]

    def loss(self, kind):
        from torchshim.utils.checkpoint import checkpoint

        for parameter in self.parameters:
            parameter.grad = None
        h = self.x * 1
        h.requires_grad_()
        for block in self.blocks:
            if kind == "plain":
                h = block(h)
            else:
                h = checkpoint(block, h, use_reentrant=kind == "reentrant")
        return h.square().mean()

    def gradients(self):
        return [p.grad.sum().item() for p in self.parameters]


def alive():
    """Bytes that arrays take."""
    import gc

    import jax

    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())


@pytest.mark.parametrize("kind", ["reentrant", "not"])
def test_nothing_is_kept_between_forward_and_backward(kind):
    net = Blocks(4096)
    size = 4096 * 32 * 4
    net.x.sum().item()
    before, kept = alive(), {}
    for mode in ("plain", kind):
        loss = net.loss(mode)
        loss.item()
        kept[mode] = (alive() - before) / size
        loss.backward()
        del loss
        kept[mode, "gradients"] = net.gradients()
    # The inputs of the blocks, the last output, and what the mean keeps.
    assert kept[kind] <= 8.5
    assert kept["plain"] >= 20
    expected = pytest.approx(kept["plain", "gradients"], rel=1e-4, abs=1e-7)
    assert kept[kind, "gradients"] == expected


@pytest.mark.parametrize("kind", ["reentrant", "not"])
def test_small_steps_stay_one_program(kind):
    from torchshim._core.record import local

    net = Blocks(8)
    counts = []
    for _ in range(3):
        net.x.sum().item()
        before = local.rec.flushes
        net.loss(kind).backward()
        net.parameters[0].grad.sum().item()
        counts.append((local.rec.flushes - before, count()))
    assert [n for n, _ in counts] == [1, 1, 1]
    assert counts[1][1] == counts[2][1]


@pytest.mark.parametrize("kind", ["reentrant", "not"])
def test_large_segments_are_computed_one_after_the_other(kind):
    from torchshim._core.record import local

    net = Blocks(3 * 4096)
    net.x.sum().item()
    before = local.rec.flushes
    net.loss(kind).backward()
    assert local.rec.flushes - before == len(net.blocks)


def test_the_second_run_is_not_merged_with_the_first():
    import jax
    import jax.numpy as jnp

    from torchshim._ops.gradients import _recompute_input

    def twice(x):
        return jnp.sin(x) + jnp.sin(_recompute_input(x, [x * 2]))

    lowered = jax.jit(twice).lower(jnp.ones(3)).as_text()
    assert lowered.count("optimization_barrier") == 1


@case
def saved_tensors_are_those_of_the_first_run(torch):
    found = []

    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x

        @staticmethod
        def backward(ctx, g):
            found.append(ctx.saved_tensors[0])
            return g, None

    a, b = leaf(torch, 1.0), torch.tensor(2.0)
    Keep.apply(a, b).backward()
    modules(torch).checkpoint(Keep.apply, a, b, use_reentrant=False).backward()
    return [each is b for each in found]


@case
def what_debugging_says(torch):
    runs = []

    def changing(x):
        runs.append(x)
        return x.sin().exp() if len(runs) == 1 else x.sin() * torch.ones(2)

    out = modules(torch).checkpoint(
        changing, leaf(torch, 1.0), use_reentrant=False, debug=True
    )
    text = str(attempt(out.backward))
    return "You are seeing this error because you passed `debug=True`" in text
