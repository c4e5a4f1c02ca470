"""`autograd.functional`, `gradcheck` and `gradgradcheck`."""

from tests.oracle import attempt, case


@case
def products(torch):
    f, t = torch.autograd.functional, torch.tensor
    x, y, v = t([1.0, 2.0]), t([3.0, 4.0]), t([1.0, 3.0])
    one = t([1.0, 1.0])
    yield f.vjp(lambda x: x * x, x, v)
    yield f.vjp(lambda x, y: (x * y, x + y), (x, y), (v, one))
    yield f.jvp(lambda x: x * x, x, v)
    yield f.jvp(lambda x, y: (x * y, x + y), (x, y), (v, one))
    yield f.vhp(lambda x: (x * x * x).sum(), x, v)
    yield f.hvp(lambda x: (x * x * x).sum(), x, v)
    yield f.hvp(lambda x, y: (x * x * y).sum(), (x, y), (v, one))


@case
def matrices(torch):
    f, t = torch.autograd.functional, torch.tensor
    x, y = t([1.0, 2.0]), t([3.0, 4.0])
    yield f.jacobian(lambda x: x * x, x)
    yield f.jacobian(lambda x: x * x, x, vectorize=True)
    yield f.jacobian(lambda x, y: (x * y, x + y), (x, y))
    yield f.jacobian(lambda x: t([1.0]), x)
    yield f.hessian(lambda x: (x * x * x).sum(), x)
    yield f.hessian(lambda x, y: (x * x * y).sum(), (x, y))
    z = x.clone().requires_grad_()
    h = f.hessian(lambda x: (x * x * x).sum(), z, create_graph=True)
    yield torch.autograd.grad(h.sum(), z)


@case
def strictness(torch):
    f, t = torch.autograd.functional, torch.tensor
    x = t([1.0, 2.0])
    yield attempt(f.jacobian, lambda x: t([1.0]), x, strict=True)
    yield attempt(f.jacobian, lambda x: x * 2, x, strict=True, create_graph=True)
    yield attempt(f.hessian, lambda x: x.sum(), x, strict=True)
    yield attempt(f.vjp, lambda x: t(1.0), x, strict=True)
    yield attempt(f.hvp, lambda x: x.sum(), x, x, strict=True)


@case(raises=AssertionError)
def wrong_arguments(torch):
    f, t = torch.autograd.functional, torch.tensor
    x, v = t([1.0, 2.0]), t([1.0])
    yield attempt(f.vjp, lambda x: x, 3, 4)
    yield attempt(f.vjp, lambda x: x * 2, x, v)
    yield attempt(f.vjp, lambda x: x * x, x)
    yield attempt(f.jvp, lambda x: x * x, x)
    yield attempt(f.vjp, lambda x: x * 2, (x, 3), v)
    yield attempt(f.hvp, lambda x: x * 2, x, x)
    yield attempt(f.vhp, lambda x: (x, x), x, x)
    yield attempt(f.jacobian, lambda x: x * x, x, strategy="a")
    yield attempt(f.jacobian, lambda x: x * x, x, strategy="forward-mode")


def wrong(torch, value, offset=0.0):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * value + offset

    return Wrong.apply


@case
def checks(torch):
    check = torch.autograd.gradcheck

    def point(*values):
        return torch.tensor(values, dtype=torch.float64, requires_grad=True)

    x, y = point(1.0, 2.0), point(3.0, 4.0)
    yield check(lambda x: x * x, x)
    yield check(lambda x, y: (x * y, x + y), (x, y))
    yield check(lambda x: (x * x).sum(), [x], fast_mode=True)
    yield attempt(check, lambda x: x * x, torch.tensor([1.0, 2.0]))
    yield attempt(check, wrong(torch, 3), point(1.0))
    yield check(wrong(torch, 3), point(1.0), raise_exception=False)
    yield attempt(check, wrong(torch, 2, 1e-9), point(1.0))
    yield torch.autograd.gradgradcheck(lambda x: x * x * x, x)
    yield torch.autograd.gradgradcheck(lambda x, y: x * y * y, (x, y))
    # The directions come from the generator.
    yield torch.rand(1)
    cubed = lambda x: x * x * x  # noqa: E731
    yield torch.autograd.gradgradcheck(cubed, x, gen_non_contig_grad_outputs=True)
    yield torch.rand(1)
    c = torch.tensor([1 + 2j, 3.0], dtype=torch.complex128, requires_grad=True)
    yield check(lambda x: x * x, c)


NAMES = ("vjp", "jvp", "vhp", "hvp", "jacobian", "hessian")


def called(torch, name, func, inputs, v=None, **options):
    function = getattr(torch.autograd.functional, name)
    if name in ("jacobian", "hessian"):
        return without_nodes(function(func, inputs, **options))
    return without_nodes(function(func, inputs, v, **options))


def without_nodes(found):
    if isinstance(found, tuple):
        return tuple(map(without_nodes, found))
    return found.detach(), found.requires_grad


@case.over(*NAMES)
def of_scalars(torch, name):
    scalar = torch.tensor(0.5)
    vector = torch.tensor([2.0])
    for func in (lambda x: x.exp() * 3, lambda x: x.unsqueeze(0).exp()):
        yield attempt(called, torch, name, func, scalar, torch.tensor(2.0))
        yield attempt(called, torch, name, func, scalar)
        yield attempt(called, torch, name, func, scalar, torch.ones(1))
    yield attempt(called, torch, name, lambda x: x.exp().squeeze(), vector)
    if name in ("jacobian", "hessian"):
        yield called(torch, name, lambda x: x.exp() * 3, scalar, vectorize=True)


@case.over(name=NAMES, create_graph=[False, True])
def strict_mode(torch, name, create_graph):
    total = name in ("vhp", "hvp", "hessian")
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    v = torch.ones(2)
    options = {"strict": True, "create_graph": create_graph}
    for func in (
        lambda a: a.detach(),
        lambda a: a.long().float().requires_grad_().clone(),
        lambda a: 3 * a,
        lambda a: a**2,
        lambda a: a**3,
    ):
        made = (lambda a, f=func: f(a).sum()) if total else func
        yield attempt(called, torch, name, made, x, v, **options)
    for func in (lambda a, b: a, lambda a, b: a * b, lambda a, b: a * b * a):
        made = (lambda a, b, f=func: f(a, b).sum()) if total else func
        given = v if name == "vjp" else (v, v)
        yield attempt(called, torch, name, made, (x, y), given, **options)


@case(warnings=False).over("jacobian", "hessian")
def what_vectorized_ones_refuse(torch, name):
    function = getattr(torch.autograd.functional, name)
    strategy = "strategy" if name == "jacobian" else "outer_jacobian_strategy"
    x = torch.ones(2)
    for options in (
        {"vectorize": True, "strict": True},
        {strategy: "forward-mode"},
        {strategy: "forward-mode", "vectorize": True},
        {strategy: "forward-mode", "vectorize": True, "strict": True},
    ):
        for func in (
            lambda a: "a",
            lambda a: (a, "a"),
            lambda a: a.detach().sum(),
            lambda a: a.pow(3).sum(),
        ):
            yield attempt(function, func, x, **options)
        yield attempt(function, torch.sum, (x, 1), **options)
        yield attempt(function, torch.sum, [x], **options)


@case(warnings=False)
def custom_functions_do_not_see_the_vectors(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, tangent):
            return 2 * tangent * ctx.saved_tensors[0]

    class Apart(Square):
        forward = staticmethod(lambda x: x * x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

    given = torch.tensor([1.0, 2.0])
    rows = torch.arange(6.0).reshape(2, 3)
    for kind in (Square, Apart):
        for strategy in ("reverse-mode", "forward-mode"):
            yield torch.autograd.functional.jacobian(
                *(lambda x, f=kind.apply: f(x) * 2, given),
                vectorize=True,
                strategy=strategy,
            )
        for outer in ("reverse-mode", "forward-mode"):
            yield torch.autograd.functional.hessian(
                *(lambda x, f=kind.apply: (f(x) * x).sum(), given),
                vectorize=True,
                outer_jacobian_strategy=outer,
            )
        yield torch._vmap_internals._vmap(kind.apply)(rows)
        yield torch._vmap_internals._vmap(lambda x, f=kind.apply: f(x).sum())(rows)
        yield attempt(torch.vmap(kind.apply), rows)
        yield attempt(torch._vmap_internals._vmap(torch.vmap(kind.apply)), rows[None])
