"""Test cases of compiled programs: those of any other, as all are compiled."""

from __future__ import annotations

import importlib
from typing import Any

# The helpers for tests lie above this package.
_HELPERS = "torchshim.testing._internal.common_utils"


def run_tests(needs: str | tuple[str, ...] = ()) -> None:
    """Runs the tests of the main module, unless a module that they need is missing."""
    helpers = importlib.import_module(_HELPERS)
    for need in (needs,) if isinstance(needs, str) else needs:
        if need == "cuda":
            if not helpers.TEST_CUDA:
                return
            continue
        try:
            importlib.import_module(need)
        except ImportError:
            return
    helpers.run_tests()


def __getattr__(name: str) -> Any:
    if name == "TestCase":
        return importlib.import_module(_HELPERS).TestCase
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
