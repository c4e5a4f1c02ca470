"""Functions that say that they are of another module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def exposed_in(module: str) -> Callable[[Any], Any]:
    """A decorator that says that a function is of `module`."""

    def wrapper(fn: Any) -> Any:
        fn.__module__ = module
        return fn

    return wrapper
