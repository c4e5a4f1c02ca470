"""Data pipes: data sets made of steps. Their kinds are loaded when asked for."""

from importlib import import_module as _import_module
from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    if name in ("dataframe", "iter", "map"):
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
