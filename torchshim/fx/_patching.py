"""Functions that are replaced while a program is traced: those that `wrap` names."""

from __future__ import annotations

import builtins
import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torchshim._tensor import Tensor
from torchshim.fx.node import map_aggregate
from torchshim.fx.proxy import Proxy

# (id of a module's globals, name) -> the globals: what `wrap` was called for.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
# (class, name): methods that are nodes, too.
_wrapped_methods_to_patch: list[tuple[type, str]] = []
if os.environ.get("FX_PATCH_GETITEM") == "1":
    _wrapped_methods_to_patch.append((Tensor, "__getitem__"))


def find_proxy(*values: object) -> Proxy | None:
    """The last proxy in nested containers, None if there is none."""
    found: list[Proxy] = []

    def look(x: object) -> None:
        if isinstance(x, Proxy):
            found.append(x)

    map_aggregate(values, look)
    return found[-1] if found else None


def _wrapped_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls with proxies are nodes."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


_MISSING = object()


class _Patch(NamedTuple):
    holder: Any
    name: str
    before: Any
    made: Any

    def set(self, value: Any) -> None:
        if isinstance(self.holder, type):
            if value is _MISSING:
                delattr(self.holder, self.name)
            else:
                setattr(self.holder, self.name, value)
        elif value is _MISSING:
            del self.holder[self.name]
        else:
            self.holder[self.name] = value


class Patcher:
    """Replaces functions of modules and classes until its context ends."""

    def __init__(self) -> None:
        self.patches: list[_Patch] = []
        self.visited: set[int] = set()

    def _add(self, patch: _Patch) -> None:
        self.patches.append(patch)
        patch.set(patch.made)

    def patch(self, names: dict[str, Any], name: str, made: Any) -> None:
        """Replaces a global function, or a built-in one for this module."""
        self._add(_Patch(names, name, names.get(name, _MISSING), made))

    def patch_method(self, cls: type, name: str, made: Any) -> None:
        """Replaces a method; a trace within a trace replaces it once more."""
        self._add(_Patch(cls, name, vars(cls).get(name, _MISSING), made))

    def visit_once(self, thing: object) -> bool:
        """Whether it is asked of this object for the first time."""
        first = id(thing) not in self.visited
        self.visited.add(id(thing))
        return first

    def wrap_found(self, names: dict[str, Any], ids: set[int]) -> None:
        """Replaces those of a module's functions that are always nodes."""
        if not self.visit_once(names):
            return
        for name, value in list(names.items()):
            if name[:1] != "_" and callable(value) and id(value) in ids:
                self.patch(names, name, _wrapped_function(value))

    def wrap_named(self) -> None:
        """Replaces the functions that `wrap` was called for; KeyError without one."""
        for (_, name), names in _wrapped_fns_to_patch.copy().items():
            built_in = name not in names and hasattr(builtins, name)
            function = getattr(builtins, name) if built_in else names[name]
            self.patch(names, name, _wrapped_function(function))
        for cls, name in _wrapped_methods_to_patch:
            self.patch_method(cls, name, _wrapped_method(cls, name))

    def revert(self) -> None:
        """Puts back what was there, the last replacement first."""
        while self.patches:
            patch = self.patches.pop()
            patch.set(patch.before)
        self.visited.clear()


@contextlib.contextmanager
def patching() -> Iterator[Patcher]:
    """A patcher that puts everything back in the end."""
    patcher = Patcher()
    try:
        yield patcher
    finally:
        patcher.revert()
