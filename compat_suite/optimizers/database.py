"""The entries of PyTorch's optimizer database, and the configurations that are run.

This needs torch. An entry is one optimizer with arguments for its constructor
(`torch.testing._internal.common_optimizers.OptimizerInfo`).
"""

from __future__ import annotations

import functools
import re
from typing import Any

import torch
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db

from compat_suite.operators.database import spread


def name_of(entry: OptimizerInfo) -> str:
    """An entry's name, as `Adam`."""
    return entry.name


def namespace_of(name: str) -> str:
    """The part of the table an entry is counted in: there is one."""
    return "optim"


def entries(match: str = "") -> list[OptimizerInfo]:
    """The entries whose names match a regular expression."""
    return [e for e in optim_db if re.search(match, name_of(e))]


def left_out() -> dict[str, str]:
    """The entries that need not agree, each with its reason: none."""
    return {}


@functools.cache
def by_name() -> dict[str, OptimizerInfo]:
    """All entries."""
    return {name_of(e): e for e in optim_db}


def dtypes(entry: OptimizerInfo) -> list[str]:
    """The dtypes of the parameters."""
    return ["float32", "float64", *(["complex64"] if entry.supports_complex else [])]


def configurations(entry: OptimizerInfo, count: int) -> list[dict[str, Any]]:
    """Up to `count` times arguments of the constructor besides the parameters."""
    found = spread(entry.optim_inputs_func(device="cpu"), count)
    return [dict(each.kwargs) for each in found]


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
