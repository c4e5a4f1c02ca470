"""A value that is computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Thunk(Generic[R]):
    """What a function gives, which is called once and let go of.

    >>> Thunk(lambda: 3).force()
    3
    """

    __slots__ = ("f", "r")

    def __init__(self, f: Callable[[], R]) -> None:
        self.f: Callable[[], R] | None = f
        self.r: Any = None

    def force(self) -> R:
        """The value."""
        if self.f is not None:
            self.r = self.f()
            self.f = None
        return self.r
