"""What programs that use modes import: nothing is dispatched here."""

from collections.abc import Sequence
from typing import Any

from torchshim._C import _DisableTorchDispatch as no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all modes of a list equal the first."""
    return all(mode == modes[0] for mode in modes)
