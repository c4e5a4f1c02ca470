"""Modules with attributes that are switches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from torchshim._core.precision import precision
from torchshim._functions._arguments import kind_of
from torchshim._settings import changing_precision, check_bool

__all__ = [
    "Fp32Precision",
    "Settings",
    "Switch",
    "allowed",
    "disable_global_flags",
    "flags_frozen",
    "fp32_precision",
    "given",
    "put",
    "temporarily",
    "turn",
]

_frozen = [False]


def disable_global_flags() -> None:
    """From now on settings change within `flags()` alone.

    https://github.com/pytorch/pytorch/blob/v2.13.0/torch/backends/__init__.py
    """
    _frozen[0] = True


def flags_frozen() -> bool:
    """Whether they do."""
    return _frozen[0]


@contextlib.contextmanager
def allowed() -> Iterator[None]:
    """A block in which settings can be changed in any case."""
    before, _frozen[0] = _frozen[0], False
    try:
        yield
    finally:
        _frozen[0] = before


class Settings(ModuleType):
    """A module with attributes that are settings: what stands in its class."""

    def __setattr__(self, name: str, value: Any) -> None:
        if _frozen[0] and name in vars(type(self)):
            shown = f"torch{self.__name__.removeprefix('torchshim')}"
            raise RuntimeError(
                f"not allowed to set {shown} flags after disable_global_flags; please "
                "use flags() context manager instead"
            )
        super().__setattr__(name, value)


class Switch:
    """An attribute that must be a bool. `setter` is its name in PyTorch's error."""

    def __init__(self, value: Any, setter: str) -> None:
        self.value = value
        self.setter = setter

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self.value

    def __set__(self, instance: Any, value: Any) -> None:
        check_bool(self.setter, value)
        self.value = value


def fp32_precision(backend: str, kind: str) -> property:
    """An attribute that is the precision of a kind of operator."""

    def get(self: Any) -> str:
        return precision.get(backend, kind)

    def set(self: Any, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(
                f"fp32_precision of '{backend}' must be str, not {kind_of(value)}"
            )
        with changing_precision() as chosen:
            chosen.set(backend, kind, value)

    return property(get, set)


class Fp32Precision:
    """`fp32_precision` of one kind of operator, as `backends.cudnn.conv` has it."""

    def __init__(self, backend: str, kind: str) -> None:
        object.__setattr__(self, "_at", (backend, kind))

    @property
    def fp32_precision(self) -> str:
        return precision.get(*self._at)  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        with changing_precision() as chosen:
            chosen.set(*self._at, value)  # type: ignore[attr-defined]


def turn(name: str, kind: type[ModuleType]) -> None:
    """Gives the module of this name a class with properties."""
    sys.modules[name].__class__ = kind


def given(**values: Any) -> dict[str, Any]:
    """The settings that are to be changed."""
    return {name: value for name, value in values.items() if value is not None}


def put(name: str, values: dict[str, Any]) -> None:
    """Changes settings of the module of this name, as `set_flags` may always do."""
    with allowed():
        for setting, value in values.items():
            setattr(sys.modules[name], setting, value)


@contextlib.contextmanager
def temporarily(set_flags: Callable[..., Any], *values: Any) -> Iterator[None]:
    """What a module's `flags` does: its settings within a block."""
    before = set_flags(*values)
    try:
        yield
    finally:
        set_flags(*before)
