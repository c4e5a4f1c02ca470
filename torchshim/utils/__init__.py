"""Utilities: loading data, handles of hooks (``torch.utils``)."""

from importlib import import_module as _import_module
from typing import Any as _Any

from torchshim.utils import _pytree as _pytree
from torchshim.utils import data as data
from torchshim.utils import hooks as hooks

# Submodules that are imported when they are first used.
_LAZY = ("checkpoint",)


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
