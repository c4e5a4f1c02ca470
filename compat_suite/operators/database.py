"""The entries of PyTorch's operator database, and which of their samples are used.

This needs torch. What an entry is: one operator with its dtypes, variants, sample
inputs and inputs that it refuses (`torch.testing._internal.opinfo.core.OpInfo`).
"""

from __future__ import annotations

import functools
import random
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import (
    BinaryUfuncInfo,
    OpInfo,
    ReductionOpInfo,
    UnaryUfuncInfo,
)

import torchshim
from compat_suite.operators.results import left_out, namespace_of

#: Reference inputs with more elements than this add time and no cases.
LARGEST = 2000
#: Their values are whatever stood in memory.
UNINITIALIZED = frozenset(
    (
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    )
)


def name_of(entry: OpInfo) -> str:
    """An entry's name: the operator's, and the variant's after a point."""
    return entry.full_name


def entries(match: str = "") -> list[OpInfo]:
    """The entries whose names match a regular expression."""
    return [e for e in op_db if re.search(match, name_of(e))]


@functools.cache
def by_name() -> dict[str, OpInfo]:
    """All entries."""
    return {name_of(e): e for e in op_db}


def dtypes(entry: OpInfo) -> list[str]:
    """The dtypes an entry has on the CPU and torchshim has arrays of, float32 first.

    Without those that are left out for this entry.
    """
    names = (str(d).removeprefix("torch.") for d in entry.supported_dtypes("cpu"))
    out = left_out()
    kept = (n for n in names if _has_arrays(n) and f"{name_of(entry)} {n}" not in out)
    return sorted(kept, key=lambda n: (n != "float32", n))


@functools.cache
def _has_arrays(dtype: str) -> bool:
    try:
        torchshim.empty(0, dtype=getattr(torchshim, dtype))
    except NotImplementedError:  # complex32 is no more than a name
        return False
    return True


def grad_dtypes(entry: OpInfo) -> set[str]:
    """The dtypes an entry has gradients in."""
    found = entry.supported_backward_dtypes("cpu")
    return {str(d).removeprefix("torch.") for d in found}


def samples(
    entry: OpInfo,
    dtype: str,
    grad: bool,
    count: int,
    seed: int = 0,
    largest: int | None = None,
) -> list[Any]:
    """Up to `count` sample inputs, spread over those of the database.

    Without those of more than `largest` elements, if there are others.
    """
    kind = getattr(torch, dtype)
    found = _quietly(lambda: entry.sample_inputs("cpu", kind, grad), seed)
    if largest is not None:
        found = [s for s in found if _size(s) <= largest] or sorted(found, key=_size)[
            :1
        ]
    return spread(found, count)


def hard_samples(entry: OpInfo, dtype: str, count: int, seed: int) -> list[Any]:
    """Up to `count` reference inputs: extreme values, NaN, other strides, empty."""
    kinds = (UnaryUfuncInfo, BinaryUfuncInfo, ReductionOpInfo)
    if entry.reference_inputs_func is None or not isinstance(entry, kinds):
        return []
    kind = getattr(torch, dtype)
    found = _quietly(lambda: entry.reference_inputs("cpu", kind), seed)
    return spread([s for s in found if _size(s) <= LARGEST], count)


def refused(entry: OpInfo, count: int) -> list[Any]:
    """Up to `count` inputs for which the operator raises an exception."""
    if entry.error_inputs_func is None:
        return []
    found = _quietly(lambda: entry.error_inputs("cpu"))
    return spread([e.sample_input for e in found], count)


def _quietly(make: Callable[[], Iterable[Any]], seed: int = 0) -> list[Any]:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(make())


def spread(found: list[Any], count: int) -> list[Any]:
    """`count` of what was found, from the first to the last."""
    if len(found) <= count:
        return found
    if count == 1:
        return found[:1]
    step = (len(found) - 1) / (count - 1)
    return [found[round(i * step)] for i in range(count)]


def _size(sample: Any) -> int:
    size = 0

    def count(leaf: Any) -> Any:
        nonlocal size
        if isinstance(leaf, torch.Tensor):
            size += leaf.numel()
        return leaf

    sample.transform(count)
    return size


def torch_version() -> str:
    """The version of PyTorch that is compared with."""
    return torch.__version__


__all__ = ["left_out", "namespace_of"]
