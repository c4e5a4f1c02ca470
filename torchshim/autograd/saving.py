"""Hooks on what is kept for backward: the pair in force in each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        # The message that `disable_saved_tensors_hooks` was given.
        self.disabled: str | None = None


_stack = _Stack()


def current() -> Pair | None:
    """The innermost pair of hooks."""
    return _stack.pairs[-1] if _stack.pairs else None


def push(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
    if _stack.disabled is not None:
        raise RuntimeError(_stack.disabled)
    _stack.pairs.append((pack, unpack))


def pop() -> None:
    if _stack.pairs:
        _stack.pairs.pop()


def disable(message: str | None) -> None:
    if message is not None and _stack.pairs:
        raise RuntimeError(message)
    _stack.disabled = message


def disabled() -> str | None:
    return _stack.disabled
