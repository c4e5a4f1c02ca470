"""The entries of PyTorch's optimizer database, and the configurations that are run.

This needs torch. An entry is one optimizer with arguments for its constructor
(`torch.testing._internal.common_optimizers.OptimizerInfo`), or one of `SCHEDULERS`,
as there is no database of these.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db

from compat_suite.operators.database import spread


@dataclass(frozen=True)
class Scheduler:
    """One class of `torch.optim.lr_scheduler`."""

    name: str
    #: Makes it of the library's module and an optimizer.
    make: Callable[[Any, Any], Any]


def _of_two(s: Any, o: Any) -> list[Any]:
    return [s.ConstantLR(o, 0.5, total_iters=2), s.ExponentialLR(o, 0.9)]


#: One of each kind, that changes within a few steps.
SCHEDULERS: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9),
    "StepLR": lambda s, o: s.StepLR(o, 2, gamma=0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [1, 3], gamma=0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, factor=0.5, total_iters=3),
    "LinearLR": lambda s, o: s.LinearLR(o, start_factor=0.2, total_iters=4),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.8),
    "SequentialLR": lambda s, o: s.SequentialLR(o, _of_two(s, o), [3]),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 4, eta_min=0.001),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(_of_two(s, o)),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=0, threshold=9),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, step_size_up=2, mode="exp_range"),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 2),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=8, three_phase=True),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=5, power=2.0),
}


def name_of(entry: Any) -> str:
    """An entry's name, as `Adam` or `lr_scheduler.StepLR`."""
    return entry.name


def namespace_of(name: str) -> str:
    """The part of the table an entry is counted in."""
    return "lr_scheduler" if name.startswith("lr_scheduler.") else "optim"


@functools.cache
def by_name() -> dict[str, Any]:
    """All entries."""
    kinds = [n for n in torch.optim.lr_scheduler.__all__ if n != "LRScheduler"]
    made = [Scheduler(f"lr_scheduler.{n}", SCHEDULERS[n]) for n in kinds]
    return {name_of(e): e for e in [*optim_db, *made]}


def entries(match: str = "") -> list[Any]:
    """The entries whose names match a regular expression."""
    return [e for name, e in by_name().items() if re.search(match, name)]


def torch_version() -> str:
    """The version of PyTorch that is compared with."""
    return torch.__version__


def left_out() -> dict[str, str]:
    """The entries that need not agree, each with its reason: none."""
    return {}


def dtypes(entry: Any) -> list[str]:
    """The dtypes of the parameters."""
    if isinstance(entry, Scheduler):
        return ["float32"]
    found = ["float32", "float64"]
    if entry.supports_complex:
        found.append("complex64")
        if entry.step_requires_closure:
            found.append("complex128")
    return found


def scheduled(entry: OptimizerInfo) -> str:
    """The dtype that steps with schedulers are compared in."""
    return "float64" if entry.step_requires_closure else "float32"


def configurations(entry: OptimizerInfo, count: int) -> list[dict[str, Any]]:
    """Up to `count` times arguments of the constructor besides the parameters."""
    found = spread(entry.optim_inputs_func(device="cpu"), count)
    # Those that iterate within a step take six steps of twenty iterations otherwise.
    few = {"max_iter": 5} if entry.step_requires_closure else {}
    return [few | dict(each.kwargs) for each in found]


def flags(entry: OptimizerInfo) -> list[dict[str, Any]]:
    """What the database leaves to its users: how a step is computed."""
    made: list[dict[str, Any]] = [{}]
    if "foreach" in entry.supported_impls:
        made += [{"foreach": True}, {"foreach": False}]
    if "cpu" in entry.supports_fused_on:
        made.append({"fused": True})
    if entry.has_capturable_arg:
        made.append({"capturable": True})
    return made


def refused(entry: OptimizerInfo) -> list[Any]:
    """What the constructor or a step raises an exception or warns for."""
    return entry.optim_error_inputs_func(device="cpu", dtype=torch.float32)
