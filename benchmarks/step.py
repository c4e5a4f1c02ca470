"""One Adam step of three perceptrons, the loss read at every step."""

from functools import partial

from ._case import JAX, TORCH, Case, Goal, torch_api
from ._measure import timed, timed_on_best_threads
from ._mlp import LARGE, MEDIUM, SMALL, jax_step, torch_step


def torch_program(torch, shape):
    return timed_on_best_threads(torch, torch_step(torch, shape), scale=1e6)


def jax_program(shape):
    return timed(jax_step(shape), scale=1e6)


CASES = [
    Case(
        name=str(shape),
        unit="µs",
        engines={
            **torch_api(torch_program, shape),
            JAX: partial(jax_program, shape),
        },
        goals=(Goal(1.0, TORCH), Goal(limit, JAX)),
    )
    for shape, limit in ((SMALL, 2.2), (MEDIUM, 1.3), (LARGE, 1.3))
]
