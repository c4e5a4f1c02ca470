"""Arguments that are not differentiated by, and what writes make of them."""

from tests.oracle import attempt, case


def transforms(torch):
    """Ways to call a function of two tensors, the first of which is differentiated."""
    f = torch.func
    return {
        "grad": lambda m, x, y: f.grad(m)(x, y),
        "named": lambda m, x, y: f.grad(lambda a, other: m(a, other))(x, other=y),
        "nested in a dict": lambda m, x, y: f.grad(lambda a, d: m(a, d["y"]))(
            x, {"y": y}
        ),
        "jacrev": lambda m, x, y: f.jacrev(m)(x, y),
        "jacfwd": lambda m, x, y: f.jacfwd(m)(x, y),
        "hessian": lambda m, x, y: f.hessian(m)(x, y),
        "grad of grad": lambda m, x, y: f.grad(lambda a, b: f.grad(m)(a, b).sum())(
            x, y
        ),
        "pieces": lambda m, x, y: f.grad(lambda a, b: m(a[1:], b[1:]))(x, y),
        "by an alias": lambda m, x, y: f.grad(lambda a, b: m(a, b.detach()))(x, y),
        "mapped": lambda m, x, y: f.vmap(f.grad(m), in_dims=(0, None))(
            torch.stack([x, x]), y
        ),
        "captured": lambda m, x, y: f.grad(lambda a: m(a, y))(x),
    }


def double(x, y):
    y.mul_(2)
    return (x * y).sum()


def multiply(x, y):
    y.mul_(x)
    return (x * y).sum()


def written(torch, write, x, y, base=None):
    """What each transform gives, what it left of `y`, and what that is part of."""
    for name, transform in transforms(torch).items():
        first, given = x(), y()
        whole = given if base is None else base(given)
        found = attempt(transform, write, first, given)
        yield name, found, given, given._version, given.requires_grad, whole


@case(warnings=False)  # PyTorch's own, of its first `jvp`
def of_a_number(torch):
    def x():
        return torch.tensor([1.0, 2.0, 3.0])

    def y():
        return torch.tensor([1.0, 3.0, -1.0])

    yield from written(torch, double, x, y)
    yield from written(torch, double, lambda: x().requires_grad_(), y)


@case(warnings=False)  # PyTorch's own, of its first `jvp`
def of_what_is_differentiated(torch):
    """The argument keeps its value, without a history of the level that is over."""

    def x():
        return torch.tensor([1.0, 2.0, 3.0])

    def y():
        return torch.tensor([1.0, 3.0, -1.0])

    yield from written(torch, multiply, x, y)


@case(warnings=False)  # PyTorch's own, of its first `jvp`
def pieces_of_a_tensor(torch):
    def x():
        return torch.tensor([1.0, 2.0, 3.0])

    def y():
        return torch.tensor([[1.0, 3.0, -1.0], [0.0, 0.0, 0.0]])[0]

    yield from written(torch, multiply, x, y, lambda piece: piece._base)


@case
def gradients_around(torch):
    """What autograd itself, or a level around, made of the argument goes on."""
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.tensor([1.0, 3.0, -1.0])
    whole = torch.zeros(2, 3)
    for argument in (y, whole[1]):
        found = torch.func.grad(multiply)(x, argument)
        yield found, argument, argument.requires_grad
        yield torch.autograd.grad(argument.sum(), x, retain_graph=True)
        yield torch.autograd.grad(found.sum(), x, allow_unused=True)
    yield whole

    def outer(a, b):
        found = torch.func.grad(multiply)(a, b)
        return (found * b).sum()

    for argnums in (0, 1, (0, 1)):
        b = torch.tensor([0.5, 1.0, 2.0])
        yield attempt(torch.func.grad(outer, argnums=argnums), x.detach(), b), b


@case
def after_an_error(torch):
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])

    def fail(a, b):
        b.mul_(a)
        raise ValueError("no")

    yield attempt(torch.func.grad(fail), x, y), y, y.requires_grad
    y.add_(1)
    yield y, attempt(torch.func.grad(lambda a: multiply(a, y)), x)


@case
def buffers(torch):
    """Statistics that are passed beside the parameters are updated."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 10 + i)
    params = {k: v.detach() for k, v in net.named_parameters()}
    kept = {k: v.clone() for k, v in net.named_buffers()}
    data = torch.arange(12.0).reshape(4, 3).sin()

    def loss(params, kept, data):
        out = torch.func.functional_call(net, (params, kept), (data,))
        return out.sin().mean()

    yield torch.func.grad(loss)(params, kept, data)["1.weight"].round(decimals=4)
    yield kept
    found, value = torch.func.grad_and_value(loss)(params, kept, data)
    yield value.round(decimals=4), kept, sorted(found)
    yield dict(net.named_buffers())
    yield attempt(torch.func.grad(lambda p: loss(p, kept, data)), params)


@case
def names_of_writes(torch):
    """The overload of PyTorch's that the error names."""
    i, m = torch.tensor([0]), torch.tensor([True, False, True])
    one, few = torch.tensor(0.5), torch.ones(3)
    for work in (
        lambda y: y.fill_(0.7),
        lambda y: y.fill_(one),
        lambda y: y.pow_(2),
        lambda y: y.pow_(few),
        lambda y: y.div_(2, rounding_mode="floor"),
        lambda y: y.clamp_(0, 1),
        lambda y: y.clamp_(min=few),
        lambda y: y.index_fill_(0, i, 0.3),
        lambda y: y.index_fill_(0, i, one),
        lambda y: y.masked_fill_(m, 0.0),
        lambda y: y.masked_fill_(m, one),
        lambda y: y.index_put_((i,), few[:1]),
        lambda y: y.scatter_(0, i, 0.4),
        lambda y: y.scatter_(0, i, few[:1]),
        lambda y: y.scatter_add_(0, i, few[:1]),
        lambda y: y.lerp_(few, 0.3),
        lambda y: y.lerp_(few, few),
        lambda y: y.remainder_(2),
        lambda y: y.eq_(1),
        lambda y: y.lt_(few),
        lambda y: y.logical_and_(few),
        lambda y: y.atan2_(few),
        lambda y: y.copysign_(1),
        lambda y: y.__setitem__(m, 1.0),
        lambda y: y.__setitem__(0, 1.0),
    ):
        y = torch.ones(3)

        def f(x, y=y, work=work):
            work(y)
            return x.sum()

        yield attempt(torch.func.grad(lambda x, f=f: f(x)), torch.ones(3))


@case
def tangents_leave_their_level(torch):
    """In forward mode, what leaves a level of reverse mode requires no grad."""
    forward, f = torch.autograd.forward_ad, torch.func
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0])
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(2))
        for found in (
            f.grad(lambda a, b: ((a * b * a).sum(), a * b.sum()), has_aux=True)(
                dual, y
            ),
            f.vjp(lambda a: (a.sin(), a * 2), dual, has_aux=True)[::2],
            f.grad_and_value(lambda a: a.pow(3).sum())(dual),
            [f.jacrev(lambda a: a**3)(dual)],
        ):
            for each in found:
                primal, tangent = forward.unpack_dual(each)
                yield primal, tangent, primal.requires_grad, tangent.requires_grad


@case(warnings=False)  # PyTorch's is slow under `vmap`
def detached_in_place(torch):
    """Within forward mode `detach_` takes away the tangent of its level, no more."""
    f = torch.func
    x = torch.tensor([0.2, -0.6, -0.7])

    def step(a):
        made = a * 2
        made.detach_()
        return (made * a).sum()

    yield f.grad(step)(x), f.jvp(step, (x,), (x.cos(),))
    yield f.jvp(lambda a: f.jvp(step, (a,), (a.cos(),)), (x,), (x.sin(),))
    for k in (0, 1):
        yield f.grad(lambda a, k=k: f.jvp(step, (a,), (a.cos(),))[k])(x)
    leaf = x.clone().requires_grad_()
    for out in f.jvp(step, (leaf,), (x.cos(),)):
        yield out.requires_grad, torch.autograd.grad(out, leaf, retain_graph=True)
    yield f.vmap(f.grad(step))(torch.stack([x, -x]))
    yield attempt(f.vmap(step), torch.stack([x, -x]))

    def captured(a):
        outer = a * 3

        def inner(b):
            outer.detach_()
            return (outer * b).sum()

        return f.grad(inner)(a).sum()

    yield attempt(f.grad(captured), x)


@case
def written_after_a_level_that_reads(torch):
    """What an outer level made may be written to after an inner one read it."""

    def inner(a, b):
        a[0].mul_(2)
        a.tolist()
        return a * b

    def outer(a, b):
        made = a.clone()
        made.mul_(2)
        found = torch.func.jvp(inner, (made, b), (a, b))
        made.add_(1)
        return found, made

    x = torch.tensor([1.0, 2.0, 3.0])
    yield torch.func.jvp(outer, (x, x + 1), (x, x.cos()))


@case(warnings=False)  # PyTorch's own, of its first `jvp`
def written_by_out(torch):
    """Transforms don't see what `out=` writes to: spectral norms may be transformed."""
    f, nn = torch.func, torch.nn
    kept = torch.zeros(3)

    def step(x):
        with torch.no_grad():
            torch.mul(x, 2, out=kept)
        return (x * kept).sum()

    x = torch.tensor([1.0, 2.0, 3.0])
    yield f.grad(step)(x), kept, kept._version
    yield attempt(f.jvp, step, (x,), (x,)), kept
    for norm in (nn.utils.parametrizations.spectral_norm, nn.utils.spectral_norm):
        layer = nn.Linear(3, 2)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0]]))
            layer.bias.zero_()
        layer = norm(layer)
        for _ in range(20):
            layer(x)
        yield f.jvp(layer, (x,), (x,))[1].detach().round(decimals=3)
        found = f.vmap(f.grad(lambda a, m=layer: m(a).sum()))(torch.stack([x, x]))
        yield found.detach().round(decimals=3)


@case
def differentiated_arguments_written_unseen(torch):
    """Through an alias, or without grad mode: the caller's tensor changes, too."""
    f = torch.func
    grad, jacrev, jvp, vjp, vmap = f.grad, f.jacrev, f.jvp, f.vjp, f.vmap

    def by_alias(x):
        x.detach().sin_()
        return x * x

    def by_data(x):
        x.data.mul_(2)
        return x * x

    def without_grad(x):
        with torch.no_grad():
            x[0] = 5.0
        return x * x

    for write in (by_alias, without_grad, by_data):
        runs = [
            lambda f, x: grad(lambda x: f(x).sum())(x),
            lambda f, x: torch.func.grad_and_value(lambda x: f(x).sum())(x),
            lambda f, x: vjp(f, x)[1](torch.ones(2)),
            lambda f, x: jacrev(f)(x),
            lambda f, x: jvp(f, (x,), (x.cos(),)),
            lambda f, x: vmap(grad(lambda x: f(x).sum()))(x.repeat(3, 1)),
            lambda f, x: grad(lambda x: (vjp(f, x)[0] * x).sum())(x),
            lambda f, x: grad(
                lambda x: (grad(lambda x: f(x).sum())(x).sum(), x * 2), has_aux=True
            )(x),
        ]
        for run in runs[: 4 if write is by_data else None]:
            x = torch.tensor([1.05, -0.52])
            yield run(write, x), x, x._version

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    yield grad(lambda r: by_alias(r).sum())(x[0]), x
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w * 1
    yield grad(lambda y: by_alias(y).sum())(y), y, y.grad_fn is not None

    def fails(x):
        x.detach().sin_()
        raise ValueError("late")

    x = torch.tensor([1.05, -0.52])
    yield attempt(grad(fails), x), x
