"""Utilities: loading data, handles of hooks (``torch.utils``)."""

from importlib import import_module as _import_module
from typing import Any as _Any

from torchshim.utils import _pytree as _pytree
from torchshim.utils import data as data
from torchshim.utils import hooks as hooks

# Submodules that are imported when they are first used.
_LAZY = ("_import_utils", "_mode_utils", "_python_dispatch", "checkpoint")
_LAZY += ("benchmark", "cpp_extension", "deterministic", "dlpack", "flop_counter")


def set_module(obj: _Any, mod: str) -> None:
    """Sets the module that an object says it is of; TypeError for what is no text."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
