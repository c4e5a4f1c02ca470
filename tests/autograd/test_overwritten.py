"""Saved values that were overwritten: errors, also where the tensor is no more."""

from __future__ import annotations

import functools
import gc
import itertools
import math
from concurrent.futures import ThreadPoolExecutor

from tests.oracle import attempt, case


def values(torch, **kinds):
    return torch.tensor([1.0, 2.0], **kinds)


@case.over(kind=["result", "leaf", "constant"], how=["whole", "piece", "no_grad"])
def of_a_dead_tensor(torch, kind, how):
    gc.collect()  # not in between
    for before in (False, True):
        for after in (False, True):
            for dead in (False, True):
                w = values(torch, requires_grad=True)
                saved = {
                    "result": lambda w=w: w * 1,
                    "leaf": lambda: values(torch),
                    "constant": lambda: values(torch).mul(2),
                }[kind]()
                y = saved.logsumexp(0) if kind == "result" else (saved * w).exp().sum()
                if before:
                    y.item()
                if how == "whole":
                    saved += 3
                elif how == "piece":
                    saved[:] += 3
                else:
                    with torch.no_grad():
                        saved.add_(3)
                if after:
                    saved.sum().item()
                if dead:
                    saved = None
                    # (The error tells the first of several writes of what is gone.)
                    if how != "piece":
                        gc.collect()
                yield before, after, dead, attempt(y.backward), w.grad


def cube(torch):
    """A function that saves what it is given."""

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    return Cube


@case.over(written=["sub", "whole", "slice"], custom=[False, True])
def that_a_custom_function_saved_too(torch, written, custom):
    for read in (False, True):
        for late in (False, True):
            x = values(torch, requires_grad=True)
            y = (x * 2).sigmoid()

            def write(y=y):
                if written == "sub":
                    y[...].clamp_(min=-0.4)
                elif written == "whole":
                    y.clamp_(min=-0.4)
                else:
                    y[:1].clamp_(min=-0.4)

            if not late:
                write()
            z = cube(torch).apply(y) if custom else y * y * y
            if read:
                x.sum().item()
            if late:
                write()
            yield y._version, attempt(z.sum().backward), x.grad


@case.over(view=["none", "mT", "slice", "flatten"], op=["mul_", "sin_", "pow_"])
def twice_through_a_view(torch, view, op):
    """Of a write through a view nothing is used up where its operator raises."""
    for then in ("piece", "same", "other"):
        x = torch.arange(12.0).reshape(2, 2, 3).requires_grad_()
        y = x * 0.5
        v = {
            "none": lambda y=y: y,
            "mT": lambda y=y: y.mT,
            "slice": lambda y=y: y[1:],
            "flatten": lambda y=y: y.flatten(),
        }[view]()
        z = v.exp()
        getattr(v, op)(*{"mul_": (v,), "sin_": (), "pow_": (2,)}[op])
        w = v.chunk(2)[0] if then == "piece" else v
        yield attempt((v * 2).sum().backward, inputs=[x])
        if then == "other":
            yield attempt(z.sum().backward)
        yield attempt((w * 3).sum().backward, retain_graph=True), x.grad


@case.over(view=["none", "flatten", "slice", "detach"], mode=[True, False])
def by_what_data_gave(torch, view, mode):
    for how in ("index", "slice", "whole", "view"):
        x = torch.ones(2, 3, requires_grad=True)
        d = x.data
        with torch.set_grad_enabled(mode):
            v = {
                "none": lambda d=d: d,
                "flatten": d.flatten,
                "slice": lambda d=d: d[1:],
                "detach": d.detach,
            }[view]()
        y = d * x
        with torch.no_grad():
            if how == "index":
                d[torch.tensor([0, 1])] = 2.0
            elif how == "slice":
                d[:1] = 2.0
            elif how == "whole":
                d.fill_(2.0)
            else:
                v.mul_(2)
        yield d._version, x._version, attempt(y.sum().backward), x.grad


@case.over(made=["split", "unbind", "no_grad"], leaf=[False, True])
def views_looked_at_without_gradients(torch, made, leaf):
    """That they are refused where gradients are wanted is not forgotten."""
    for use in ("none", "sum", "item", "write", "data", "view", "before"):
        x = torch.ones(4, requires_grad=True)
        base = x if leaf else x * 1
        with torch.set_grad_enabled(made != "no_grad"):
            v = base.view(2, 2).unbind()[0] if made == "unbind" else base.split(2)[0]
        y = v * 3 if use == "before" else None
        found = None
        with torch.no_grad():
            v.mul_(2)
            if use == "sum":
                v.sum()
            elif use == "item":
                v.sum().item()
            elif use == "write":
                found = attempt(lambda v=v: v.mul_(3).tolist())
            elif use == "view":
                piece = v[:1]
                piece.sum()
        if use == "data":
            v.data.sum()
        yield found
        yield use, attempt(lambda v=v: (v * v).sum().item()), v.tolist()
        yield attempt(lambda v=v: v.grad_fn is None)
        if use == "view":
            yield attempt(lambda piece=piece: (piece * 2).tolist())
        if y is not None:
            yield attempt(y.sum().backward), x.grad
        with torch.no_grad():
            found = (v + v).tolist()
        yield found


_TAKES = {
    "itself": lambda t: t,
    "detached": lambda t: t.detach(),
    "data": lambda t: t.data,
    "view": lambda t: t.view(2, 3),
    "view of detached": lambda t: t.detach().view(6).view(2, 3),
    "detached view": lambda t: t.view(6).detach().view(2, 3),
}
_WRITES = {
    "through a view": lambda t, x: t.permute(1, 0).zero_(),
    "whole": lambda t, x: t.zero_(),
    "item": lambda t, x: t.__setitem__(0, 0.0),
    "detached": lambda t, x: t.detach().zero_(),
    "tracked": lambda t, x: t.mul_(x),
    "tracked through a view": lambda t, x: t.view(-1).mul_(x.view(-1)),
}


@case.over(take=list(_TAKES), write=list(_WRITES), read=[False, True])
def node_that_the_error_names(torch, take, write, read):
    # Which of the tensors on its memory was saved, a closed recording does not know.
    for own in (False,) if read and "tracked" in write else (False, True):
        x = torch.ones(2, 3, requires_grad=True)
        y = x.cumsum(1)
        z = _TAKES[take](y)
        total = (x * z).sum()
        if read:
            total.item()
        _WRITES[write](z if own else y, x)
        yield attempt(total.backward)


@case.over(
    share=["itself", "detached", "data"],
    write=[name for name in _WRITES if "tracked" not in name],
    read=["never", "before", "after"],
)
def memory_that_numpy_shares(torch, share, write, read):
    x = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
    for use in lambda y: y * x, lambda y: x**y, lambda y: (x + y).exp() * y[0]:
        y = torch.tensor([[0.5, 0.75, 1.0], [1.25, 1.5, 1.75]])
        array = _TAKES[share](y).numpy()
        z = use(y)
        if read == "before":
            yield z.tolist()
        _WRITES[write](y, x)
        if read == "after":
            yield y.tolist()
        yield array, y._version
        yield attempt(z.sum().backward)
        w = use(y)
        yield torch.autograd.grad(w.sum(), x)


_MAKES = {
    "view": lambda x: x[None],
    "product": lambda x: x * 2,
    "view of a product": lambda x: (x * 2).view(1, 3),
    "detached": lambda x: x.detach(),
    "leaf": lambda x: x,
    "result": lambda x: x.exp(),
}


@case.over(make=list(_MAKES), look=[False, True])
def memory_of_several_threads(torch, make, look):
    other = ThreadPoolExecutor(1)

    def elsewhere(call):
        return other.submit(call).result()

    def fill(t):
        with torch.no_grad():
            t.fill_(2.0)

    def fill_part(t):
        with torch.no_grad():
            t.view(-1)[:1].zero_()

    def here(call):
        return call()

    def run(write, first, second, third):
        x = torch.tensor([-1.0, -0.75, -0.5], requires_grad=True)
        y = first(lambda: _MAKES[make](x))
        z = second(lambda: (y.prod() * x).max())
        if look:
            yield y.grad_fn
        yield attempt(third, lambda: write(y))
        yield attempt(torch.autograd.grad, z, x)
        yield y.grad_fn, y._version

    threads = here, elsewhere
    for write in fill, fill_part, lambda t: t.mul_(2), lambda t: t.detach().zero_():
        for chosen in itertools.product(threads, threads, threads):
            yield from run(write, *chosen)
    other.shutdown()


_RESULTS = {
    "halves": lambda torch, x: _halves(torch).apply(x * 1, x),
    "constant": lambda torch, x: _halves(torch).apply(torch.ones(2, 2), x),
    "split": lambda torch, x: (x * 1).split(1),
    "max": lambda torch, x: (x * 1).max(1),
    "topk": lambda torch, x: (x * 1).topk(1, 0),
    "var_mean": lambda torch, x: torch.var_mean(x * 1, 0),
    "std_mean": lambda torch, x: torch.std_mean(x * 1, 0),
    "aminmax": lambda torch, x: torch.aminmax(x * 1, dim=0),
    "slogdet": lambda torch, x: torch.linalg.slogdet(x * 1),
}


def _halves(torch):
    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            first, second = x * 2, y.exp()
            ctx.save_for_backward(first, second, x)
            return first, second

        @staticmethod
        def backward(ctx, first, second):
            _ = ctx.saved_tensors
            return first * 2, second

    return Halves


@case.over(made=list(_RESULTS), saved=["square", "function", "itself"])
def which_result_it_was(torch, made, saved):
    """Errors tell the number of what a node saves of its own results, 0 of others."""

    def write(y, how):
        if how == "relu":
            y.relu_()
        elif how == "piece":
            y.view(-1)[:1].mul_(2)
        else:
            with torch.no_grad():
                y.zero_()

    for how, read in itertools.product(("relu", "piece", "no_grad"), (False, True)):
        if made == "split" and how == "no_grad":
            continue
        for k in range(2):
            x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
            results = _RESULTS[made](torch, x)
            y = results[k]
            if not y.requires_grad:
                continue
            z = sum(r.sum() for r in results if r.requires_grad)
            if saved == "square":
                z = (y * y).sum()
            elif saved == "function":
                z = sum(r.sum() for r in _halves(torch).apply(y, x))
            if read:
                yield z
            yield attempt(write, y, how)
            yield attempt(z.backward)


# Functions of several operands, by their shapes.
_OF_SEVERAL = {
    "2, 2": "mul div atan2 pow fmod hypot maximum logaddexp xlogy dist complex dot "
    "special.xlog1py nn.functional.mse_loss nn.functional.binary_cross_entropy",
    "2, 2, 2": "clamp lerp addcmul addcdiv addr",
    "22, 2": "mv matmul nn.functional.prelu",
    "22, 22": "mm matmul cdist linalg.solve",
    "22, 22, 2": "nn.functional.linear",
    "22, 22, 22": "addmm",
    "2, 22, 2": "addmv",
    "222, 222": "bmm",
    "222, 222, 222": "baddbmm",
    "3, 3": "linalg.cross",
    "125, 122": "nn.functional.conv1d",
    "22, 21": "_weight_norm",
}


@case.over(*_OF_SEVERAL)
def which_of_several(torch, shapes):
    """Errors are about the first one, by PyTorch's names of the operands."""
    for function in _OF_SEVERAL[shapes].split():
        call = functools.reduce(getattr, function.split("."), torch)
        for last, read in itertools.product((False, True), repeat=2):
            sizes = [[*map(int, each)] for each in shapes.split(", ")]
            leaves = [
                torch.linspace(0.25, 0.75, math.prod(size)).reshape(size)
                for size in sizes
            ]
            for leaf in leaves[-1:] if last else leaves:
                leaf.requires_grad_()
            given = [leaf * 1 if leaf.requires_grad else leaf for leaf in leaves]
            z = call(*given).abs().sum()
            if read:
                z.item()
            with torch.no_grad():
                for at, each in enumerate(given):
                    for _ in range(at + 1):
                        each.mul_(1)
            yield function, last, read, attempt(z.backward)


@case.over(read=[False, True])
def the_divisor_before_what_is_divided(torch, read):
    w = values(torch, requires_grad=True)
    base = w.sum()
    divided, divisor = values(torch), base.expand(2)
    z = (divided / divisor).mean()
    if read:
        z.item()
    base.mul_(2)
    divided[1:].clamp_(min=3)
    yield attempt(z.backward, inputs=[w])


@case.over(("sum", "tanh"), ("sum", "mul"), ("twice", "tanh"), ("twice", "sigmoid"))
def a_node_that_fails_is_not_used_up(torch, step, function):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + x

        @staticmethod
        def backward(ctx, grad):
            return grad + grad

    x = values(torch, requires_grad=True)
    y = x.mul(x) if function == "mul" else getattr(x, function)()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (x if function == "mul" else y).detach().mul_(0.5)
    z = Twice.apply(g) if step == "twice" else g + g
    for _ in range(3):
        yield attempt(z[None].sum().backward)
    yield x.grad


@case
def values_put_back_behind_the_back_of_autograd(torch):
    x, p = (torch.tensor(v).requires_grad_() for v in ([1.0, 2.0], [2.0, 3.0]))
    outs = [x**p, x.prod(), x.std(), x.logsumexp(0), x.amax(0)]
    for at in range(2):
        old = x.data[at].item()
        x.data[at] += 1
        yield x.sum()
        x.data[at] = old
    for out in outs:
        yield torch.autograd.grad(out.sum(), x, retain_graph=True)
    x.data = x.data.clone()
    yield [torch.autograd.grad(out.sum(), x) for out in outs]


@case
def negative_slopes_in_place(torch):
    f = torch.nn.functional
    for name, slope in (
        ("leaky_relu_", -2.0),
        ("leaky_relu_", 0.0),
        ("elu_", -2.0),
        ("celu_", -2.0),
    ):
        x = torch.tensor([-1.0, 1.0], requires_grad=True)
        y = getattr(f, name)(x.clone(), slope)
        for _ in range(2):
            yield attempt(y.sum().backward, retain_graph=True), x.grad


@case.over(custom=[False, True])
def through_a_detached_alias_by_what_requires_grad(torch, custom):
    for read in (False, True):
        for dead in (False, True):
            if read and dead and not custom:
                continue  # it names the alias's node: docs/differences.md
            x = values(torch, requires_grad=True)
            saved = (x * 2).clamp(min=-1)
            alias = saved.detach()
            y = cube(torch).apply(saved) if custom else saved**3
            if read:
                y.sum().item()
            if dead:
                saved = None
            alias.sub_(x)
            yield read, dead, attempt(y.sum().backward), alias.grad_fn.name()


def test_results_that_no_formula_is_there_for_are_refused():
    import pytest

    import torchshim as torch

    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    y = torch.cdist(x, x + 1)
    y.data[0] += 1
    with pytest.raises(NotImplementedError, match="the gradient of cdist uses its"):
        torch.autograd.grad(y.sum(), x)


@case.over(asked=["operand", "both"], several=[False, True])
def by_a_hook_on_what_is_asked_for(torch, asked, several):
    for function in (
        lambda x: x / x,
        lambda x: x**3,
        lambda x: x.exp(),
        lambda x: torch.ones(3) / x,
    ):
        for _ in range(2):
            x = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
            y = function(x)
            y.register_hook(lambda grad, x=x: (x.detach().zero_(), None)[1])
            out = torch.stack(y.unbind()) if several else y
            wanted = [x] if asked == "operand" else [x, y]
            yield attempt(torch.autograd.grad, out.mean(), wanted)


@case.over(pool=["max_pool", "adaptive_max_pool"], n=[1, 2, 3])
def places_of_the_largest(torch, pool, n):
    function = getattr(torch.nn.functional, f"{pool}{n}d")
    x = torch.arange(2.0 * 4**n).reshape(1, 2, *(4,) * n).requires_grad_()
    largest, places = function(x, 2, return_indices=True)
    largest.sum().backward(retain_graph=True)
    yield x.grad, places
    places.add_(1)
    refused = attempt(largest.sum().backward)
    # A signal is pooled as an image, of whose places the error tells.
    yield type(refused) if n == 1 else refused, x.grad
