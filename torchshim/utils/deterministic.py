"""What deterministic algorithms entail: `torch.utils.deterministic`.

New memory is always filled here, so that the setting changes nothing.
"""

from __future__ import annotations

import sys
from types import ModuleType


class _Settings(ModuleType):
    _fill = True

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` fills memory under deterministic algorithms."""
        return self._fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError("fill_uninitialized_memory must be a bool")
        self._fill = mode


sys.modules[__name__].__class__ = _Settings
