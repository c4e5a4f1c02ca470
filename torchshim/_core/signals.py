"""Signals whose handlers raise: Ctrl-C, and the timeouts of scripts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held_back() -> Generator[None, None, None]:
    """Signals wait for the end of the block. Only the main thread handles any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[Any] = []
    handlers: dict[int, Any] = {}
    try:
        for number, handler in _handlers():
            handlers[number] = handler
            signal.signal(number, lambda *args: caught.append(args))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _handle(caught, handlers)


def _handlers() -> list[tuple[int, Any]]:
    numbers = signal.valid_signals()
    return [(n, f) for n in numbers if callable(f := signal.getsignal(n))]


def _handle(caught: list[Any], handlers: dict[int, Any]) -> None:
    """Calls the handlers of signals that came, the next ones though one raises."""
    try:
        while caught:
            number, frame = caught.pop(0)
            handlers[number](number, frame)
    finally:
        if caught:
            _handle(caught, handlers)


def from_signal(error: BaseException) -> bool:
    """Whether a signal's handler raised an error, as a script's timeout does."""
    codes = {code for _, handler in _handlers() for code in _codes(handler)}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _codes(handler: Any) -> list[Any]:
    """The code of a function, of a method, of a partial's or an object's."""
    inner = getattr(handler, "func", handler)
    called = getattr(type(inner), "__call__")  # noqa: B004, B009 (of the class)
    return [f.__code__ for f in (inner, called) if hasattr(f, "__code__")]
