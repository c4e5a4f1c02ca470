"""MIOpen's setting, kept as it was set: `torch.backends.miopen`."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from torchshim.backends import _module

__all__ = ["flags", "set_flags"]


class MiopenModule(_module.Settings):
    """The module's attributes that are settings."""

    immediate = _module.Switch(False, "set_immediate_miopen")


def set_flags(_immediate: bool | None = None) -> tuple[bool]:
    """Changes the setting; what it was before."""
    module: Any = sys.modules[__name__]
    before = (module.immediate,)
    _module.put(__name__, _module.given(immediate=_immediate))
    return before


def flags(immediate: bool = False) -> contextlib.AbstractContextManager[None]:
    """The setting within a block."""
    return _module.temporarily(set_flags, immediate)


_module.turn(__name__, MiopenModule)
