"""Running generated source: `linecache` knows it, so that tracebacks read well."""

from __future__ import annotations

import builtins
import importlib
import linecache
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from torchshim.fx._names import is_from_torch, torch_module
from torchshim.fx._namespace import _custom_builtins

_SHIM = __name__.partition(".")[0]


class _Sources:
    """Generated sources by the names of their files, for `linecache`."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.count = 0

    def add(
        self, source: str, globals: dict[str, Any], traced: Mapping[str, Any]
    ) -> str:
        """The name of the file; `traced`: which function the source was made of."""
        name = f"<eval_with_key>.{self.count}"
        self.count += 1
        if {"co_filename", "co_firstlineno", "co_name"} <= traced.keys():
            name += (
                f" from {traced['co_filename']}:{traced['co_firstlineno']} in "
                f"{traced['co_name']}"
            )
        self.sources[name] = source
        scope = {**globals, "__file__": name, "__name__": name, "__loader__": self}
        linecache.lazycache(name, scope)
        return name

    def forget(self, name: str) -> None:
        """Lets go of a source whose code is gone."""
        self.sources.pop(name, None)
        linecache.cache.pop(name, None)

    def get_source(self, module_name: str) -> str | None:
        """What `linecache` asks a loader for."""
        return self.sources.get(module_name)


_sources = _Sources()


def forward_of(
    source: str,
    globals: dict[str, Any],
    traced: Mapping[str, Any] | None = None,
    name: str = "forward",
) -> Callable[..., Any]:
    """The function that a source defines."""
    scope = globals.copy()
    file = _sources.add(source, globals, traced or {})
    # Annotations stay objects, which `from __future__` here would make strings.
    exec(compile(source, file, "exec", dont_inherit=True), scope)
    made = scope.pop(name)
    weakref.finalize(made.__code__, _sources.forget, file).atexit = False
    return made


def import_block(globals: dict[str, Any]) -> str:
    """The statements that a source needs before it where its globals are not given."""
    return "\n".join(sorted({_import_of(n, o) for n, o in globals.items()}))


def _import_of(name: str, obj: Any) -> str:
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if is_from_torch(obj):
        return "import torch"
    module, attribute = torch_module(obj.__module__), obj.__name__
    found = importlib.import_module(obj.__module__)
    if getattr(found, attribute, None) is not obj:
        raise TypeError(f"{obj} is not found as {attribute} in {module}")
    return f"from {module} import {attribute} as {name}"


def _import(name: str, *rest: Any) -> Any:
    """As Python's, but that torch is torchshim, under whatever name."""
    if name == "torch" or name.startswith("torch."):
        inner = name.removeprefix("torch")
        module = importlib.import_module(_SHIM + inner)
        named = rest[2] if len(rest) > 2 else ()
        return module if named or not inner else importlib.import_module(_SHIM)
    return builtins.__import__(name, *rest)


def forward_of_text(source: str) -> Callable[..., Any]:
    """The function of a source that begins with what it imports."""
    own = {**vars(builtins), "__import__": _import}
    return forward_of(source, {"__builtins__": own})
