"""The entries of PyTorch's module database, and which of their samples are used.

This needs torch. An entry is one class of `torch.nn` with arguments for its constructor
and its `forward` (`torch.testing._internal.common_modules.ModuleInfo`).
"""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db

from compat_suite.operators.database import spread

#: What is compared by default: the other dtypes are those of the operators.
DTYPES = ("float32", "float64")


def name_of(entry: ModuleInfo) -> str:
    """An entry's name, as `nn.Linear`."""
    return entry.name


def namespace_of(name: str) -> str:
    """The part of the table an entry is counted in: the file PyTorch has it in."""
    return by_name()[name].module_cls.__module__.rpartition(".")[2]


def entries(match: str = "") -> list[ModuleInfo]:
    """The entries whose names match a regular expression."""
    return [e for e in module_db if re.search(match, name_of(e))]


def torch_version() -> str:
    """The version of PyTorch that is compared with."""
    return torch.__version__


def left_out() -> dict[str, str]:
    """The entries that need not agree, each with its reason: none."""
    return {}


@functools.cache
def by_name() -> dict[str, ModuleInfo]:
    """All entries."""
    return {name_of(e): e for e in module_db}


def dtypes(entry: ModuleInfo) -> list[str]:
    """The dtypes an entry has on the CPU, float32 first."""
    names = (str(d).removeprefix("torch.") for d in entry.supported_dtypes("cpu"))
    return sorted(names, key=lambda n: (n != "float32", n))


def samples(entry: ModuleInfo, dtype: str, training: bool, count: int) -> list[Any]:
    """Up to `count` inputs whose tensors require grad, spread over all there are."""
    found = _inputs(entry, entry.module_inputs_func, dtype, training)
    return spread(list(found), count)


def refused(entry: ModuleInfo, dtype: str, training: bool) -> list[Any]:
    """The inputs that the constructor or `forward` raises an exception for."""
    if entry.module_error_inputs_func is None:
        return []
    return list(_inputs(entry, entry.module_error_inputs_func, dtype, training))


def _inputs(entry: ModuleInfo, make: Any, dtype: str, training: bool) -> Any:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(
            entry,
            device="cpu",
            dtype=getattr(torch, dtype),
            requires_grad=True,
            training=training,
        )
