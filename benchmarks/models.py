"""Training steps of whole programs, hot; and the first ten, compiling included."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import _algorithms, _sequences, _vision
from ._case import TORCH, Case, Goal, Measure, Step, torch_api
from ._measure import timed_on_best_threads

PROGRAMS: list[Callable[[Any], Step]] = [
    _vision.residual_network,
    _vision.u_net,
    _vision.dcgan,
    _vision.vision_transformer,
    _vision.variational_autoencoder,
    _vision.radiance_field,
    _sequences.lstm_language_model,
    _sequences.names_by_letters,
    _sequences.translation,
    _sequences.gpt,
    _algorithms.deep_q_learning,
    _algorithms.policy_gradient,
    _algorithms.proximal_policy,
    _algorithms.meta_learning,
    _algorithms.gradient_penalty,
    _algorithms.differential_equation,
    _algorithms.diffusion,
    _algorithms.graph_network,
]


def hot(torch: Any, program: Callable[[Any], Step]) -> Measure:
    """Milliseconds a step."""
    torch.manual_seed(0)
    return timed_on_best_threads(torch, program(torch), scale=1e3)


def cold(torch: Any, program: Callable[[Any], Step]) -> Measure:
    """Seconds that the set-up and ten steps take."""

    def sample() -> float:
        torch.manual_seed(0)
        start = time.perf_counter()
        step = program(torch)
        for _ in range(10):
            step()
        return time.perf_counter() - start

    return sample


def _named(program: Callable[..., Any]) -> str:
    return program.__name__.replace("_", " ")


CASES = [
    Case(
        name=f"{_named(program)}, a step",
        unit="ms",
        engines=torch_api(hot, program),
        goals=(Goal(1.0, TORCH),),
        rounds=3,
    )
    for program in PROGRAMS
] + [
    Case(
        name=f"{_named(program)}, set-up and ten steps",
        unit="s",
        engines=torch_api(cold, program),
        fresh=True,
        rounds=1,
        long=True,
    )
    for program in PROGRAMS
]
