"""Marks for Intel's profilers (``torch.profiler.itt``), as in a PyTorch without ITT."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def _refused(*given: Any) -> NoReturn:
    raise RuntimeError(
        "ITT functions not installed. Are you sure you have a ITT build?"
    )


def is_available() -> bool:
    """Whether marks can be made: never."""
    return False


def range_push(msg: str) -> NoReturn:
    """Refused, RuntimeError."""
    _refused(msg)


def range_pop() -> NoReturn:
    """Refused, RuntimeError."""
    _refused()


def mark(msg: str) -> NoReturn:
    """Refused, RuntimeError."""
    _refused(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Refused on entering it, RuntimeError."""
    range_push(msg.format(*args, **kwargs))
    yield
