"""Paths of files beside PyTorch's own tests; functions with deprecated names."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from torchshim import _warnings as warnings


def get_file_path(*path_components: str) -> str:
    """A path beside the package."""
    return os.path.join(os.path.dirname(__file__), *path_components)


def get_file_path_2(*path_components: str) -> str:
    """A path made of these components."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """The path itself where it may be written."""
    return path


_F = TypeVar("_F", bound=Callable[..., Any])


def deprecated() -> Callable[[_F], _F]:
    """Gives a private function, `_name`, a public name under which it warns.

    ValueError for a function without the underscore, RuntimeError where its module has
    the public name already.
    """

    def decorate(function: _F) -> _F:
        private = function.__name__
        if not private.startswith("_"):
            raise ValueError(
                "@deprecate must decorate a function whose name starts with a single "
                f"leading underscore (e.g. '_foo'), not {private!r}"
            )
        name, module = private[1:], sys.modules[function.__module__]
        if hasattr(module, name):
            raise RuntimeError(
                f"Cannot create alias '{name}' -> symbol already exists in "
                f"{module.__name__}."
            )
        text = f"{name} is DEPRECATED, please consider using an alternative API(s). "

        @functools.wraps(function)
        def public(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(text, UserWarning, stacklevel=2)
            return function(*args, **kwargs)

        outer, dot, _ = function.__qualname__.rpartition(".")
        public.__name__, public.__qualname__ = name, f"{outer}{dot}{name}"
        setattr(module, name, public)
        return function

    return decorate
