"""Modules and functions as `torch.jit.script` and `trace` give them.

Nothing is compiled to TorchScript: they run the Python code that they were made of,
whose recordings XLA compiles.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, NoReturn

from torchshim.jit._calls import floats_of, interpreted, with_floats
from torchshim.nn import Module
from torchshim.nn.modules._base import typename
from torchshim.nn.parameter import is_lazy
from torchshim.nn.utils.stateless import JITTED

__all__ = [
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracedModule",
    "refuse",
    "refuse_uninitialized",
    "wrapped",
]


def refuse(what: str) -> NoReturn:
    """What would need TorchScript."""
    raise NotImplementedError(
        f"{what}: torchshim has no TorchScript; save state_dict() with torch.save "
        "instead"
    )


def refuse_uninitialized(module: Module, name: str | None = None) -> None:
    """RuntimeError for a lazy module that was not called yet, or one with such ones."""
    for part in module.modules():
        kinds = {"parameters": part._parameters, "buffers": part._buffers}
        for kind, tensors in kinds.items():
            for key, tensor in tensors.items():
                if is_lazy(tensor):
                    raise RuntimeError(
                        f"'{name or typename(type(part))}' has uninitialized {kind} "
                        f"{key}. Did you forget to run a forward pass?"
                    )


class _Saved:
    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Writes a file that `torch.jit.load` reads, here and in torchshim only."""
        data = self.save_to_buffer(_extra_files)
        with open(f, "wb") as file:
            file.write(data)

    def save_to_buffer(self: Any, _extra_files: Any = None) -> bytes:
        """The bytes of such a file."""
        from torchshim.jit._files import saved

        return saved(self, _extra_files)


class ScriptModule(_Saved, Module):
    """The base class of scripted modules."""


JITTED.append(ScriptModule)


class RecursiveScriptModule(ScriptModule):
    """A module that was scripted: it shares the original's parameters."""

    @property
    def _inner(self) -> type[RecursiveScriptModule]:
        """What the modules within become."""
        return RecursiveScriptModule

    def __init__(self, original: Module, known: dict[int, Any] | None = None) -> None:
        known = {} if known is None else known
        known[id(original)] = self
        super().__init__()
        fields = self.__dict__
        fields.pop("training", None)
        fields["_original"] = original
        fields["_parameters"] = original._parameters
        fields["_buffers"] = original._buffers
        fields["_non_persistent_buffers_set"] = original._non_persistent_buffers_set
        for name, child in original._modules.items():
            self._modules[name] = (
                child
                if child is None
                else known.get(id(child)) or wrapped(child, known, self._inner)
            )
        for name in dir(Module):  # a module's own `double` gives way to an exported one
            if hasattr(getattr(type(original), name), "_torchscript_modifier"):
                fields[name] = getattr(original, name)

    @property
    def original_name(self) -> str:
        return type(self._original).__name__

    @property
    def training(self) -> bool:
        return self.__dict__["_original"].training

    @training.setter
    def training(self, value: bool) -> None:
        original = self.__dict__.get("_original")
        if original is not None:
            original.training = value

    @functools.cached_property
    def _floats(self) -> dict[str, tuple[int, Any]]:
        return floats_of(self._original.forward)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the original gives, with its hooks."""
        args, kwargs = with_floats(self._floats, args, kwargs)
        return interpreted(self._original, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in ("code", "graph", "inlined_graph", "code_with_constants"):
                raise AttributeError(
                    f"{name}: nothing is compiled to TorchScript"
                ) from None
            return getattr(self.__dict__["_original"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or name in ("_parameters", "_buffers", "_modules"):
            super().__setattr__(name, value)
            return
        if "_original" not in self.__dict__:
            super().__setattr__(name, value)
            return
        setattr(self._original, name, value)
        if isinstance(value, Module):
            self._modules[name] = wrapped(value, {}, self._inner)

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def __len__(self) -> int:
        return len(self._original)

    def __iter__(self) -> Any:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        found = self._original[index]
        known = {id(m._original): m for m in self.modules() if hasattr(m, "_original")}
        return known.get(id(found), found)

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> Any:
        return wrapped(self._original, {}, type(self))

    def __deepcopy__(self, memo: Any) -> Any:
        return wrapped(copy.deepcopy(self._original, memo), {}, type(self))

    def __reduce__(self) -> Any:
        refuse("pickling a ScriptModule")


class TracedModule(RecursiveScriptModule):
    """A module within one that was traced."""

    @property
    def _inner(self) -> type[RecursiveScriptModule]:
        return TracedModule

    def _get_name(self) -> str:
        return self.original_name

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the original gives, with its hooks."""
        return self._original(*args, **kwargs)


class TopLevelTracedModule(TracedModule):
    """A module that was traced."""


def wrapped(
    module: Module,
    known: dict[int, Any],
    kind: type[RecursiveScriptModule] = RecursiveScriptModule,
) -> Module:
    """A module and those in it as scripted or traced ones."""
    return module if isinstance(module, ScriptModule) else kind(module, known)


class ScriptFunction(_Saved):
    """A function that was scripted or traced."""

    def __init__(self, function: Callable[..., Any], traced: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[..., Any] = function
        self._floats = None if traced else floats_of(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._floats is None:
            return self.__wrapped__(*args, **kwargs)
        args, kwargs = with_floats(self._floats, args, kwargs)
        return interpreted(self.__wrapped__, args, kwargs)

    @property
    def name(self) -> str:
        return self.__wrapped__.__name__

    @property
    def qualified_name(self) -> str:
        return f"__torch__.{self.__wrapped__.__name__}"

    def __reduce__(self) -> Any:
        refuse("pickling a ScriptFunction")


for _kind in (ScriptModule, RecursiveScriptModule):
    _kind.__module__ = "torch.jit._script"
for _kind in (TracedModule, TopLevelTracedModule):
    _kind.__module__ = "torch.jit._trace"
ScriptFunction.__module__ = "torch.jit"
