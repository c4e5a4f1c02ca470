"""Recording: what an op costs Python before anything is computed.

PyTorch computes at once, so its forward is the time to beat. torchshim's recording is
taken without the run of the program, which the reading of the result after it starts;
the last row takes everything, to the numbers.
"""

import time

from ._case import JAX, TORCH, Case, Goal, torch_api
from ._measure import no_gc, timed, warm_up

OPS = 300  # a multiple of the 6 of a link
ELEMENTS = 16


def chain(torch, x, a, b):
    """300 small ops; the values stay between -2 and 2."""
    for _ in range(OPS // 6):
        x = x * a
        x = x + b
        x = torch.sin(x)
        x = -x
        x = torch.tanh(x)
        x = x - a
    return x


def operands(torch, requires_grad):
    x = torch.linspace(-1, 1, ELEMENTS).requires_grad_(requires_grad)
    return x, torch.full((ELEMENTS,), 0.5), torch.full((ELEMENTS,), 0.25)


def recording(torch, requires_grad):
    """Microseconds an op, without the run of what was recorded."""
    x, a, b = operands(torch, requires_grad)

    def once():
        start = time.perf_counter()
        y = chain(torch, x, a, b)
        spent = time.perf_counter() - start
        y.sum().item()
        return spent

    number = warm_up(once)

    def sample():
        with no_gc():
            spent = sum(once() for _ in range(number))
        return spent / number / OPS * 1e6

    return sample


def forward_backward(torch):
    """Microseconds for the chain, its backward, and the reading of the loss."""
    x, a, b = operands(torch, True)

    def once():
        x.grad = None
        loss = chain(torch, x, a, b).sum()
        loss.backward()
        return loss.item()

    return timed(once, scale=1e6)


def jax_forward_backward():
    import jax
    import jax.numpy as jnp

    def loss(x, a, b):
        return chain(jnp, x, a, b).sum()

    program = jax.jit(jax.value_and_grad(loss))
    x, a, b = (
        jnp.linspace(-1, 1, ELEMENTS),
        jnp.full((ELEMENTS,), 0.5),
        jnp.full((ELEMENTS,), 0.25),
    )

    def once():
        value, _slope = program(x, a, b)
        return float(value)

    return timed(once, scale=1e6)


CASES = [
    Case(
        name="an op, requires_grad",
        unit="µs",
        engines=torch_api(recording, True),
        goals=(Goal(1.0), Goal(0.6, TORCH)),
    ),
    Case(
        name="an op, no grad",
        unit="µs",
        engines=torch_api(recording, False),
        goals=(Goal(1.0),),
    ),
    Case(
        name=f"{OPS} ops, forward and backward",
        unit="µs",
        engines={**torch_api(forward_backward), JAX: jax_forward_backward},
        goals=(Goal(1 / 3, TORCH),),
    ),
]
