"""Functions by the names of PyTorch's C++ side, which generated code calls."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def functions_of(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of one of its modules: AttributeError for what it has not."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        names = importlib.import_module("torchshim.fx._names")
        return names.native_function(names.torch_module(module), name)

    return find
