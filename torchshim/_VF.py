"""PyTorch's functions by the name that copies of its layers call them by."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from torchshim._derived import namespace

_functions = ChainMap(namespace("torch"), namespace("_VF"))


def __getattr__(name: str) -> Any:
    try:
        return _functions[name]
    except KeyError:
        raise AttributeError(
            f"'torch._C._VariableFunctionsClass' object has no attribute '{name}'"
        ) from None
