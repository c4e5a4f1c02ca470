"""Functions by the names of PyTorch's C++ side, which generated code calls."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def by_prefix(space: str) -> Callable[[str], Any]:
    """Where `special_erf` is found that is another name of a function of `torch`."""

    def find(name: str) -> Any:
        if not name.startswith(f"{space}_"):
            return None
        functions = importlib.import_module(f"torchshim.{space}")
        return getattr(functions, name.removeprefix(f"{space}_"), None)

    return find


def functions_of(
    module: str, other: Callable[[str], Any] = lambda name: None
) -> Callable[[str], Any]:
    """The `__getattr__` of one of its modules: AttributeError for what it has not.

    `other`: finds what generated code calls by another name.
    """

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        names = importlib.import_module("torchshim.fx._names")
        try:
            return names.native_function(names.torch_module(module), name)
        except AttributeError:
            found = other(name)
            if found is None:
                raise
            return found

    return find
