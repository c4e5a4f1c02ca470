"""`ctx.mark_dirty`: which tensors may be marked, and what they are afterwards."""

from __future__ import annotations

from tests.oracle import attempt, case

TENSORS = {
    "plain": lambda x: x,
    "view": lambda x: x[:2],
    "data": lambda x: x.data,
    "view of data": lambda x: x.data[1:],
    "piece": lambda x: x.split([1, 2])[1],
}


def function(torch, body):
    """A custom function whose forward is `body`."""

    class Dirty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return body(ctx, x)

        @staticmethod
        def backward(ctx, grad, *_):
            return 2 * grad

    return Dirty


def looked_at(torch, body):
    for history in ("none", "leaf", "result"):
        for mode in (True, False):
            for kind, make in TENSORS.items():
                x = torch.ones(3, requires_grad=history != "none")
                if history == "result":
                    x = x * 1
                t = make(x)
                with torch.set_grad_enabled(mode):
                    outs = attempt(function(torch, body).apply, t)
                yield history, mode, kind, x._version, t._version
                if not isinstance(outs, tuple):
                    outs = (outs,)
                for out in outs:
                    if not isinstance(out, torch.Tensor):
                        yield out
                        continue
                    yield out is t, out._version, out.requires_grad, out.is_leaf
                    yield out._is_view(), type(out.grad_fn).__name__


@case.over(returns=["x", "x, 5", "5, x", "x, x", "[x]", "z"])
def returned(torch, returns):
    def body(ctx, x):
        ctx.mark_dirty(x)
        return eval(returns, {"x": x, "z": x * 2})

    yield from looked_at(torch, body)


@case.over(also=["marked", "returned", "both"])
def what_is_no_input(torch, also):
    def body(ctx, x):
        z = torch.ones(2)
        ctx.mark_dirty(*((x,) if also == "returned" else (x, z)))
        return x if also == "marked" else (x, z)

    yield from looked_at(torch, body)


@case
def that_no_gradient_reaches(torch):
    def body(ctx, x):
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x

    yield from looked_at(torch, body)


@case.over(written=[True, False])
def results_with_a_history(torch, written):
    def body(ctx, x):
        with torch.enable_grad():
            if written:
                x.mul_(2)
            y = x * 3
        ctx.mark_dirty(x)
        return x, y

    yield from looked_at(torch, body)
