"""Optional packages that programs may use with PyTorch."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def import_dill() -> Any:
    """The package `dill`, or None where it is not installed."""
    if importlib.util.find_spec("dill") is None:
        return None
    return importlib.import_module("dill")


def dill_available() -> bool:
    """Whether the package `dill` is installed."""
    return importlib.util.find_spec("dill") is not None
