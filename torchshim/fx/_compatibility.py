"""What PyTorch's modules mark their public functions with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

# What was marked: as kept, and at all.
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Marks a function as one whose signature is kept, or may change: the function."""

    def mark(fn: _T) -> _T:
        # The names that programs look up beside the mark itself.
        fn.__backwards_compatible__ = is_backward_compatible  # type: ignore[attr-defined]
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        return fn

    return mark
