"""`torch.func`: grad, vjp, jvp, Jacobians and Hessians, one in another."""

import importlib

from tests.oracle import attempt, case


def points(torch):
    x = torch.arange(6.0).reshape(2, 3)
    return x, torch.tensor([1.0, 2.0, 3.0]), torch.arange(9.0).reshape(3, 3) / 10


def cubic(a):
    return (a**3).sum() * a[0]


@case
def gradients(torch):
    grad, grad_and_value = torch.func.grad, torch.func.grad_and_value
    x, v, m = points(torch)
    yield grad(lambda a: (a**3).sum())(v)
    yield grad(grad(lambda a: a**3))(torch.tensor(2.0))
    yield grad(grad(grad(torch.sin)))(torch.tensor(2.0))
    yield grad(lambda a, b: (a * b * b).sum(), argnums=(0, 1))(v, v + 1)
    yield grad(lambda a, b: (a * b * b).sum(), argnums=-1)(v, v + 1)
    yield grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": v, "b": [v + 1]})
    yield grad(lambda a: ((a * a).sum(), a * 2), has_aux=True)(v)
    yield grad_and_value(lambda a: (a * a).sum())(v)
    yield grad_and_value(lambda a: ((a * a).sum(), {"k": a}), has_aux=True)(v)
    yield grad(lambda a: torch.ones(()))(v)
    yield grad(lambda a, k: a.sum() * k)(v, 3)
    yield grad(lambda a: a.sum() if a.sum().item() > 1 else -a.sum())(v)
    yield grad(lambda a: a.clone().mul_(a).sum())(v)
    c = torch.tensor([1 + 2j, 3 - 1j])
    yield grad(lambda a: (a * a.conj()).real.sum())(c)
    yield torch.vmap(grad(lambda p, a: ((p @ a) ** 2).sum()), (None, 0))(m, x)
    yield grad(lambda a: torch.vmap(lambda r: (r * a).sum())(x).sum())(v)


@case
def modes(torch):
    grad = torch.func.grad
    _, v, _ = points(torch)

    def half(a):
        with torch.no_grad():
            c = a**2
        return (a**2 - c).sum()

    w = torch.full((3,), 2.0, requires_grad=True)
    yield grad(half)(v)
    with torch.no_grad():
        yield grad(lambda a: (a * a * w).sum())(v)
    yield grad(lambda a: (a * a * w).sum())(v)
    yield grad(lambda a: (a * a).sum())(v)
    yield grad(lambda a: (a * a).sum())(w)
    out = grad(lambda a: (a * a * w * w).sum())(v)
    out.sum().backward()
    yield w.grad
    with torch.inference_mode():
        yield grad(lambda a: (a * a).sum())(v)
    yield grad(lambda a: (print(a.requires_grad, a.is_leaf), a.sum())[1])(v)
    yield grad(lambda a: (a.detach() * a).sum())(v)


@case(warnings=False)
def tensors_made_in_inference_mode(torch):
    """Transforms hold them for their derivatives; autograd refuses to."""
    f = torch.func

    class Times(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[1], None

    x = torch.tensor([1.0, 2.0])
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    with torch.inference_mode():
        made = torch.tensor([1.0, 3.0])

    def results():
        yield f.grad(lambda a: (a * made).pow(2).sum())(x)
        yield f.grad(lambda a: (a * a * made).sum())(made)
        yield f.grad(lambda a: f.grad(lambda b: (b * b * made * a).sum())(a).sum())(x)
        yield f.vjp(lambda a: a.exp() * made, x)[1](made)
        yield f.hessian(lambda a: (a * a * made).sum())(x)
        yield f.vmap(f.grad(lambda a: (a * made).sum()))(x.expand(3, 2))
        yield f.grad(lambda a: Times.apply(a, made).sum())(x)

    with torch.inference_mode():
        yield [*results()], f.grad(lambda a: (a * w * made).sum())(x)
    yield [*results()]
    yield attempt(f.grad(lambda a: (a * w * made).sum()), x)
    yield attempt(f.grad(lambda a: a.sum() + (w * made).sum()), x)
    yield attempt(f.grad(lambda a: (a * made).sum()), w)
    yield attempt(Times.apply, w, made)


@case(warnings=False)
def refusals(torch):
    f = torch.func
    x, v, _ = points(torch)
    yield attempt(f.grad(lambda a: a * 2), x)
    yield attempt(f.grad(lambda a: 2), x)
    yield attempt(f.grad(lambda a: a.sum()), 1)
    yield attempt(f.grad(lambda a: a.sum()), torch.tensor([1]))
    yield attempt(f.grad(lambda a: a.sum(), argnums=1), v)
    yield attempt(f.grad(lambda a: a.sum(), argnums=()), v)
    yield attempt(f.grad(lambda a: a.sum(), argnums=(0, 0)), v)
    yield attempt(f.grad(lambda a: a.sum(), argnums="0"), v)
    yield attempt(f.grad(lambda a: a.sum(), has_aux=True), v)
    yield attempt(f.grad(lambda a: a.backward()), x)
    yield attempt(f.grad(lambda a: a.clone().requires_grad_().sum()), v)
    yield attempt(f.vjp, lambda a: 3, v)
    yield attempt(f.vjp, lambda a: a > 0, v)
    yield attempt(f.vjp, lambda a: a, v, has_aux=True)
    yield attempt(f.vjp(lambda a: (a, a), v)[1], v)
    yield attempt(f.vjp(lambda a: a, v)[1], torch.ones(2))
    yield attempt(f.jacrev, lambda a: a, chunk_size=0)
    yield attempt(f.jacrev(lambda a: a), torch.ones(2, dtype=torch.complex64))
    yield attempt(f.jacfwd(lambda a: a), torch.ones(2, dtype=torch.complex64))
    yield attempt(f.jvp, lambda a: a, v, v)
    yield attempt(f.jvp, lambda a: a, (v,), v)
    yield attempt(f.jvp, lambda a: a, (v,), (1,))
    yield attempt(f.jvp, lambda a: a, (), ())
    yield attempt(f.jvp, lambda a: 3, (v,), (v,))
    yield attempt(f.jvp, lambda a: torch.ones(2), (v,), (v,), strict=True)
    yield attempt(f.jvp, lambda a: (a,), (v,), (v,), has_aux=True)
    yield attempt(f.jvp, lambda a: (a, 2), (v,), (v,), has_aux=True)
    yield attempt(f.jvp, lambda a: a, (v,), (torch.ones(2),))
    yield attempt(f.functionalize, lambda a: a, remove="all")


@case
def products(torch):
    f = torch.func
    _, v, m = points(torch)
    out, pull = f.vjp(lambda a: (a.sin(), {"k": a * 2}), v)
    yield out
    yield pull((v, {"k": v}))
    yield f.vjp(lambda a, b: a * b, v, v + 1)[1](v)
    yield f.vjp(lambda a: (a * 2, a), v, has_aux=True)[2]
    yield torch.vmap(f.vjp(lambda a: m @ a, v)[1])(torch.eye(3))
    yield f.jvp(lambda a: (a.sin(), a * 2), (v,), (v,))
    yield f.jvp(lambda a, b: a * b, (v, v + 1), (v, v))
    yield f.jvp(lambda a: {"p": a.cos()}, (v,), (v,))
    yield f.jvp(lambda a: (a, a * 2), (v,), (v,), has_aux=True)
    yield f.jvp(lambda a: torch.ones(2), (v,), (v,))
    yield f.jvp(lambda a: a > 0, (v,), (v,))
    yield f.functionalize(lambda a: a.clone().add_(1))(v)


@case(warnings=False)
def linear_approximation(torch):
    linearize = torch.func.linearize
    _, v, m = points(torch)
    value, push = linearize(lambda a: m @ a.sin(), v)
    yield value, push(v), push(2 * v)
    yield attempt(push, torch.ones(2))
    yield attempt(push, v.double())
    yield attempt(push, v, v)


@case
def products_of_products(torch):
    f = torch.func
    _, v, _ = points(torch)
    cube = lambda a: (a**3).sum()  # noqa: E731
    yield f.jvp(f.grad(cube), (v,), (v,))
    yield f.grad(lambda a: f.jvp(cube, (a,), (v,))[1])(v)
    yield f.jvp(lambda a: f.jvp(cube, (a,), (v,))[1], (v,), (v,))
    yield f.vjp(f.grad(cube), v)[1](v)
    yield f.grad(lambda u: f.vjp(f.grad(cube), v)[1](u)[0].sum())(v)
    w = v.clone().requires_grad_()
    out = f.jvp(lambda a: a * w, (v,), (v,))[1]
    yield out.detach()
    yield torch.autograd.grad(out.sum(), w)


@case
def matrices(torch):
    f = torch.func
    x, v, m = points(torch)
    yield f.jacrev(lambda a: m @ a.sin())(v)
    yield f.jacfwd(lambda a: m @ a.sin())(v)
    for jacobian in (f.jacrev, f.jacfwd):
        yield jacobian(lambda a, b: (a * b, a.sum()), argnums=(0, 1))(v, v + 1)
        yield jacobian(lambda a: {"k": a * 2}, has_aux=False)(v)
        yield jacobian(lambda p: p["a"] * p["b"])({"a": v, "b": v})
        yield jacobian(lambda a: (a * 2, a), has_aux=True)(v)
        yield jacobian(lambda a: a.sum() * x)(torch.tensor(2.0))
        yield torch.vmap(jacobian(lambda a: m @ a.tanh()))(x)
    yield f.jacrev(lambda a: m @ a.sin(), chunk_size=2)(v)
    yield f.jacrev(lambda a: m @ a.sin(), chunk_size=1)(v)
    yield f.hessian(cubic)(v)
    yield f.jacrev(f.jacrev(cubic))(v)
    yield f.jacfwd(f.jacfwd(cubic))(v)
    yield f.jacrev(f.jacfwd(cubic))(v)
    yield torch.vmap(f.hessian(cubic))(x + 1)
    yield f.hessian(lambda a, b: (a * b * b).sum(), argnums=(0, 1))(v, v + 1)


@case
def captured_tensors_are_not_written_to(torch):
    """What a differentiated function did not make itself, it may not change."""
    func, c = torch.func, torch.ones(3)

    def add(x):
        c.add_(x)

    def assign(x):
        c[0] = 2.0

    def untracked(x):
        with torch.no_grad():
            c[:2].mul_(2)

    def nested(x):
        func.grad(lambda y: (x.add_(1) * y).sum())(x.clone())

    def view(x):
        x[0].add_(1)

    def mapped(x):
        func.vmap(lambda y: c.add_(1) * y)(torch.ones(2, 3))

    for work in (
        add,
        assign,
        untracked,
        nested,
        mapped,
        lambda x: c.copy_(x),
        lambda x: c.zero_(),
        lambda x: c.data.add_(1),
        lambda x: x.add_(1),
        lambda x: c.normal_(),
        lambda x: c[1:].uniform_(1, 2),
        lambda x: c.random_(),
        lambda x: c.random_(5),
        lambda x: c.random_(2, 5),
        lambda x: c.bernoulli_(0.5),
        lambda x: c.bernoulli_(torch.full((3,), 0.5)),
        lambda x: c.exponential_(),
        view,
    ):

        def f(x, work=work):
            work(x)
            return (c * x).sum()

        yield attempt(func.grad(f), torch.ones(3)), c
        if work not in (nested, view):
            yield attempt(func.jvp, f, (torch.ones(3),), (torch.ones(3),)), c
    yield func.vmap(lambda y: c.add_(1) * y)(torch.ones(2, 3)), c


@case
def what_a_function_made_is_written_to(torch):
    func, c = torch.func, torch.ones(3)

    def tensors(x):
        yield torch.zeros(3)
        yield torch.tensor([1.0, 2.0, 3.0])
        yield c + 1
        yield c.clone()
        yield x * 1
        yield torch.zeros(2, 3)[0]
        yield torch.tensor([1.0, 2.0, 3.0]).detach()
        yield torch.nn.Parameter(torch.zeros(3)).detach().clone()
        made = torch.arange(3.0)
        made.max()
        yield made
        yield torch.empty(3).fill_(2)

    for read in (False, True):

        def f(x, read=read):
            total = 0
            for each in tensors(x):
                if read:
                    float(each.detach().sum())  # a value: ends the recording
                each.mul_(2).add_(x)
                each[0] = 1.0
                total = total + (each * x).sum()
            # A level within, which writes to what is its own.
            inner = func.grad(lambda y: (y.clone().mul_(y) * x).sum())(x)
            made = torch.zeros(3)

            def g(y):
                made_within = made.clone()
                made_within += y
                return (made_within * y).sum()

            made += func.grad(g)(x)
            return total + inner.sum() + made.sum()

        yield func.grad(f)(torch.ones(3))
        yield func.jvp(f, (torch.ones(3),), (torch.ones(3),))


@case
def associative_scans(torch):
    name = f"{torch.__name__}._higher_order_ops.associative_scan"
    function = importlib.import_module(name).associative_scan

    def scan(*args, **options):
        return function(*args, combine_mode="generic", **options)

    def add(a, b):
        return a + b

    def linear(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    for n in (1, 2, 3, 5, 8):
        x = torch.arange(1.0, n + 1)
        yield scan(add, x, 0), scan(torch.mul, x, -1, reverse=True)
    torch.manual_seed(0)
    x, y = torch.randn(2, 5, 3, requires_grad=True), torch.rand(2, 5, 3)
    yield scan(linear, (y, x), 1), scan(linear, (y, x), -2, reverse=True)
    yield torch.autograd.grad(scan(linear, (y, x), 1)[1].sum(), x)
    yield scan(lambda a, b: {"k": torch.maximum(a["k"], b["k"])}, {"k": x}, 0)
    yield attempt(function, add, x, 0), attempt(function, add, x, 0, False, "b")
    yield attempt(scan, add, x, 3), attempt(scan, add, x, 0, reverse=1)
    yield attempt(scan, add, x[:, :0], 1), attempt(scan, add, (x, y[0]), 2)
    yield attempt(scan, add, torch.tensor(1.0), 0)


@case
def cotangents_of_vjp(torch):
    x = torch.tensor([1.0, 2.0])
    for given in (3, "a", None, x, x[:1]):
        yield attempt(torch.func.vjp(torch.sin, x)[1], given)
    yield torch.func.vjp(lambda t: t.sin().sum(), x)[1](None)
    yield torch.func.vjp(lambda t: (t.sin().sum(), t), x)[1]((None, x))


@case
def gradients_of_complex_results(torch):
    x = torch.ones(2, dtype=torch.complex64)
    yield attempt(torch.func.grad(lambda t: t.sum()), x)
    yield torch.func.grad(lambda t: t.abs().sum())(x)


@case
def per_sample_gradients_of_another_batch(torch):
    grads = importlib.import_module(f"{torch.__name__}.nn.utils._per_sample_grad")
    per_sample = grads.call_for_per_sample_grads
    layer = torch.nn.Linear(2, 3)
    yield attempt(per_sample(layer, batch_size=3), torch.ones(4, 2))


def transforms(torch):
    """The transforms, each as one that gives a function of one tensor."""
    f = torch.func

    def forward(g):
        return lambda x: f.jvp(g, (x,), (x,))

    return {
        "grad": f.grad,
        "vjp": lambda g: lambda x: f.vjp(g, x)[0],
        "jacrev": f.jacrev,
        "jacfwd": f.jacfwd,
        "hessian": f.hessian,
        "jvp": forward,
        "vmap": torch.vmap,
        "vmap of grad": lambda g: lambda x: torch.vmap(f.grad(g))(x[None]),
    }


@case
def saved_tensor_hooks(torch):
    """Those that go backward allow none: hooks, and checkpoints that need them."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    checkpoint = torch.utils.checkpoint.checkpoint

    def square(x):
        return (x * x).sum()

    def hooked(x):
        with hooks(lambda t: t * 2, lambda t: t / 2):
            return square(x)

    def checkpointed(x):
        return checkpoint(square, x, use_reentrant=False)

    x = torch.tensor([1.0, 2.0])
    for transform in transforms(torch).values():
        for function in (hooked, checkpointed):
            yield attempt(transform(function), x)
        with hooks(lambda t: t, lambda t: t):
            yield attempt(transform(square), x)
        yield attempt(transform(square), x)
    with hooks(lambda t: t * 2, lambda t: t / 2):
        kept = x.requires_grad_().exp()
    yield kept.grad_fn._raw_saved_result.data


@case
def what_transforms_decide_of_tensors(torch):
    leaf = torch.ones(2, requires_grad=True)
    tensors = {
        "argument": lambda x: x,
        "of it": lambda x: x * 2,
        "leaf": lambda x: leaf,
        "of leaf": lambda x, outside=leaf * 2: outside,
        "new": lambda x: torch.ones(2),
    }
    changes = {
        "on": lambda x: x.requires_grad_(),
        "off": lambda x: x.requires_grad_(False),
        "retain": lambda x: x.retain_grad(),
    }
    x = torch.tensor([1.0, 2.0])
    for transform in transforms(torch).values():
        for tensor in tensors.values():
            for change in changes.values():

                def function(x, tensor=tensor, change=change):
                    change(tensor(x))
                    return x.sum()

                yield attempt(transform(function), x)


@case
def what_c_knows_of_tensors(torch):
    functorch = torch._C._functorch
    questions = (
        *(functorch.maybe_get_level, functorch.maybe_get_bdim),
        *(functorch.is_batchedtensor, functorch.is_gradtrackingtensor),
        *(functorch.is_functorch_wrapped_tensor, functorch.is_functionaltensor),
        *(functorch.is_legacy_batchedtensor, functorch.get_unwrapped),
        functorch.unwrap_if_dead,
    )

    def asked(x):
        print(functorch.maybe_current_level(), *(attempt(q, x) for q in questions))
        print(functorch.get_dynamic_layer_stack_depth())
        return x.sum()

    x = torch.ones(2, 3)
    asked(x)
    for transform in transforms(torch).values():
        transform(asked)(x)
    torch.vmap(torch.func.grad(asked))(x)
    torch.func.grad(lambda x: torch.vmap(asked)(x).sum())(x)
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x * 2)
        asked(dual)
        torch.vmap(asked)(dual)
    for question in questions[:-1]:
        yield attempt(question, 3)


@case
def batch_norm_has_no_gradients_of_samples(torch):
    per_sample = torch.nn.utils._per_sample_grad.call_for_per_sample_grads
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    for train in (True, False):
        yield attempt(per_sample(net.train(train)), torch.ones(4, 3))
    net.eval()[1].requires_grad_(False)
    per_sample(net)(torch.ones(4, 3)).sum().backward()
    yield net[0].weight.grad_sample


@case
def mapped_gradients_of_mapped_graphs(torch):
    x = torch.arange(6.0).view(3, 2).requires_grad_()
    kept = []
    for _ in range(4):
        y = torch.vmap(lambda row: row * row)(x)
        yield y.tolist()
        kept.append(y)
    rows = torch.stack([torch.ones(3, 2), torch.full((3, 2), 2.0)])
    for y in kept:
        yield torch.autograd.grad(y, x, rows, is_grads_batched=True)


@case
def views_of_what_was_written_to_within(torch):
    f = torch.func

    def first(x):
        y = x.clone()
        piece = y[0]
        y.sin_()
        return piece

    def both(x):
        y = x.clone()
        piece = y[:1]
        y.mul_(3)
        return y.sum(), piece

    x = torch.tensor([1.0, 2.0, 3.0])
    yield f.grad(first)(x), f.vjp(first, x)[1](torch.tensor(1.0))
    yield torch.vmap(f.grad(first))(x.expand(2, 3).clone())
    yield f.grad(both, has_aux=True)(x)


@case
def histories_around_levels_without_gradients(torch):
    f = torch.func
    x = torch.tensor(3.0, requires_grad=True)
    w = torch.tensor(4.0, requires_grad=True)
    one = torch.tensor(1.0)
    with torch.no_grad():
        out, back = f.vjp(lambda a: a * a * w, x)
        yield f.grad(lambda a: a**3)(x).requires_grad
        yield [o.requires_grad for o in f.vjp(lambda a: (a, a * w), x)[0]]
    (found,) = back(one)
    yield out, found.requires_grad, torch.autograd.grad(found, (x, w))

    def slope(a):
        with torch.no_grad():
            _, back = f.vjp(lambda b: b**3, a)
            shift = back(one)[0]
        return back(one)[0] + shift * a

    yield f.grad(slope)(x), torch.vmap(f.grad(slope))(torch.arange(3.0))
    yield torch.autograd.grad(slope(x), x)


@case
def contexts_and_gradients_of_custom_functions(torch):
    helpers = torch._functorch.autograd_function
    x = torch.tensor(2.0, requires_grad=True)
    y, z = torch.tensor(3.0), torch.tensor(5.0)

    class Wrapped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, named):
            if named:
                ctx._pt_inner_ctx = 1
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            outer = helpers.CtxWithSavedTensors(ctx, (y,))
            inner = helpers.CtxWithSavedTensors(outer, (z,))
            inner.note = "kept"
            print(outer.saved_tensors, inner.needs_input_grad, ctx.note)
            return g * inner.saved_tensors[0], None

    yield torch.autograd.grad(Wrapped.apply(x, False), x)
    yield attempt(Wrapped.apply(x, True).backward)
    reduced, g = helpers.reductify, torch.arange(12.0).reshape(2, 3, 2)
    yield helpers.reductify_leaf(None, 0, None, 2), reduced(g, 0, None, 2)
    yield reduced((g, g[0]), (0, None), (2, 1), 2)
    yield reduced(g, 0, 1, 2, ((2,),)), reduced(g[0], None, None, 2)
