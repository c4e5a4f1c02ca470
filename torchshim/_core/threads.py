"""What belongs to a thread, and work that goes on in a fresh one.

A backward within a backward within a backward ... goes deeper than Python lets one
thread go. PyTorch's engine takes another thread every sixty levels; so is done here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# What a fresh thread takes over: each module that keeps something by thread adds it.
carried: list[threading.local] = []
# What the Python code of one node changes of its thread for itself alone, as PyTorch's
# engine sets it anew for each node: how to read it, and how to set it.
by_node: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []


def in_fresh_thread(work: Callable[[], T]) -> T:
    """What `work` gives (or raises) in a thread that is in the state of this one."""
    state = [(each, dict(vars(each))) for each in carried]
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        for each, values in state:
            vars(each).update(values)
        try:
            found.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="backward")
    thread.start()
    try:
        thread.join()
    finally:
        thread.join()  # an interrupt does not end what goes on there
    if raised:
        raise raised[0]
    return found[0]


def keep(local: Any) -> Any:
    """Has a thread-local object taken over by fresh threads; returns it."""
    carried.append(local)
    return local
