"""Modes that see the functions called in a thread, and what is switched off there.

Who overrides a function, and how that is called, is found in `_overrides`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchshim._core.record import local
from torchshim._core.threads import by_node, keep

ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = range(3)


class _Modes(threading.local):
    """What is in force in one thread."""

    def __init__(self) -> None:
        self.disabled = ENABLED
        self.stack: list[Any] = []
        # Whether the next function called is not overridden (`skip_one`).
        self.skipping = False


state = keep(_Modes())

# Modes in force in any thread: while there are none, few need to ask.
modes: list[Any] = []


class disabled:
    """Within the block, subclasses (and at `ALL_DISABLED` modes) override nothing."""

    __slots__ = ("_before", "_level")

    def __init__(self, level: int) -> None:
        self._level = level

    def __enter__(self) -> None:
        local.rec.about_to_change()
        self._before = state.disabled
        state.disabled = max(self._level, self._before)
        if self._level == ALL_DISABLED:
            _follow_modes()

    def __exit__(self, *error: object) -> None:
        state.disabled = self._before
        if self._level == ALL_DISABLED:
            _follow_modes()


def set_disabled(level: int) -> None:
    """Sets what may override functions in this thread."""
    state.disabled = level
    _follow_modes()


def skip_one(func: Any, args: Any, kwargs: Any) -> Any:
    """Calls a function as if nothing overrode it; those that it calls are as ever."""
    state.skipping = True
    try:
        return func(*args, **kwargs)
    finally:
        state.skipping = False


def skips() -> bool:
    """Whether it is the one function that nothing overrides that is being called."""
    found, state.skipping = state.skipping, False
    return found


def mode_enabled() -> bool:
    """Whether a mode sees the functions called in this thread."""
    return bool(state.stack) and state.disabled != ALL_DISABLED


def _follow_modes() -> None:
    """Sends operators past the hot path while a mode is in force."""
    rec = local.rec
    wanted = mode_enabled()
    if rec.intercepted is not wanted:
        rec.intercepted = wanted
        rec.set_mode()


def push_mode(mode: Any) -> None:
    """Puts a mode on top of this thread's stack."""
    local.rec.about_to_change()
    state.stack.append(mode)
    modes.append(mode)
    _follow_modes()


def pop_mode() -> Any:
    """Takes the top of this thread's stack of modes."""
    if not state.stack:
        raise RuntimeError("trying to pop from empty mode stack")
    local.rec.about_to_change()
    mode = state.stack.pop()
    # Another thread may have pushed the same mode: any one of them may go.
    modes.remove(mode)
    _follow_modes()
    return mode


def _stacked() -> tuple[list[Any], int]:
    return list(state.stack), state.disabled


def _stack_again(values: tuple[list[Any], int]) -> None:
    for mode in state.stack:
        modes.remove(mode)
    state.stack = list(values[0])
    modes.extend(state.stack)
    set_disabled(values[1])
    _follow_modes()


by_node.append((_stacked, _stack_again))


@contextmanager
def mode_popped() -> Iterator[Any]:
    """Takes the top mode away for the block: its handler's own calls are below it."""
    mode = pop_mode()
    try:
        yield mode
    finally:
        push_mode(mode)
