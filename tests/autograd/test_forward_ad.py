"""Forward mode: dual tensors, `jvp` of custom functions, and `vmap` of them."""

from tests.oracle import attempt, case


@case(warnings=False)
def duals(torch):
    fw = torch.autograd.forward_ad
    x, v = torch.arange(3.0), torch.ones(3)
    yield attempt(fw.make_dual, x, v)
    yield fw.unpack_dual(x)
    yield attempt(fw.exit_dual_level)
    with fw.dual_level() as level:
        yield level
        d = fw.make_dual(x, v)
        print(d, d * 2, torch.ones(3, 3) * d, d.sum() / 4)
        yield fw.unpack_dual(d * 2), fw.unpack_dual(x)
        yield fw.unpack_dual(torch.sum(d)), fw.unpack_dual(d > 0)
        yield attempt(fw.make_dual, x, torch.ones(2))
        yield attempt(fw.make_dual, x.long(), v)
        yield attempt(fw.make_dual, x, v.long())
        yield attempt(fw.make_dual, d, v)
        yield attempt(fw.enter_dual_level)
        yield attempt(fw.exit_dual_level, level=3)
        plain = torch.ones(2)
        dual = fw.make_dual(plain, plain * 2)
        yield [attempt(fw.unpack_dual, plain, level=n) for n in (0, 1, -1)]
        yield [attempt(fw.unpack_dual, dual, level=n) for n in (0, 1, -1)]
        yield fw.unpack_dual(d.detach()).tangent
        with torch.no_grad():
            yield fw.unpack_dual(d * d).tangent
        with fw._set_fwd_grad_enabled(False):
            yield fw.unpack_dual(d * d).tangent
    yield d
    with fw.dual_level():
        yield fw.unpack_dual(d)
    yield fw.enter_dual_level()
    yield fw.exit_dual_level()


@case(warnings=False)
def formulas_that_gradients_do_not_transpose(torch):
    fw, linalg = torch.autograd.forward_ad, torch.linalg
    f, jvp = torch.nn.functional, torch.func.jvp
    for dtype in (torch.float64, torch.complex128):
        a = torch.arange(9, dtype=torch.float64).sin().reshape(3, 3).to(dtype)
        t = torch.arange(9, dtype=torch.float64).cos().reshape(3, 3).to(dtype)
        if dtype.is_complex:
            a, t = a + 1j * a.flip(0), t + 1j * t.T
        a = a @ a.mH + torch.eye(3)
        for upper in (False, True):
            yield jvp(lambda x: linalg.cholesky(x, upper=upper), (a,), (t,))  # noqa: B023
        with fw.dual_level():
            values, vectors = linalg.eigh(fw.make_dual(a, t))
            yield fw.unpack_dual(values).tangent
            yield (vectors @ vectors.mH, vectors.abs())
            yield fw.unpack_dual(vectors.abs()).tangent
    x, at = torch.tensor([[[1.0, 2.0, 3.0]]]), torch.tensor([[[2, 2, 0]]])
    yield jvp(lambda x: f.max_unpool1d(x, at, 3), (x,), (x * 10,))
    yield torch.func.grad(lambda x: f.max_unpool1d(x, at, 3).square().sum())(x)


@case
def writes(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        d = fw.make_dual(torch.arange(3.0), torch.ones(3))
        y = torch.arange(3.0)
        y.mul_(d)
        yield fw.unpack_dual(y).tangent
        z = torch.zeros(2, 3)
        z[0] = d
        yield fw.unpack_dual(z).tangent
        z[0].mul_(2)
        yield fw.unpack_dual(z).tangent, fw.unpack_dual(z[0]).tangent
        yield fw.unpack_dual(z.t().reshape(-1)).tangent
        w = torch.ones(3, requires_grad=True)
        yield attempt(w.add_, d)


@case
def memory_of_duals(torch):
    fw = torch.autograd.forward_ad

    def state():
        return [(t, fw.unpack_dual(t).tangent) for t in (x, d, view)]

    x, v = torch.arange(1.0, 4.0), torch.tensor([1.0, 10.0, 100.0])
    with fw.dual_level():
        d = fw.make_dual(x, v)
        view = d[1:]
        yield fw.unpack_dual(d).tangent is v
        for write in (
            lambda: x.mul_(2),
            lambda: d.mul_(3),
            lambda: view.mul_(2),
            lambda: fw.unpack_dual(d).primal.add_(1),
            lambda: d.data.mul_(2),
            lambda: d.detach().mul_(2),
            lambda: x[1:].mul_(fw.make_dual(torch.ones(2), torch.ones(2))),
            lambda: d.copy_(torch.ones(3)),
            lambda: d.mul_(fw.make_dual(torch.ones(3), torch.ones(3))),
        ):
            write()
            yield state(), v, fw.unpack_dual(d).tangent is v
        leaf = torch.ones(3, requires_grad=True)
        yield attempt(fw.make_dual(torch.ones(3), leaf).mul_, 2)
        y = torch.ones(3)
        y.detach().add_(d)
        yield fw.unpack_dual(y).tangent
        y = d.clone().detach_()
        yield fw.unpack_dual(y).tangent
        n = torch.from_numpy(__import__("numpy").arange(3.0))
        d = fw.make_dual(n, torch.ones(3).double())
        d.mul_(2)
        yield n, fw.unpack_dual(n).tangent, d, fw.unpack_dual(d).tangent
        # A tangent is laid out as its tensor is.
        for primal, tangent in (
            (torch.ones(2, 3), torch.ones(3, 2).t()),
            (torch.ones(6)[::2], torch.ones(3)),
            (torch.ones(4)[1:], torch.ones(3)),
            (torch.ones(2).cfloat().conj(), torch.ones(2).cfloat()),
            (torch.ones(2).cfloat().conj().imag, torch.ones(2)),
        ):
            found = fw.unpack_dual(fw.make_dual(primal, tangent)).tangent
            yield found is tangent, found.stride(), found.storage_offset()
            yield found.untyped_storage().nbytes()


@case
def over_reverse(torch):
    fw = torch.autograd.forward_ad
    x, v = torch.arange(3.0), torch.ones(3)
    w = torch.ones(3, requires_grad=True)
    with fw.dual_level():
        tangent = fw.unpack_dual(fw.make_dual(x, v) * w * w).tangent
        tangent.sum().backward()
        d = fw.make_dual(w, v)
        yield d.requires_grad, d.is_leaf
        (g,) = torch.autograd.grad((d**3).sum(), d, create_graph=True)
        yield fw.unpack_dual(g).tangent.detach()
    yield w.grad


@case
def gradients_of_tangents_have_none(torch):
    fw = torch.autograd.forward_ad
    for read in (False, True):
        x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
        y = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        with fw.dual_level():
            tangent = fw.unpack_dual((fw.make_dual(x, y) ** 2).sum()).tangent
            if read:
                tangent.item()
            grads = torch.autograd.grad(tangent, [x, y])
            yield grads, [fw.unpack_dual(grad).tangent for grad in grads]


@case
def models(torch):
    fw, nn = torch.autograd.forward_ad, torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 2))
    x, v = torch.randn(2, 3), torch.randn(2, 3)
    with fw.dual_level():
        out = net(fw.make_dual(x, v))
        yield fw.unpack_dual(out).tangent.detach()
        loss = nn.functional.cross_entropy(out, torch.tensor([0, 1]))
        yield fw.unpack_dual(loss).tangent.detach()


def functions(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(a):
            return a * a

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * 2 * a

        @staticmethod
        def jvp(ctx, t):
            (a,) = ctx.saved_tensors
            return t * 2 * a

    class Generated(Square):
        generate_vmap_rule = True

    class Own(Square):
        @staticmethod
        def vmap(info, in_dims, a):
            print(info, in_dims, a.shape)
            return Own.apply(a), in_dims[0]

    class Both(Generated):
        @staticmethod
        def vmap(info, in_dims, a):
            return a, 0

    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Wrong(Old):
        @staticmethod
        def jvp(ctx, t):
            return t * 3

    return Square, Generated, Own, Both, Old, Wrong


@case
def custom_functions(torch):
    square, generated, own, both, old, _ = functions(torch)
    f = torch.func
    x = torch.tensor([1.0, 2.0, 3.0])
    yield f.jvp(square.apply, (x,), (torch.ones(3),))
    yield f.grad(lambda a: square.apply(a).sum())(x)
    yield attempt(f.grad(lambda a: old.apply(a).sum()), x)
    yield attempt(torch.vmap(old.apply), x)
    yield attempt(torch.vmap(square.apply), x)
    yield attempt(torch.vmap(both.apply), x)
    yield torch.vmap(generated.apply)(x)
    yield torch.vmap(f.grad(generated.apply))(x)
    yield f.jacrev(generated.apply)(x), f.jacfwd(generated.apply)(x)
    yield f.hessian(lambda a: generated.apply(a).sum())(x)
    yield torch.vmap(own.apply)(x)
    yield torch.vmap(f.grad(own.apply))(x)


@case
def custom_functions_of_shared_values(torch):
    class Product(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(a, w):
            return a * w

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            a, w = ctx.saved_tensors
            return g * w, g * a

    x = torch.tensor([1.0, 2.0, 3.0])
    w = torch.tensor(2.0, requires_grad=True)
    mapped = torch.vmap(Product.apply, (0, None))
    mapped(x, w).sum().backward()
    yield w.grad
    by_second = torch.func.grad(Product.apply, argnums=1)
    yield torch.vmap(by_second, (0, None))(x, w.detach())
    yield torch.func.grad(lambda w: mapped(x, w).sum())(w.detach())


@case
def checks(torch):
    square, _, _, _, old, wrong = functions(torch)
    gradcheck = torch.autograd.gradcheck
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    c = torch.tensor([1 + 1j, 2 - 1j], requires_grad=True, dtype=torch.complex128)
    yield gradcheck(lambda a: a.sin() * a, x, check_forward_ad=True)
    yield gradcheck(lambda a: (a * a, a.abs()), c, check_forward_ad=True)
    yield gradcheck(
        lambda a: a.sin() * a,
        x,
        check_forward_ad=True,
        check_backward_ad=False,
        check_batched_forward_grad=True,
    )
    yield gradcheck(lambda a: a.exp(), x, check_batched_grad=True)
    yield gradcheck(square.apply, x, check_forward_ad=True)
    yield attempt(gradcheck, wrong.apply, x, check_forward_ad=True)
    yield attempt(gradcheck, old.apply, x, check_forward_ad=True)


@case
def batched_gradients(torch):
    grad = torch.autograd.grad
    x = torch.arange(4.0).reshape(2, 2) + 1
    z, w = x.clone().requires_grad_(), torch.ones(2, requires_grad=True)
    y = z**2
    three = torch.ones(3, 2, 2) * torch.arange(3.0)[:, None, None]
    yield grad(y, z, three, is_grads_batched=True, retain_graph=True)
    found = grad([y, y @ w], [z, w], [three, torch.ones(3, 2)], is_grads_batched=True)
    yield found
    yield attempt(grad, z * z, z, torch.ones(3, 2), is_grads_batched=True)
    # Through a graph that was mapped itself, and has run.
    mapped = torch.vmap(lambda a: a * w)(torch.ones(2, 2))
    print(mapped.sum().item())
    yield grad(mapped, w, torch.ones(3, 2, 2), is_grads_batched=True)


@case
def jacobians(torch):
    functional = torch.autograd.functional
    x, y = torch.arange(4.0).reshape(2, 2) + 1, torch.ones(2)
    forward = {"vectorize": True, "strategy": "forward-mode"}
    outer = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}

    def f(a, b):
        return a @ b, (a * a).sum()

    yield functional.jacobian(f, (x, y), vectorize=True)
    yield functional.jacobian(f, (x, y), **forward)
    yield functional.jacobian(torch.sin, x, **forward)
    yield functional.jacobian(lambda a: (a.sin(), torch.ones(2)), x, **forward)
    yield functional.jacobian(lambda a: (a.sin(), torch.ones(2)), x, vectorize=True)
    yield functional.hessian(lambda a: (a**3).sum() * a[0, 0], x, vectorize=True)
    found = functional.hessian(lambda a: (a**3).sum() * a[0, 0], x, **outer)
    yield found.detach()
    yield attempt(
        functional.hessian, torch.sum, x, outer_jacobian_strategy="forward-mode"
    )


@case
def powers_of_negative_numbers(torch):
    fw = torch.autograd.forward_ad
    x, v = torch.tensor([-1.0, 2.0, 0.0]), torch.tensor([1.0, 2.0, 3.0])
    two = torch.tensor([2.0, 3.0, 2.0])
    powers = [lambda x: x**2, lambda x: x.pow(3), lambda x: x**two, lambda x: 2**x]
    for f in powers:
        with fw.dual_level():
            yield fw.unpack_dual(f(fw.make_dual(x, v)))
        yield torch.func.jvp(torch.func.grad(lambda x, f=f: f(x).sum()), (x,), (v,))
        yield torch.func.hessian(lambda x, f=f: f(x).sum())(x)


@case
def custom_functions_in_place(torch):
    """The function's `jvp` has to change the tangent in place, too."""

    def run(jvp):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

            @staticmethod
            def jvp(ctx, tangent):
                return jvp(tangent)

        with torch.autograd.forward_ad.dual_level():
            tangent = torch.ones(2)
            dual = torch.autograd.forward_ad.make_dual(torch.ones(2), tangent)
            out = Double.apply(dual)
            unpacked = torch.autograd.forward_ad.unpack_dual(out)
            return out is dual, unpacked.tangent is tangent, unpacked.tangent

    yield attempt(run, lambda t: t.mul_(2))
    yield attempt(run, lambda t: t)
    yield attempt(run, lambda t: t * 2)
    yield attempt(run, lambda t: t.mul_(2).clone())


@case.over(materialize=[True, False])
def custom_functions_without_tangents(torch, materialize):
    """Of integers `jvp` gets no tangent, and may give none."""
    fw = torch.autograd.forward_ad
    seen, given = [], []

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, count, other, text, flag):
            ctx.set_materialize_grads(materialize)
            constant = x * 3
            ctx.mark_non_differentiable(constant)
            return x * 2 + other, count + 1, constant, text

        @staticmethod
        def jvp(ctx, *tangents):
            seen.append(tangents)
            return tangents[0] * 2, *given[-1]

    count, other = torch.tensor([1, 2]), torch.ones(2)
    for each in (
        (None, None, None),
        (torch.ones(2), None, None),
        (torch.ones(2, dtype=torch.int64), None, None),
        (None, torch.ones(2), None),
        (None, None, torch.ones(2)),
        (None, None, "text"),
        ("text", None, None),
    ):
        given.append(each)
        with fw.dual_level():
            dual = fw.make_dual(torch.tensor([1.0, 2.0]), torch.ones(2))
            args = dual, count, other, "text", torch.tensor(True)
            outs = attempt(Scaled.apply, *args)
            yield type(outs) is tuple and [fw.unpack_dual(each) for each in outs[:3]]
            yield outs
        yield seen.pop()


@case
def operators_without_forward_mode(torch):
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.ones(3))
        yield attempt(torch.igamma, x, x), attempt(torch.igammac, x, x)


@case
def written_through_views(torch):
    """What a write to a view of a dual tensor leaves of its tangent."""

    def add(x):
        x[0].add_(1)
        return x.sum()

    def scale(x):
        part = x[0]
        part.mul_(x[1])
        return x * 2, part

    def flat(x):
        x.view(-1)[1:].mul_(2.0)
        return x

    fw = torch.autograd.forward_ad
    x, t = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 10.0, 100.0])
    for function in (add, scale, flat):
        yield torch.func.jvp(function, (x.clone(),), (t.clone(),))
        with fw.dual_level():
            dual = fw.make_dual(x.clone(), t.clone())
            function(dual)
            yield fw.unpack_dual(dual).tangent


TANGENTS = """
    x*2; x+1; x-1; 1-x; x/2; 2/x; x*w; x+w; x-w; w-x; w/x; x@w; F.linear(x, w, w[0])
    x.sum(); x.mean(1); x.exp(); x.sqrt(); x**3; -x; x.relu(); x.tanh(); x.view(4); x[0]
    x.clone(); torch.cat([x, w]); torch.where(x > 0, x, w); x.softmax(0); x.cumsum(0)
    x.log_softmax(0); x.flip(0); x.logsumexp(0); x.clamp(0.2, 0.5); torch.atan2(x, w)
"""


@case.over(
    tracked=["primal", "tangent"],
    line=[
        line.strip() for line in TANGENTS.replace("\n", ";").split(";") if line.strip()
    ],
)
def nodes_of_tangents(torch, tracked, line):
    fw = torch.autograd.forward_ad
    x = torch.tensor([[0.3, 0.6], [0.7, 0.2]], requires_grad=tracked == "primal")
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=tracked == "tangent")
    w = torch.tensor([[0.5, 0.1], [0.2, 0.4]])
    with fw.dual_level():
        names = {"torch": torch, "F": torch.nn.functional, "w": w}
        out = eval(line, names, {"x": fw.make_dual(x, t)})
        yield fw.unpack_dual(out).tangent
        print(out)


OUTS = """
    torch.add(d, w, out=e(0)); torch.add(w, w, out=d); torch.mm(d, w, out=e(0))
    torch.matmul(d, w, out=e(0)); torch.sum(d, 0, out=e(0)); torch.cat([d, w], out=e(0))
    torch.max(d, 0, out=(e(0), i(0))); torch.ge(d, w, out=e(0).bool())
    torch.exp(w, out=d); torch.linalg.inv(d, out=e(0))
    torch.special.erf(d, out=e(0)); torch.ones(2, out=d)
    torch.div(d, w, rounding_mode="floor", out=e(0)); torch.argmax(d, 0, out=i(0))
    torch.masked_select(d, w > 0, out=e(0)); torch.add(w, w, out=e(0))
    torch.linalg.norm(d, out=e(())); torch.hstack([d, w], out=e(0)); torch.eye(2, out=d)
"""


@case.over(
    *[each.strip() for each in OUTS.replace("\n", ";").split(";") if each.strip()]
)
def with_out(torch, line):
    fw = torch.autograd.forward_ad
    w = torch.ones(2, 2)
    given = {"torch": torch, "w": w, "e": torch.empty}
    given["i"] = lambda size: torch.empty(size, dtype=torch.long)
    with fw.dual_level():
        d = fw.make_dual(torch.tensor([[0.3, 0.6], [0.7, 0.2]]), torch.ones(2, 2))
        for _ in range(2):
            yield attempt(eval, line, given | {"d": d})


@case
def levels(torch):
    fw = torch.autograd.forward_ad
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    yield fw._current_level
    yield attempt(fw.make_dual, x, t)
    yield attempt(fw.make_dual, x, t, level=0)
    yield attempt(fw.exit_dual_level)
    with fw.dual_level() as level:
        yield level, fw._current_level
        dual = fw.make_dual(x, t)
        yield attempt(fw.make_dual, dual, t)
        yield attempt(fw.make_dual, x, dual)
        yield attempt(fw.make_dual, x, t, level=1)
        yield attempt(fw.unpack_dual, 1)
        yield attempt(fw.unpack_dual, x)
    yield fw._current_level


@case(warnings=False)
def that_come_to_require_grad(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        for make in (lambda d: d, lambda d: d * 2, lambda d: (d * 2).view(2)):
            dual = make(
                fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
            )
            out = dual.requires_grad_() ** 2
            print(dual, out)
            out.sum().backward()
            yield dual.grad
            yield fw.unpack_dual(dual.requires_grad_(False)).tangent


@case
def is_off_in_inference_mode(torch):
    fw = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0])
    with fw.dual_level():
        dual = fw.make_dual(x, x * 2)
        with torch.inference_mode():
            yield dual
            made = dual * 2
            yield fw.unpack_dual(dual).tangent, fw.unpack_dual(made).tangent
            with torch.inference_mode(False):
                yield dual * 2
        yield made, dual * 2
        with fw._set_fwd_grad_enabled(False):
            yield dual, fw.unpack_dual(dual).tangent
    with torch.inference_mode():
        yield torch._C._is_fwd_grad_enabled(), torch.func.jacfwd(torch.sin)(x)


@case
def gradients_of_tangents(torch):
    """A gradient has a tangent where it depends on what has one."""
    fw = torch.autograd.forward_ad
    for function in (lambda x, a: x * a, lambda x, a: x @ a):
        x = torch.tensor([3.0, 4.0], requires_grad=True)
        with fw.dual_level():
            a = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
            y = function(x, a)
            tangent = fw.unpack_dual(y).tangent
            (g,) = torch.autograd.grad(tangent.sum(), x, retain_graph=True)
            yield g, fw.unpack_dual(g).tangent
            (g,) = torch.autograd.grad(y.sum(), x)
            yield fw.unpack_dual(g)


@case.over(
    when=["never", "before", "view", "view, gone", "other, gone", "base", "shared"]
)
def reads_between_writes(torch, when):
    """A base keeps its tangent where a read comes, whatever became of its views."""
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        for tracked in (False, True):
            x = torch.ones(4, requires_grad=tracked)
            base = fw.make_dual(x, torch.full((4,), 3.0)) * 1
            for factor in (2.0, fw.make_dual(torch.ones(2), torch.ones(2))):
                view = base[:2]
                if when == "before":
                    view.tolist()
                view.mul_(factor)
                if when.startswith("view"):
                    view.tolist()
                if when.endswith("gone"):
                    del view
                if when == "other, gone":
                    torch.ones(2).add(1).tolist()
                if when == "base":
                    base.tolist()
                if when == "shared":
                    base.detach().numpy()
                    yield fw.unpack_dual(base[1:3]).tangent
                    base[1:].mul_(2)
                yield base.detach(), fw.unpack_dual(base).tangent
                yield fw.unpack_dual(base * 2).tangent


@case.over(*((a, b) for a in (0, 1) for b in (0, 1, 2)))
def of_running_statistics(torch, which):
    """They have no tangents where the input or a scale has one."""
    fw, function = torch.autograd.forward_ad, torch.nn.functional.batch_norm
    given, fixed = which
    with fw.dual_level():
        x, weight = torch.arange(12.0).view(2, 3, 2), torch.ones(3)
        running = [torch.zeros(3), torch.ones(3)]
        if fixed:
            running[fixed - 1] = fw.make_dual(running[fixed - 1], torch.ones(3))
        if fixed < 2:
            weight = fw.make_dual(weight, torch.ones(3)) if given else weight
        elif given:
            x = fw.make_dual(x, torch.ones_like(x))
        y = attempt(function, x, *running, weight)
        yield y if isinstance(y, Exception) else tuple(fw.unpack_dual(y))
