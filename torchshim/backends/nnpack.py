"""NNPACK, which is not used: `torch.backends.nnpack`."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from torchshim.backends import _module

__all__ = ["flags", "is_available", "set_flags"]


def is_available() -> bool:
    """Whether PyTorch was built with NNPACK: no."""
    return False


class NnpackModule(_module.Settings):
    """The module's attributes that are settings."""

    enabled = _module.Switch(True, "set_enabled_NNPACK")


def set_flags(_enabled: bool) -> tuple[bool]:
    """Changes the setting; what it was before."""
    module: Any = sys.modules[__name__]
    before = (module.enabled,)
    _module.put(__name__, {"enabled": _enabled})
    return before


def flags(enabled: bool = False) -> contextlib.AbstractContextManager[None]:
    """The setting within a block."""
    return _module.temporarily(set_flags, enabled)


_module.turn(__name__, NnpackModule)
