"""Waiting for an array that a program is still computing.

On the CPU, XLA computes on a thread of its own. A thread that sleeps until a short
program ends is woken late, and goes on with cold caches: with a step of 0.2 ms that
doubled the time of the step, Python's part included (`benchmarks/README.md`). So the
reader polls for a moment before it sleeps. It does not yield the processor in between
(`sched_yield`): on a busy machine it might get it back much later.
"""

from __future__ import annotations

import time
from typing import Any

# Seconds. For programs that take longer polling gains nothing, and costs a processor.
MOMENT = 1e-3
# After polling in vain it sleeps at once for the next 1, 3, 7, ... reads.
_MOST_SLEEPS = 255


class Waiter:
    """Waits for arrays, and remembers whether that was worth it."""

    __slots__ = ("sleeps", "vain")

    def __init__(self) -> None:
        # How often to sleep at once, after the last time that polling was in vain; and
        # how often still.
        self.vain = 0
        self.sleeps = 0

    def wait(self, array: Any) -> None:
        """Polls until a JAX array is ready, or a moment has passed.

        No other thread may donate the array meanwhile: jaxlib crashes when asked
        whether a deleted array is ready.
        """
        is_ready = getattr(array, "is_ready", None)
        if is_ready is None or array.is_deleted() or is_ready():
            return
        if getattr(array.device, "platform", None) != "cpu":
            return
        if self.sleeps:
            self.sleeps -= 1
            return
        end = time.perf_counter() + MOMENT
        while not is_ready():
            if time.perf_counter() > end:
                self.vain = min(2 * self.vain + 1, _MOST_SLEEPS)
                self.sleeps = self.vain
                return
        self.vain = 0
