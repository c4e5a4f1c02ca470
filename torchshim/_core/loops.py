"""The script's loops: where a recording is cut though nobody reads a value.

What a script sets up before its outermost loop is a program of its own. If it were part
of the first iteration's, that would be another program than those of the others, and
with a large model XLA's work would be done twice.

A recording that grows long is flushed, too. If it were cut at an arbitrary event, each
piece of a long loop (a thousand steps of sampling) would begin at another place of the
loop's body, and be another program: up to as many as an iteration has events. So it
goes on to where the next iteration begins, after which all pieces are alike. The
script's frames show where that is: from one operator to the next, one of them has
jumped back, or makes the same call again.

What is done to a batch before gradients begin (random flips, a box cut out) is a
recording of its own where it varies. Otherwise the step would be another program each
time.

A step that updates parameters by hand ends where the loop around its backward goes on.
Otherwise the next batch, which may be of another size, would be part of it.
"""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torchshim._core.callers import INLINE, caller, is_own, own_modules
from torchshim._core.state import State

# How many beginnings of iterations, and lines where gradients begin, are remembered.
_HEADS = 64
# With more kinds of preparation before a line, further ones are expected. Two have
# other reasons: the first batch and all others, or batches of two sizes.
_PREPARATIONS = 2
# One that was met so often is recorded together with what follows: recording that once
# more costs what so many recordings of its own did.
_COMING_AGAIN = 64

# For each frame of the script, the outermost first: which it is, and where.
Stack = list[tuple[int, CodeType, int]]
# How far in; whether it is a call made again; the instruction; the code.
Head = tuple[int, bool, int, CodeType]
# A loop: the code, the first instruction of what is repeated.
Loop = tuple[CodeType, int]


class ScriptLoops:
    """What one recorder knows of the script's loops."""

    __slots__ = (
        "_best",
        "_cuts",
        "_flush",
        "_heads",
        "_last",
        "_prepared",
        "_stack",
        "_walk",
    )

    def __init__(self) -> None:
        self._heads: set[tuple[bool, int, CodeType]] = set()
        # Where recordings were cut. For known events frames are not looked at.
        self._cuts: WeakSet[State] = WeakSet()
        self._flush = -1
        self._stack: Stack = []
        self._best: Head | None = None
        # In which recording (flushes before it) and loop the last new event was.
        self._last: tuple[int, Loop | None] = -1, None
        # Line where gradients begin -> how often recordings had reached a state there.
        self._prepared: dict[Any, WeakKeyDictionary[State, int]] = {}
        # In which recording the last new backward was, and where.
        self._walk: tuple[int, Stack] = -1, []

    @property
    def in_loop(self) -> bool:
        """Whether the last new event was in a loop."""
        return self._last[1] is not None

    def enters_loop(self, flush: int) -> bool:
        """Whether the script has come to a loop since the last new event.

        `flush`: the number of the recording, which both have to be in. Only outermost
        loops count: what is recorded before them is not repeated with them.
        """
        loop = outermost_loop()
        before, self._last = self._last, (flush, loop)
        return loop is not None and before[0] == flush and before[1] != loop

    def note_walk(self, flush: int) -> None:
        """Notes where a backward is that was not recorded before."""
        self._walk = flush, stack()

    def repeats(self, flush: int) -> bool:
        """Whether the loop around this recording's backward has begun again since."""
        before, where = self._walk
        return before == flush and beginning(where, stack()) is not None

    def cut_at(self, state: State) -> None:
        """From now on recordings are cut after this event."""
        self._cuts.add(state)

    def was_cut(self, state: State) -> bool:
        """Whether recordings are cut after this event."""
        return state in self._cuts

    def varies_before(self, state: State) -> bool:
        """Whether what was recorded before this line keeps varying.

        Not if this very preparation comes again and again: then all of the recording
        is known but the first time.
        """
        line = caller()
        if line not in self._prepared and len(self._prepared) >= _HEADS:
            self._prepared.clear()
        known = self._prepared.setdefault(line, WeakKeyDictionary())
        known[state] = times = known.get(state, 0) + 1
        return len(known) > _PREPARATIONS and times <= _COMING_AGAIN

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


def outermost_loop() -> Loop | None:
    """The first of the script's loops that runs now, but within calls of this package.

    A module's `forward` may loop over layers; comprehensions do not count either.
    """
    frames: list[Any] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        if own_modules[frame.f_globals.get("__name__", "")]:
            frames.clear()
        else:
            frames.append(frame)
            if frame.f_code.co_name == "<module>":
                if frame.f_globals.get("__name__") == "__main__":
                    break
        frame = frame.f_back
    else:
        return None
    for frame in reversed(frames):
        code, at = frame.f_code, frame.f_lasti
        if code.co_name not in INLINE:
            for first, last in _loops(code):
                if first <= at <= last:
                    return code, first
    return None


@functools.lru_cache(256)
def _loops(code: CodeType) -> list[tuple[int, int]]:
    """The first and the last instruction of each loop, the outer ones first."""
    found: dict[int, int] = {}
    before: dict[int, str] = {}
    previous = ""
    for instruction in dis.get_instructions(code):
        before[instruction.offset], previous = previous, instruction.opname
        if (
            instruction.opcode in dis.hasjrel
            and instruction.argval < instruction.offset
        ):
            found[instruction.argval] = instruction.offset
    # From Python 3.12 on comprehensions are part of the code: a list is made first, and
    # swapped with the iterator.
    inline = [(a, b) for a, b in found.items() if before[a] == "SWAP"]
    return sorted(
        (first, last)
        for first, last in found.items()
        if not any(a <= first and last <= b for a, b in inline)
    )


def beginning(before: Stack, after: Stack) -> Head | None:
    """The iteration that begins between two operators, if one does."""
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
