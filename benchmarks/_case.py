"""What a benchmark is: cases, the engines that run them, and the goals they have."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Literal

TORCH, TORCHSHIM, JAX = ENGINES = ("torch", "torchshim", "jax")

# Takes one sample. What makes a measure also sets the program up and warms it.
Measure = Callable[[], float]
Factory = Callable[[], Measure]
# A step of a training program, which gives what the script reads of it.
Step = Callable[[], float]


@dataclass(frozen=True)
class Goal:
    """torchshim's value, or how it compares to another engine's, is at most `limit`."""

    limit: float
    against: str | None = None
    how: Literal["ratio", "difference"] = "ratio"

    @property
    def combine(self) -> Callable[[float, float], float]:
        return operator.truediv if self.how == "ratio" else operator.sub

    def __str__(self) -> str:
        if self.against is None:
            return f"<= {self.limit:g}"
        if self.how == "ratio":
            return f"<= {self.limit:g} x {self.against}"
        return f"<= {self.against} + {self.limit:g}"


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    unit: str
    engines: Mapping[str, Factory]
    goals: tuple[Goal, ...] = ()
    fresh: bool = False  # a new process for each round, as nothing may be warm
    rounds: int | None = None  # fewer than asked for, where samples don't scatter
    long: bool = field(default=False)  # only with --long


def torch_api(build: Callable[..., Measure], *args: Any) -> dict[str, Factory]:
    """One program for the PyTorch API, for torch and for torchshim."""
    return {name: partial(_build, name, build, *args) for name in (TORCH, TORCHSHIM)}


def only_torchshim(build: Callable[..., Measure], *args: Any) -> dict[str, Factory]:
    return {TORCHSHIM: partial(_build, TORCHSHIM, build, *args)}


def _build(name: str, build: Callable[..., Measure], *args: Any) -> Measure:
    return build(import_module(name), *args)
