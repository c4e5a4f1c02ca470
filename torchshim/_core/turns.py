"""Where a long recording is cut: where a turn of the script's loop begins.

A recording that grows long is flushed. Were it cut just anywhere, each piece of a long
loop (a thousand steps of sampling) would begin at another place of the loop's body, and
be another program: up to as many as a turn has events. So it goes on for a while, to
where a turn begins, after which all pieces are alike. What begins a turn is seen in the
script's frames: from one operator to the next, one of them has gone back, or makes
again the call that it had made.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any
from weakref import WeakSet

from torchshim._core.handlers import is_own
from torchshim._core.state import State

# Beginnings of turns that are remembered.
_HEADS = 64

# For each frame of the script, the outermost first: which it is, and where.
Stack = list[tuple[int, CodeType, int]]
# How far in; whether it is a call made again; the instruction; the code.
Head = tuple[int, bool, int, CodeType]


class Turns:
    """What one recorder knows of the script's loops."""

    __slots__ = ("_best", "_cuts", "_flush", "_heads", "_stack")

    def __init__(self) -> None:
        self._heads: set[tuple[bool, int, CodeType]] = set()
        # Where recordings were cut: what was recorded before is looked up, not seen.
        self._cuts: WeakSet[State] = WeakSet()
        self._flush = -1
        self._stack: Stack = []
        self._best: Head | None = None

    def is_cut(self, state: State, flush: int, last: bool) -> bool:
        """Whether a recording that has grown long is cut before the next operator.

        `flush`: the number of flushes so far. `last`: whether it has to be; the
        outermost beginning that was seen in it is where the following ones are cut.
        """
        if state in self._cuts:
            return True
        before, self._stack = self._stack, stack()
        if flush != self._flush:
            self._flush, self._best = flush, None
        else:
            head = beginning(before, self._stack)
            if head is not None and head[1:] in self._heads:
                self._cuts.add(state)
                return True
            if head is not None and (self._best is None or head[:3] < self._best[:3]):
                self._best = head
        if last:
            self._cuts.add(state)
            if self._best is not None:
                if len(self._heads) >= _HEADS:
                    self._heads.clear()
                self._heads.add(self._best[1:])
        return last


def stack() -> Stack:
    """The script's frames, and where each of them is."""
    found: Stack = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not is_own(frame):
            found.append((id(frame), frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found[::-1]


def beginning(before: Stack, after: Stack) -> Head | None:
    """The turn that begins between two operators, if one does."""
    above: tuple[int, CodeType, int] | None = None
    for level, (old, new) in enumerate(zip(before, after, strict=False)):
        if old[:2] != new[:2]:
            break
        if old[2] != new[2]:
            back = new[2] < old[2]
            return (level, False, new[2], new[1]) if back else None
        above = new
    else:
        if len(before) != len(after):
            return None
        level = len(after)
    return None if above is None else (level - 1, True, above[2], above[1])
