"""What PyTorch's own tests of autograd reach: nodes for tests, the engine's queue."""

from __future__ import annotations

from tests.oracle import attempt, case


@case
def errors_and_missing_gradients(torch):
    x = torch.ones(2, requires_grad=True)
    nodes = torch._C._functions
    raising = nodes.DelayedError("Boom!", 1)(x)
    yield raising.grad_fn, type(raising.grad_fn), attempt(raising.sum().backward)
    undefined = nodes.UndefinedGrad()(x * 2)
    yield undefined, undefined.grad_fn, type(undefined.grad_fn)
    (undefined + x).sum().backward()
    yield x.grad


@case.over(True, False)
def gradients_of_plain_outputs(torch, materialized):
    seen = []

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.clone()
            ctx.mark_non_differentiable(out)
            ctx._materialize_non_diff_grads = materialized
            return x.clone(), out

        @staticmethod
        def backward(ctx, g0, g1):
            seen.append(g1)
            return g0

    Both.apply(torch.tensor(1.0, requires_grad=True))[0].backward()
    return seen


@case
def queued_callbacks(torch):
    engine = torch.autograd.Variable._execution_engine
    ran = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def last():
        ran.append(("last", x.grad.tolist()))

    def first():
        ran.append("first")
        engine.queue_callback(last)

    y = x * 3
    y.register_hook(lambda grad: engine.queue_callback(first))
    y.sum().backward()
    yield ran
    yield attempt(engine.queue_callback, last)


@case
def numbered_backwards(torch):
    number = torch._C._current_graph_task_id
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    for node in (y, x):
        node.register_hook(lambda grad: seen.append(number()))

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            outer = number()
            with torch.enable_grad():
                z = torch.ones(1, requires_grad=True)
                z.register_hook(lambda grad: seen.append(number() - outer))
                (z * 2).sum().backward()
            seen.append(number() - outer)
            return grad

    for _ in range(3):
        y.sum().backward(retain_graph=True)
    yield [n - seen[0] for n in seen], number()
    seen.clear()
    Inner.apply(x).sum().backward()
    yield seen[:2], number()


@case
def saved_arguments(torch):
    a = torch.ones(3, 3, requires_grad=True)
    selected = a.index_select(0, torch.tensor([0, 1])).grad_fn
    yield selected._saved_dim, selected._saved_self_sym_sizes
    yield torch.cumsum(a, 1).grad_fn._saved_dim
    yield torch.addcdiv(a, a, a, value=2.5).grad_fn._saved_value
    yield attempt(getattr, selected, "_saved_nothing")
    for reduced in (
        a.sum(0),
        a.mean(-1),
        a.amax(1),
        a.std(dim=0),
        a.logsumexp((0, -1)),
    ):
        yield reduced.grad_fn._saved_dim
    yield a.flip(-1).grad_fn._saved_dims, a.roll(1, -1).grad_fn._saved_dims
    yield a.softmax(-1).grad_fn._saved_dim, a.prod(-1).grad_fn._saved_dim
    yield a.transpose(0, -1).grad_fn._saved_dim1, a.nansum(1).grad_fn._saved_dim


@case.over("float64", "complex128")
def unknown_gradients_of_constant_powers(torch, name):
    dtype = getattr(torch, name)
    base = torch.zeros(2, dtype=dtype, requires_grad=True)
    exponent = torch.zeros(2, dtype=dtype, requires_grad=True)
    (base**exponent).backward(torch.full((2,), float("nan"), dtype=dtype))
    yield base.grad, exponent.grad


@case
def attributes_that_stay(torch):
    x = torch.ones(2, requires_grad=True)
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        yield attempt(delattr, x, name)
    y = x * 2
    yield y._grad_fn is y.grad_fn, attempt(setattr, y, "_grad_fn", 3)
    del x.grad
    yield x.grad


@case
def jacobians_under_old_names(torch):
    from importlib import import_module

    checks = import_module(f"{torch.__name__}.autograd.gradcheck")
    a, b = (torch.rand(2, 2, dtype=torch.double, requires_grad=True) for _ in "ab")

    def func(inputs):
        x, y = inputs
        return 2 * x + y, x + 2 * y

    found = checks.get_numerical_jacobian(func, (a, b), target=a, eps=1e-6)
    yield [each.round() for each in found]
    numeric, same, sizes, types = checks.get_analytical_jacobian(
        (a, b), func((a, b))[0]
    )
    yield numeric, same, sizes, types
    yield attempt(lambda: checks.get_numerical_jacobian(func, (a, b), grad_out=2.0))


@case
def error_of_a_second_derivative(torch):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2, None

    x = torch.ones(2, requires_grad=True)
    (grad,) = torch.autograd.grad(
        Once.apply(x, 2).sum(), x, torch.ones((), requires_grad=True), create_graph=True
    )
    yield [None if n is None else n.name() for n, _ in grad.grad_fn.next_functions]
    yield attempt(lambda: grad.sum().backward())


@case
def versions_that_are_set(torch):
    x = torch.randn(2, 3)
    torch._C._autograd._unsafe_set_version_counter((x,), (14,))
    yield x._version, torch._C._autograd._saved_tensors_hooks_is_enabled()
    yield attempt(torch._C._autograd._unsafe_set_version_counter, (x,), (-2,))
