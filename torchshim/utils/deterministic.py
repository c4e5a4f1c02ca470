"""What deterministic algorithms entail: `torch.utils.deterministic`."""

from __future__ import annotations

import sys
from types import ModuleType

from torchshim._core.determinism import determinism


class _Settings(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` fills memory under deterministic algorithms.

        With NaN, the largest integer, or True; otherwise it is zero.
        """
        return determinism.fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError("fill_uninitialized_memory must be a bool")
        determinism.fill = mode


sys.modules[__name__].__class__ = _Settings
