"""Scripted modules in files (`torch.jit.save` and `load`).

There is no TorchScript to write. What is saved is the Python module, as `torch.save`
would save it, so that its class has to be imported where it is loaded; PyTorch cannot
read such a file, and files of PyTorch's are refused. A file names classes of modules,
functions and operators that the program has imported, nothing else is called.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from collections.abc import Mapping, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any

import torchshim
from torchshim.jit._module import (
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    wrapped,
)
from torchshim.nn import Module
from torchshim.serialization import get_unsafe_globals_in_checkpoint, safe_globals
from torchshim.serialization._directory import corrupt

_MARK = "torchshim_jit"


class PlaceholderModule(Module):
    """What a function that was saved is loaded as."""

    def __init__(self, function: ScriptFunction) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self.function(*args, **kwargs)


class _Pickler(pickle._Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, RecursiveScriptModule):
            return _scripted, (obj._original,)
        if isinstance(obj, ScriptFunction):
            place = obj.__wrapped__.__module__, obj.__wrapped__.__qualname__
            if _found(*place) not in (obj, obj.__wrapped__):
                raise pickle.PicklingError(
                    f"{place[1]} is not found as {'.'.join(place)}"
                )
            return _function, place
        return NotImplemented


_PICKLE = SimpleNamespace(__name__="pickle", Pickler=_Pickler)


def _scripted(module: Module) -> Module:
    _complete(module)
    return wrapped(module, {})


def _complete(module: Module) -> None:
    """Adds what a `__setstate__` left out: that of quantized convolutions is short."""
    if "_parameters" not in vars(module):
        held = dict(vars(module))
        Module.__init__(module)
        vars(module).update(held)
    for child in module.children():
        _complete(child)


def _found(module: str, name: str) -> Any:
    root, dot, rest = module.partition(".")
    if root == "torch":  # as files name it
        module = "torchshim" + dot + rest
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _function(module: str, name: str) -> ScriptFunction:
    found = _found(module, name)
    if isinstance(found, ScriptFunction):
        return found
    others = sys.stdlib_module_names - {"__main__"} | {"torch", "torchshim"}
    if not isinstance(found, FunctionType) or module.partition(".")[0] in others:
        raise pickle.UnpicklingError(f"there is no function {name} in {module}")
    return ScriptFunction(found)


def saved(made: ScriptModule | ScriptFunction, extra_files: Any = None) -> bytes:
    """The bytes of a file with a scripted module or function.

    NotImplementedError where pickle cannot refer to a class or a function.
    """
    if isinstance(made, ScriptFunction):
        made = RecursiveScriptModule(PlaceholderModule(made))
    file = io.BytesIO()
    try:
        torchshim.save(made, file, pickle_module=_PICKLE)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise NotImplementedError(
            "torch.jit.save: torchshim has no TorchScript and saves Python modules, "
            f"whose classes have to be importable: {error}"
        ) from error
    with zipfile.ZipFile(file, "a") as archive:
        root = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{root}/{_MARK}", b"")
        for name, text in (extra_files or {}).items():
            archive.writestr(f"{root}/extra/{name}", text)
    return file.getvalue()


def loaded(file: Any, map_location: Any, extra_files: Any) -> Module:
    """What was saved; the values of `extra_files` are replaced by the file's bytes."""
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            return loaded(opened, map_location, extra_files)
    data = file.read()
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        # What ends an archive has 22 bytes.
        what = (
            "failed finding central directory"
            if len(data) > 21
            else "not a ZIP archive"
        )
        raise corrupt(f"reading zip archive: {what}") from None
    with archive:
        names = {n.partition("/")[2]: n for n in archive.namelist()}
        if _MARK not in names:
            _refuse(names)
        for name in extra_files or {}:
            if f"extra/{name}" in names:
                extra_files[name] = archive.read(names[f"extra/{name}"])
    with safe_globals(_named(get_unsafe_globals_in_checkpoint(io.BytesIO(data)))):
        return torchshim.load(io.BytesIO(data), map_location=map_location)


def _named(names: Sequence[str]) -> list[Any]:
    """What a file names, if that is there and may be called."""
    found = []
    for name in names:
        module, _, attribute = name.rpartition(".")
        value = _found(module, attribute)
        known = value in (_scripted, _function) or hasattr(value, "__op__")
        known = known or name == "torch.ScriptObject"  # of quantized layers
        if not (known or (isinstance(value, type) and issubclass(value, Module))):
            raise pickle.UnpicklingError(
                f"torch.jit.load: {name} is no module, function or operator that the "
                "program has imported"
            )
        found.append(value)
    return found


def _refuse(names: Mapping[str, str]) -> None:
    if "constants.pkl" not in names:
        what = "locating file constants.pkl: file not found"
        raise corrupt(what)
    raise NotImplementedError(
        "torch.jit.load: torchshim cannot run TorchScript; build the module in Python "
        "and load its state_dict"
    )
