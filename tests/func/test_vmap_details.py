"""`vmap`: dimensions, views, and what is refused, as PyTorch tells it."""

from __future__ import annotations

import warnings

from tests.oracle import attempt, case


@case
def the_dimension_that_is_mapped(torch):
    asked = torch._C._functorch
    x = torch.arange(6.0).reshape(3, 2)

    def seen(a):
        print(asked.maybe_get_bdim(a), asked.get_unwrapped(a) is x, a)
        a.add_(1)
        return a

    # (Copies: of memory that NumPy still looks at arguments are no views.)
    yield torch.vmap(seen, 1)(x).clone()
    torch.vmap(lambda a: torch.vmap(seen, 1)(a.view(1, 3)), 1)(x)

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def vmap(info, in_dims, x):
            print(in_dims, x.shape)
            return x.mul_(2), in_dims[0]

    yield torch.vmap(Doubled.apply, 1, 1)(x).clone(), x.clone()
    yield torch.vmap(lambda a: Doubled.apply(a.clone()), 0)(x), x


@case
def checkpoints_within_and_around(torch):
    again = torch.utils.checkpoint.checkpoint
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    for reentrant in (False, True):
        for function in (torch.sin, lambda a: torch.outer(a, a).exp()):

            def mapped(x, function=function):
                return torch.vmap(function)(x).sum()

            x.grad = None
            again(mapped, x, use_reentrant=reentrant).backward()
            yield x.grad


@case
def what_is_not_done_within(torch):
    vmap = torch.vmap
    x = torch.rand(3, 2, requires_grad=True)
    flat = x.detach()
    grad = torch.autograd.grad
    yield attempt(vmap(lambda a: grad(a.sin().sum(), a)[0]), x)
    yield attempt(vmap(lambda a: grad((x[0] * a).sum(), x)[0]), flat)
    y = x.sin().sum()
    yield vmap(lambda v: grad(y, x, v, retain_graph=True)[0])(torch.ones(2)).shape
    last = torch.channels_last
    yield attempt(vmap(lambda a: a.is_contiguous(memory_format=last)), flat)
    yield attempt(vmap(lambda a: a.contiguous(memory_format=last)), flat)
    draw = vmap(lambda a, p: a.bernoulli_(p), (None, 0), randomness="different")
    yield attempt(draw, torch.ones(2), flat)
    aten = torch.ops.aten
    yield vmap(lambda a: aten._is_all_true(a > 2), out_dims=None)(flat)
    yield vmap(lambda a: aten._is_any_true(a < 2), out_dims=None)(flat)
    with torch.autograd.detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        roots = vmap(torch.func.grad(lambda a: a.sqrt().sum()))
        yield attempt(roots, torch.tensor([-1.0, 1.0]))


@case
def names_of_nodes(torch):
    F, vmap, func = torch.nn.functional, torch.vmap, torch.func
    x = torch.rand(2, 3, 4, requires_grad=True)
    y, labels = x.detach(), torch.tensor([[0, 1, 2], [1, 2, 3]])
    for name in ("sum", "mean", "prod", "max", "min", "trace", "exp", "std"):
        reduce = getattr(torch, name)
        yield name, vmap(lambda a, r=reduce: r(a))(x).grad_fn.name()
        yield name, vmap(vmap(lambda a, r=reduce: r(a[None])))(x).grad_fn.name()
    losses = [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss]
    losses += [F.binary_cross_entropy, F.binary_cross_entropy_with_logits]
    for loss in [*losses, F.cross_entropy, F.nll_loss]:
        other = labels if loss in (F.cross_entropy, F.nll_loss) else y
        for reduction in ("mean", "sum"):
            found = vmap(lambda a, b, f=loss, r=reduction: f(a, b, reduction=r))
            yield loss.__name__, reduction, found(x, other).grad_fn.name()
    both = vmap(func.grad_and_value(lambda a: (a.exp().sum(), a.sin()), has_aux=True))
    yield [t.grad_fn.name() for t in both(x)[1]]
    yield vmap(lambda a: func.vjp(torch.sin, a)[0])(x).grad_fn.name()
    views = [("t", ()), ("unbind", ()), ("split", (2,)), ("select", (0, 1))]
    for view, args in [*views, ("view", (-1,)), ("unsqueeze", (0,))]:
        found = vmap(lambda a, v=view, g=args: getattr(a, v)(*g))(x)
        found = found[0] if isinstance(found, tuple) else found
        yield view, found.grad_fn.name()


@case
def trials_of_other_shapes(torch):
    yield torch.binomial(torch.full((2, 3), 4.0), torch.ones(3))
    different = torch.vmap(torch.binomial, (0, None), randomness="different")
    yield different(torch.full((2, 3), 4.0), torch.ones(3))


@case(message=False)
def the_loop_over_examples(torch):
    told, asked = torch._C._functorch, torch._C
    looped = torch.vmap(torch._test_functorch_fallback)
    x = torch.arange(3.0)

    def run(*args):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = attempt(looped, *args)
        return found, [str(w.message)[:90] for w in caught]

    yield run(x, x + 1)
    told._set_vmap_fallback_warning_enabled(False)
    yield run(x, x + 1)
    told._set_vmap_fallback_enabled(False)
    yield told._is_vmap_fallback_enabled(), run(x, x + 1)
    told._set_vmap_fallback_enabled(True)
    told._set_vmap_fallback_warning_enabled(True)
    yield told._is_vmap_fallback_enabled(), run(x[:0], x[:0])[0]
    before = asked._debug_only_are_vmap_fallback_warnings_enabled()
    asked._debug_only_display_vmap_fallback_warnings(True)
    yield before, asked._debug_only_are_vmap_fallback_warnings_enabled()
    asked._debug_only_display_vmap_fallback_warnings(before)


@case
def products_of_other_dimensions(torch):
    square, vector = torch.rand(2, 2, 2, 2), torch.rand(2, 2)
    for product in (torch.mm, torch.mv, torch.bmm, torch.dot):
        yield attempt(torch.vmap(product), square, vector)
        yield attempt(torch.vmap(product, (None, 0)), vector, square)


@case
def random_numbers_that_are_not_drawn(torch):
    x, y = torch.rand(3), torch.rand(3)
    same = {"randomness": "same"}
    yield attempt(torch.vmap(lambda a: torch.randn(3, out=y), **same), x)
    yield attempt(torch.vmap(lambda a: torch.rand(3, out=y), **same), x)
    yield attempt(torch.vmap(lambda a: torch.rrelu(y), **same), x)
    yield attempt(torch.vmap(torch.nn.functional.rrelu, **same), x)
    for kind in (torch.channels_last, torch.channels_last_3d):
        yield attempt(torch.vmap(lambda a, k=kind: a.clone(memory_format=k)), x)


@case(stride=True)
def new_tensors_with_strides(torch):
    def made(a):
        return a.new_empty_strided((2, 3), (3, 1)).zero_() + a

    yield torch.vmap(made)(torch.ones(2))

    def filled(a):
        return a.new_empty_strided((2,), (1,)).copy_(a.expand(2))

    yield torch.vmap(filled)(torch.arange(2.0))


@case.over(in_dim=[0, 1, -1, -2])
def arguments_given_back(torch, in_dim):
    """Where their examples are, they are the very tensors; however that is counted."""
    x = torch.ones(2, 3)
    for out_dim in (0, 1, -1, -2):
        found = torch.vmap(lambda t: t, in_dims=in_dim, out_dims=out_dim)(x)
        yield found is x, found
    yield torch.vmap(lambda t: t.mul_(2), in_dims=in_dim)(x), x
    yield attempt(torch.vmap(lambda t: t, in_dims=in_dim, out_dims=5), x)
