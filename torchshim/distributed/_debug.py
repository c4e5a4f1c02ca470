"""How much is checked and told: what `TORCH_DISTRIBUTED_DEBUG` says.

PyTorch's higher levels compare what members call and log it. Here each message says
what it belongs to, on every level; nothing is logged.
"""

from __future__ import annotations

import os
from enum import Enum

__all__ = [
    "DebugLevel",
    "get_debug_level",
    "set_debug_level",
    "set_debug_level_from_env",
]


class DebugLevel(Enum):
    """Levels of checks."""

    OFF = 0
    INFO = 1
    DETAIL = 2

    def __repr__(self) -> str:
        return f"<DebugLevel.{self.name}: {self.value}>"


_level = [DebugLevel.OFF]


def get_debug_level() -> DebugLevel:
    """The level."""
    return _level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Sets the level."""
    _level[0] = level


def set_debug_level_from_env() -> None:
    """Sets the level that the environment tells. ValueError for no level."""
    told = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if told not in DebugLevel.__members__:
        raise ValueError(
            "The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL."
        )
    _level[0] = DebugLevel[told]


set_debug_level_from_env()
