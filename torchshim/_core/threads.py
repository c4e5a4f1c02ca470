"""What belongs to a thread, work that goes on in a fresh one, and waits for another.

A backward within a backward within a backward ... goes deeper than Python's stack
allows. PyTorch's engine starts another thread every sixty levels; so does `engine`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

# How often other threads get a turn before a wait for one of them is given up.
_TURNS = 100_000

# What a fresh thread takes over: each module that keeps something for a thread adds it.
carried: list[threading.local] = []
# Settings of a thread that the Python code of a node changes for itself alone, as
# PyTorch's engine sets them anew for each node: how to read and how to set each.
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


def turns() -> Iterator[None]:
    """Lets other threads run between two looks at what one of them is about to do.

    Only for steps that take a thread microseconds, such as handing a value over. Ends
    where that has taken impossibly long.
    """
    for _ in range(_TURNS):
        yield
        time.sleep(0)
