"""Custom functions under `vmap`, `grad` and `jvp`: rules, contexts, errors."""

from tests.oracle import attempt, case


def with_rule(torch, rule, generate=False):
    class Doubled(torch.autograd.Function):
        generate_vmap_rule = generate

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

        @staticmethod
        def vmap(info, in_dims, x):
            return rule(x)

    return Doubled


RETURNS = {
    "a tensor": lambda x: x,
    "one": lambda x: (x,),
    "three": lambda x: (x, 0, 1),
    "None": lambda x: None,
    "too many dims": lambda x: (x, (0,)),
    "too few dims": lambda x: ((x, x), (0,)),
    "one dim for two": lambda x: ((x * 1, x * 1), 0),
    "lists": lambda x: ([x * 1, x * 2], [0, 0]),
    "not mapped": lambda x: (x[0] * 1, None),
    "the argument": lambda x: (x, 0),
    "the argument, said not to be mapped": lambda x: (x, None),
    "the argument, elsewhere": lambda x: (x, 1),
    "from the end": lambda x: (x * 1, -1),
    "a number, too": lambda x: ((x * 1, 1), (0, None)),
}


@case.over(RETURNS)
def what_rules_give(torch, rule):
    x = torch.arange(6.0).reshape(3, 2)
    yield attempt(torch.vmap(with_rule(torch, rule).apply), x)


@case
def a_rule_too_many(torch):
    both = with_rule(torch, lambda x: (x * 2, 0), generate=True)
    yield attempt(torch.vmap(both.apply), torch.ones(2))


def of_many(torch, seen):
    class Many(torch.autograd.Function):
        @staticmethod
        def forward(x, y, z):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append(("setup", type(ctx).__name__, str(inputs[1])))

        @staticmethod
        def backward(ctx, grad):
            seen.append(("backward", type(ctx).__name__))
            return grad * 2, None, None

        @staticmethod
        def vmap(info, in_dims, x, y, z):
            seen.append((tuple(info), in_dims, str(y)))
            return Many.apply(x, y, z), in_dims[0]

    return Many


@case
def arguments_of_all_kinds(torch):
    x = torch.arange(6.0).reshape(3, 2)
    for make in (
        lambda x: (x, 1, "a"),
        lambda x: (x, (1, 2), {"a": x}),
        lambda x: (x, [x, 1], None),
        lambda x: (torch.ones(2), x, None),
        lambda x: (torch.ones(2), 1, None),
    ):
        seen = []
        many = of_many(torch, seen)
        yield attempt(torch.vmap(lambda x: many.apply(*make(x))), x)  # noqa: B023
        yield list(seen)


@case
def who_is_told_of_the_context(torch):
    x = torch.arange(6.0).reshape(3, 2)
    seen = []
    many = of_many(torch, seen)

    def total(x):
        return many.apply(x, 1, 2).sum()

    for call in (
        torch.vmap(total),
        torch.func.grad(total),
        torch.func.grad(lambda x: torch.vmap(total)(x).sum()),
    ):
        yield call(x), [each for each in seen if each[0] != "setup"]
        seen.clear()
    x.requires_grad_()
    out = torch.vmap(total)(x)
    yield out.requires_grad
    out.sum().backward()
    yield x.grad, list(seen)


@case(warnings=False)
def written_in_place(torch):
    class Dirty(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.mul_(2)

        @staticmethod
        def vmap(info, in_dims, x):
            return x.mul_(2), in_dims[0]

    x = torch.arange(6.0).reshape(3, 2)
    yield torch.vmap(lambda x: Dirty.apply(x.clone()) + 1)(x)
    yield torch.vmap(Dirty.apply)(x)
    yield x
    yield torch.vmap(Dirty.apply, 1, 1)(x)
    yield x
    yield torch.func.grad(lambda x: Dirty.apply(x * 1).sum())(x)
    yield torch.func.jvp(lambda x: Dirty.apply(x * 1), (x,), (x.clone(),))


@case
def wrong_gradients(torch):
    class Wrong(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, how):
            return x.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.how = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return grad if ctx.how == "few" else (grad.expand(7), None)

        @staticmethod
        def jvp(ctx, tangent, how):
            return tangent

    x = torch.ones(3)
    for how in ("few", "long"):

        def call(x):
            return Wrong.apply(x, how)  # noqa: B023

        yield attempt(torch.func.grad(call), x)
        yield attempt(torch.vmap(torch.func.grad(call)), x[None])
        yield attempt(call(x.clone().requires_grad_()).backward)
        yield attempt(torch.func.jvp, call, (x,), (x,))


@case.over(saved=["input", "output"], by=["save_for_backward", "save_for_forward"])
def inputs_given_back_and_saved(torch, saved, by):
    class Same(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            getattr(ctx, by)(inputs[0] if saved == "input" else output)

        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def jvp(ctx, t):
            return t.view_as(t)

    f, x = torch.func, torch.tensor(2.0)
    for function in (Same.apply, lambda x: Same.apply(x.clone())):
        yield attempt(f.grad(function), x)
        yield attempt(f.grad(f.grad(function)), x)
        yield attempt(f.jvp, function, (x,), (x,))
        yield attempt(f.vmap(function), x.expand(2).clone())
        yield attempt(f.vmap(f.grad(function)), x.expand(2).clone())


@case
def gradients_that_are_differentiated_once(torch):
    class Cubed(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] ** 2 * g

    f = torch.func

    def slope(x, g):
        return f.vjp(Cubed.apply, x)[1](g)[0]

    x, g = torch.tensor(2.0), torch.tensor(1.0)
    yield attempt(f.grad(slope, argnums=(0, 1)), x, g)
    yield attempt(f.grad(f.grad(Cubed.apply)), x)


@case
def arguments_given_back(torch):
    """They are the very tensors that were given, but for forward mode."""
    func = torch.func
    for x in (torch.ones(3), torch.ones(3, requires_grad=True)):
        yield func.grad(lambda a: ((a * a).sum(), a), has_aux=True)(x)[1] is x
        yield func.vjp(lambda a: (a * 2, a), x, has_aux=True)[2] is x
        yield func.vjp(lambda a: a, x)[0] is x
        yield func.jacrev(lambda a: (a * 2, a), has_aux=True)(x)[1] is x
        yield func.jvp(lambda a: (a * 2, a), (x,), (x,), has_aux=True)[2] is x
        yield func.grad(lambda a: func.grad(lambda b: (b * a).sum())(a).sum())(x)


@case
def jacobians_of_nothing(torch):
    func = torch.func
    for x in (torch.ones(0, 3), torch.ones(0), torch.tensor(2.0)):
        for jacobian in (func.jacfwd, func.jacrev):
            yield jacobian(lambda a: a * 2)(x), jacobian(lambda a: a.sum())(x)
    for size in (1, 2, None):
        for x in (torch.ones(0, 3), torch.ones(2)):
            both = func.jacrev(lambda a: (a * 2, a.sum()), chunk_size=size)
            none = func.jacrev(lambda a: torch.zeros(0) * a.sum(), chunk_size=size)
            yield both(x), attempt(none, x)
    yield func.hessian(lambda a: a.sum())(torch.ones(0))


@case
def nodes_of_jacobians(torch):
    w = torch.ones(4, 2, requires_grad=True)
    for x in (torch.ones(4), torch.ones(3, 4)):
        for jacobian in (torch.func.jacfwd, torch.func.jacrev):
            yield jacobian(lambda a: (a @ w).tanh())(x).grad_fn.name()


def scaled(torch, forward_mode):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return y.sum() * grad, (x * grad).sum().expand(y.shape)

        if forward_mode:

            @staticmethod
            def jvp(ctx, of_x, of_y):
                x, y = ctx.saved_tensors
                return of_x * y.sum() + 3 * x * of_y.sum()

        @staticmethod
        def vmap(info, in_dims, x, y):
            n, (at, other) = info.batch_size, in_dims
            x = x.expand(n, *x.shape) if at is None else x.movedim(at, 0)
            y = y.expand(n, *y.shape) if other is None else y.movedim(other, 0)
            shape = n, *[1] * (x.dim() - 1)
            return x * y.reshape(n, -1).sum(1).reshape(shape), 0

    return Scaled.apply


@case.over(forward_mode=[False, True])
def tangents_around_a_rule_are_those_of_its_calls(torch, forward_mode):
    f = torch.func
    apply = scaled(torch, forward_mode)
    x, y = torch.tensor([-0.5, 0.25, 1.0]), torch.arange(9.0).reshape(3, 3)

    def within(x, y):
        return apply(y, x).sum()

    tangents = x.cos(), torch.ones(3, 3)
    forward = torch.autograd.forward_ad
    over = {"in_dims": (None, 1)}
    for function in within, f.grad(within), f.jacrev(within, (0, 1)):
        mapped = torch.vmap(function, **over)
        yield attempt(f.jvp, mapped, (x, y), tangents)
        yield attempt(f.jvp, function, (x, y), tangents)
        yield attempt(f.jacfwd(mapped, (0, 1)), x, y)
        with forward.dual_level():
            found = attempt(mapped, forward.make_dual(x, tangents[0]), y)
            found = found if isinstance(found, tuple) else (found,)
            yield [tuple(forward.unpack_dual(each)) for each in found]
    yield attempt(f.grad(lambda x: torch.vmap(within, **over)(x, y).sum()), x)
