"""Python in a backward: what a hook and a custom function cost over their own code.

The difference to a chain that runs the same Python and has no hook or custom
function, from the first operator to the end of `backward()`; the run of torchshim's
program, which the reading after it starts, is left out. A graph without Python code in
it walks back by one look-up, so that the first hook costs most.
"""

import statistics
import time

from ._case import Case, Goal, torch_api
from ._measure import no_gc, warm_up

OPS = 50


def keep(gradient):
    """A hook that changes nothing."""


def with_hook(x):
    x.register_hook(keep)


def without(x):
    pass


def every(distance, act):
    """A chain that does something at one in `distance` operators."""

    def chain(torch, x):
        for i in range(OPS):
            x = x * 1.01
            if i % distance == distance // 2:
                act(x)
        return x

    return chain


def more(torch, chain, plain, count):
    """Microseconds that each of `count` pieces of Python code adds to a chain."""
    x = torch.ones(4, requires_grad=True)

    def spent(make):
        x.grad = None
        start = time.perf_counter()
        make(torch, x).sum().backward()
        found = time.perf_counter() - start
        x.grad.sum().item()
        return found

    number = warm_up(lambda: (spent(plain), spent(chain)))

    def sample():
        with no_gc():
            found = [spent(chain) - spent(plain) for _ in range(number)]
        return statistics.median(found) / count * 1e6

    return sample


def of_hooks(torch, distance):
    chain, plain = every(distance, with_hook), every(distance, without)
    return more(torch, chain, plain, OPS // distance)


def scale_forward(ctx, x):
    return x * 1.01


def scale_backward(ctx, gradient):
    return gradient * 1.01


def of_custom(torch):
    class Scale(torch.autograd.Function):
        forward = staticmethod(scale_forward)
        backward = staticmethod(scale_backward)

    def chain(torch, x):
        for _ in range(OPS):
            x = Scale.apply(x)
        return x

    def plain(torch, x):
        gradient = torch.ones(4)
        for _ in range(OPS):
            x = scale_forward(None, x)
            scale_backward(None, gradient)
        return x

    return more(torch, chain, plain, OPS)


CASES = [
    Case(
        name=f"a hook, one in {OPS} operators",
        unit="µs",
        engines=torch_api(of_hooks, OPS),
        goals=(Goal(5.0),),
    ),
    Case(
        name="a hook, one an operator",
        unit="µs",
        engines=torch_api(of_hooks, 1),
        goals=(Goal(5.0),),
    ),
    Case(
        name="a custom function",
        unit="µs",
        engines=torch_api(of_custom),
        goals=(Goal(5.0),),
    ),
]
