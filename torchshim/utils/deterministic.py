"""What deterministic algorithms entail: `torch.utils.deterministic`."""

from __future__ import annotations

import sys
from types import ModuleType

from torchshim import _settings


class _Settings(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` fills memory under deterministic algorithms.

        With NaN, the largest integer, or True; otherwise it is zero.
        """
        return _settings._Determinism.fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError("fill_uninitialized_memory must be a bool")
        _settings.fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Settings
