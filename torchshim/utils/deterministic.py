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
            kind = type(mode).__name__
            raise RuntimeError(f"expected a bool, but got {kind}")
        determinism.fill = mode


def _fills() -> bool:
    return determinism.fill


def _set_fills(mode: bool) -> None:
    sys.modules[__name__].fill_uninitialized_memory = mode  # type: ignore[attr-defined]


sys.modules[__name__].__class__ = _Settings
