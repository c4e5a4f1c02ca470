"""What the context of a custom function shows within its forward and backward."""

from __future__ import annotations

from tests.oracle import attempt, case


@case(raises=AttributeError)
def attributes(torch):
    seen = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, scale):
            seen.append({"save_for_backward", "next_functions"} <= {*dir(ctx)})
            seen.append(hasattr(ctx, "next_functions"))
            seen.append([(n and n.name(), k) for n, k in ctx.next_functions])
            for value in (1, None, "a"):
                seen.append(attempt(ctx.set_materialize_grads, value))
            seen.append(attempt(lambda: ctx.materialize_grads))
            seen.append(attempt(lambda: ctx.absent))
            seen.append(attempt(setattr, ctx, "materialize_grads", 1))
            ctx.materialize_grads = False
            return x * scale, y * scale

        @staticmethod
        def backward(ctx, g, h):
            seen.append({"saved_tensors", "metadata"} <= {*dir(ctx)})
            seen.append(attempt(lambda: ctx.materialize_grads))
            seen.append((h is None, len(ctx.next_functions)))
            return g, h, None

    x = torch.ones(2, requires_grad=True)
    a, _ = Doubled.apply(x * 1, torch.ones(2), 2)
    a.sum().backward()
    yield seen, x.grad
    seen.clear()
    Doubled.apply(torch.ones(2), torch.ones(2), 3)
    yield seen


@case
def materialized(torch):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, wanted):
            ctx.set_materialize_grads(wanted)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            print(g, h)
            return g, None

    for wanted in (True, False):
        x = torch.ones(2, requires_grad=True)
        Two.apply(x, wanted)[0].sum().backward()
