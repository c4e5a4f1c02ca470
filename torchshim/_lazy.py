"""Submodules that are imported when they are first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def submodules(package: str, *names: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package that has these submodules from the start.

    PyTorch's packages have them since something imports them with `torch`.
    """

    def find(name: str) -> Any:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
