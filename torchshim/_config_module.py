"""Modules of settings that PyTorch's compiler has: kept as they are set.

What a script records is compiled whatever they say.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any


class _Refusing:
    """Attributes that are not there are refused, when read and when set."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{_path(self)}.{name}"
        known_as = path.partition(".config.")[2]
        raise AttributeError(f"{path} does not exist") from KeyError(known_as)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ and not name.startswith("__"):
            raise AttributeError(f"{_path(self)}.{name} does not exist")
        super().__setattr__(name, value)


class _Group(_Refusing):
    """Settings with a common prefix: `config.triton`."""

    def __init__(self, path: str) -> None:
        self.__dict__["__name__"] = path


class _Config(_Refusing, ModuleType):
    """A module of settings."""


def _path(settings: Any) -> str:
    return settings.__dict__["__name__"].replace("torchshim", "torch", 1)


def _owner(module: ModuleType, name: str) -> tuple[Any, str]:
    """Where the setting `name` is, which may be of a group, and what it is there."""
    *groups, last = name.split(".")
    owner: Any = module
    for group in groups:
        owner = getattr(owner, group)
    return owner, last


def _changes(first: Any, second: Any, named: dict[str, Any]) -> dict[str, Any]:
    """What `patch` is to change; refuses what it cannot be called with."""
    if first is None:
        if second is not None:
            raise AssertionError(
                "second positional argument is only valid when first argument is a key "
                "string"
            )
        return named
    kind: Any
    if second is None:
        count, kind, called = "a single positional arg", dict, "dict"
    else:
        count, kind, called = "2 positional args", str, "string"
    if not isinstance(first, kind):
        raise AssertionError(
            f"first argument must be a {called} when passing {count} to patch"
        )
    if named:
        raise AssertionError(
            "cannot pass both positional and keyword arguments to patch"
        )
    return first if second is None else {first: second}


def install(module_name: str, defaults: Mapping[str, Any]) -> None:
    """Makes a module one of settings: names may be those of a group, `triton.x`."""
    module = sys.modules[module_name]

    @contextlib.contextmanager
    def patch(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
        """Other settings within a block: a dict, a name with its value, or keywords."""
        wanted = _changes(arg1, arg2, kwargs)
        before = {name: getattr(*_owner(module, name)) for name in wanted}
        try:
            for name, new in wanted.items():
                setattr(*_owner(module, name), new)
            yield
        finally:
            for name, old in before.items():
                setattr(*_owner(module, name), old)

    module.__dict__["patch"] = patch
    for name, value in defaults.items():
        group, dot, inner = name.partition(".")
        if dot:
            there = module.__dict__.setdefault(group, _Group(f"{module_name}.{group}"))
            there.__dict__[inner] = value
        else:
            module.__dict__[name] = value
    module.__class__ = _Config
