"""How `einsum` of many operands finds its order: `torch.backends.opt_einsum`.

JAX looks for the order with opt_einsum, which it depends on.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from types import ModuleType
from typing import Any

from torchshim.backends import _module

__all__ = ["flags", "get_opt_einsum", "is_available", "set_flags"]


def get_opt_einsum() -> Any:
    """The package opt_einsum, or None."""
    try:
        return importlib.import_module("opt_einsum")
    except ModuleNotFoundError:
        return None


def is_available() -> bool:
    """Whether opt_einsum is there."""
    return get_opt_einsum() is not None


class OptEinsumModule(ModuleType):
    """The module's attributes that are settings; neither changes what is computed."""

    enabled: bool = True
    strategy: str | None = "auto"


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> Any:
    """Changes the settings; what they were before."""
    module: Any = sys.modules[__name__]
    before = module.enabled, module.strategy if module.enabled else None
    if _enabled is not None:
        module.enabled = _enabled
    if _strategy is not None:
        if _strategy not in ("auto", "greedy", "optimal"):
            raise ValueError(
                "`strategy` must be one of the following: [auto, greedy, optimal] but "
                f"is {_strategy}"
            )
        module.strategy = _strategy
    return before


def flags(
    enabled: bool | None = None, strategy: str | None = None
) -> contextlib.AbstractContextManager[None]:
    """The settings within a block."""
    return _module.temporarily(set_flags, enabled, strategy)


_module.turn(__name__, OptEinsumModule)
