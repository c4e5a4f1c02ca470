"""The part of a walk that calls Python code, and that repeats what is remembered.

Between two calls of Python code a walk repeats a piece of its jump edge. While it does
its own fields say nothing of where it is; where something is not as it was then, they
are restored from what the jump edge knows, and the walk goes on event by event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.jumps import (
    FUNCTION,
    HOOKS,
    LEAF,
    LEAF_AFTER,
    Jump,
    NotRepeatable,
    Pause,
    carried,
    follow,
)
from torchshim._core.leaves import Leaves
from torchshim._core.state import IDENTITY, INPUT, Recording, State


class Replay(Leaves):
    """Calls of Python code in a walk."""

    __slots__ = ()

    freed: list[tuple[Recording, int]]
    derivatives: set[Any]

    def enqueue(self, recording: Recording, event: State) -> None:
        raise NotImplementedError

    def go_back(
        self, recording: Recording, event: State, wrt: tuple[int, ...], grads: list[Any]
    ) -> None:
        raise NotImplementedError

    def pass_on(self, recording: Recording, event: State, grad: Any) -> None:
        raise NotImplementedError

    def hand_on(
        self,
        recording: Recording,
        event: State,
        wrt: Sequence[int],
        outs: Sequence[Any],
    ) -> None:
        raise NotImplementedError

    def run(self) -> None:
        raise NotImplementedError

    def call_python(
        self,
        code: str,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        grads: Sequence[Any],
    ) -> list[Any]:
        """What Python code makes of gradients, noted for the jump edge."""
        self.finish_whole()
        if self.capture is not None:
            try:
                self.capture.pause(self, code, recording, event, wrt, grads)
            except NotRepeatable:
                self.capture = None
        try:
            found = self._python(code, recording, event, wrt, grads)
        except BaseException:
            self._raised(code)
            raise
        if self.capture is not None:
            try:
                self.capture.resume(self, found)
            except NotRepeatable:
                self.capture = None
        return found

    def _python(
        self,
        code: str,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        grads: Sequence[Any],
    ) -> list[Any]:
        if code == FUNCTION:
            custom = recording.python[event.depth]
            return custom._run_backward(self, recording, event, grads, wrt)
        if code == HOOKS:
            return [recording.hooked[event.slot].run(grads[0])]
        leaf = recording.entered[event.slot]
        hooks = leaf._hooks
        if code == LEAF:
            return list(grads) if hooks is None else [hooks.run(grads[0])]
        if hooks is not None:
            hooks.accumulated(leaf)
        return []

    def _raised(self, code: str) -> None:
        """After an error in a leaf's hooks no other leaf gets a gradient."""
        if code in (LEAF, LEAF_AFTER):
            self.leaf_grads = []

    def go_on(
        self,
        code: str,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        found: list[Any],
    ) -> None:
        """What follows a call of Python code."""
        if code == FUNCTION:
            self.hand_on(recording, event, wrt, found)
        elif code == LEAF:
            leaf = recording.entered[event.slot]
            self.put_hooked(leaf, (recording, event.slot), found[0])
        elif code == HOOKS and event.kind in (INPUT, IDENTITY):
            self.pass_on(recording, event, found[0])
        elif code == HOOKS:
            self.go_back(recording, event, self.wanted(recording, event), found)

    def repeat(
        self, jump: Jump, owners: list[Recording], cotangents: Sequence[Any]
    ) -> list[Any] | None:
        """Goes on from the first piece of a jump edge, which was followed already.

        Gives the gradients asked for; None where the walk had to be walked.
        """
        rec = self.rec
        # The gradients that are somewhere in the walk, by their slots.
        held: dict[Any, Any] = {c._slot: c for c in cotangents}
        results: list[Any] | None = []
        while (pause := jump.pause) is not None:
            # What nobody holds would be lost where the code reads something.
            before, held = held, {}
            for known in pause.values:
                value = before.get(known[0])
                held[known[0]] = rec.at(*known) if value is None else value
            given: list[Any] = []
            for known in pause.given:
                given.append(None if known is None else held[known[0]])
            owner, recording = owners[pause.owner], rec.recording
            try:
                found = self._python(pause.code, owner, pause.event, pause.wrt, given)
            except BaseException:
                self._restore(pause, owners, held)
                self._raised(pause.code)
                raise
            del given, before
            assert pause.next is not None
            after = self._held_after(pause, owners[0], recording, held, found)
            results = None
            if after is not None:
                results = follow(rec, pause.next, owners, after)
            if after is None or results is None:
                self._restore(pause, owners, held)
                self.go_on(pause.code, owner, pause.event, pause.wrt, found)
                self.run()
                return None
            held, jump = after, pause.next
        return results

    def _held_after(
        self,
        pause: Pause,
        first: Recording,
        recording: Recording,
        held: dict[Any, Any],
        found: Sequence[Any],
    ) -> dict[Any, Any] | None:
        """The gradients held after a call of code; None if it did something else.

        `first`: the recording that the walk started in; `recording`: the one before the
        call.
        """
        rec, read = self.rec, pause.read
        if rec.state is not pause.after:
            return None
        if rec.recording is recording:
            if read is not None:
                return None
            for slot, grad in zip(pause.found or (), found, strict=True):
                if slot is None or slot < 0:
                    if held.get(slot) is not grad:
                        return None
                elif grad is None or grad._slot != slot:
                    return None
                else:
                    held[slot] = grad
            return held
        if read is None or first.state is not read.closed:
            return None
        values = [*(held[v[0]] for v in pause.held), *found]
        try:
            known = carried(rec, values)
        except NotRepeatable:
            return None
        if known != read.carried:
            return None
        return {k[0]: v for k, v in zip(known, values, strict=True) if k is not None}

    def _restore(
        self, pause: Pause, owners: Sequence[Recording], held: dict[int, Any]
    ) -> None:
        """Brings the walk to where it calls Python code."""
        self.restrict()
        self.capture = None
        for number, slot, known in pause.waiting:
            self.grads[owners[number], slot] = held[known[0]]
        for number, event in pause.queue:
            self.enqueue(owners[number], event)
        for number, slot, known in pause.reached:
            place = owners[number], slot
            self.leaf_grads.append((place[0].entered[slot], place, held[known[0]]))
        self.results.update((i, held[known[0]]) for i, known in pause.results)
        course = pause.course
        for number, slot in course.arrived[: pause.n_arrived]:
            place = owners[number], slot
            self.arrived[place] = self.arrived.get(place, 0) + 1
        self.count_leaves()
        self.freed += [(owners[n], d) for n, d in course.freed[: pause.n_freed]]
        self.derivatives |= pause.derivatives
