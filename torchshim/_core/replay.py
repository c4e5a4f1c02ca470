"""The part of a walk that calls Python code, and that walks on where repeating ends.

Between two calls of Python code a walk repeats a piece of its jump edge (`engine`).
Meanwhile its own fields do not say where it is. If something is not as it was then,
they are restored from the jump edge, and the walk goes on event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.graph import Place
from torchshim._core.jumps import (
    FUNCTION,
    HOOKS,
    LEAF,
    LEAF_AFTER,
    MOVE,
    NODE_AFTER,
    NODE_BEFORE,
    NotRepeatable,
    Pause,
    carried,
)
from torchshim._core.leaves import Leaves
from torchshim._core.naming import flows_of, outputs_of
from torchshim._core.state import IDENTITY, INPUT, MARK, Recording, State, UsedUp

# What `_functions` provides: a tensor on another device.
moved: list[Callable[[Any, Any], Any]] = []


class Replay(Leaves):
    """Calls of Python code in a walk."""

    __slots__ = ()

    freed: list[tuple[Recording, UsedUp]]
    derivatives: set[Any]
    nothing: set[Place]
    # The last state that `writes` is of.
    frozen: State | None
    writes: Any

    def enqueue(self, recording: Recording, event: State) -> None:
        raise NotImplementedError

    def go_back(
        self, recording: Recording, event: State, wrt: tuple[int, ...], grads: list[Any]
    ) -> None:
        raise NotImplementedError

    def go_through(
        self,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        grads: list[Any],
        hooked: bool,
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
        grads: Sequence[Any],
    ) -> None:
        raise NotImplementedError

    def run(self) -> None:
        raise NotImplementedError

    def remember(self, key: Any, results: Sequence[Any]) -> None:
        """Keeps the walk as a jump edge, unless part of it cannot be repeated."""
        if self.capture is not None:
            try:
                self.capture.finish(self, key, results)
            except NotRepeatable:
                pass

    def call_python(
        self,
        code: str,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        grads: Sequence[Any],
    ) -> list[Any]:
        """What Python code makes of gradients; a new piece of the jump edge begins."""
        self.finish_whole()
        if self.rec.unstored:  # the code may look at a `.grad` in NumPy's memory
            self.capture = None
            self.rec.store_shared()
        if self.capture is not None:
            try:
                self.capture.pause(self, code, recording, event, wrt, grads)
            except NotRepeatable:
                self.capture = None
        try:
            place = recording, event.slot
            found = self.calling(
                place, self.run_python, code, recording, event, wrt, grads
            )
        except BaseException:
            self._raised(code)
            raise
        if self.capture is not None:
            try:
                self.capture.resume(self, found)
            except NotRepeatable:
                self.capture = None
        return found

    def look_for_writes(self, before: State) -> None:
        """Looks whether Python code has written to something since `before`."""
        state = self.rec.state
        while state is not before and state.parent is not None:
            if state.write is not None or state.kind == MARK or state.mutated():
                self._look_again()
                return
            state = state.parent

    def _look_again(self) -> None:
        """Has the walk know the running recording as it is now."""
        self.frozen, self.writes = self.rec.state, None
        self.tables.pop(self.rec.recording.seq, None)

    def run_python(
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
        if code == MOVE:
            return [moved[0](grads[0], event.given[0].device)]
        if code == NODE_BEFORE:
            return _pre_hooks(recording, event, grads)
        if code == NODE_AFTER:
            return _post_hooks(recording, event, wrt, grads)
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
            self.leaf_grads, self.ready = [], []

    def go_on(
        self,
        code: str,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        given: list[Any],
        found: list[Any],
    ) -> None:
        """What follows a call of Python code, that got `given` and gave `found`."""
        if code in (FUNCTION, MOVE):
            hooked = event.depth in recording.node_hooks
            self.go_out(recording, event, wrt, given, found, hooked)
        elif code == NODE_BEFORE:
            self.go_through(recording, event, wrt, found, True)
        elif code == NODE_AFTER:
            self.hand_on(recording, event, wrt, found, given[len(wrt) :])
        elif code == LEAF:
            leaf = recording.entered[event.slot]
            self.finishing = True  # leaves that are ready come after this one
            try:
                self.put_hooked(leaf, (recording, event.slot), found[0])
            finally:
                self.finishing = False
        elif code == HOOKS and event.kind in (INPUT, IDENTITY):
            self.pass_on(recording, event, found[0])
        elif code == HOOKS:
            self.go_back(recording, event, self.wanted(recording, event), found)

    def go_out(
        self,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        grads: Sequence[Any],
        outs: Sequence[Any],
        hooked: bool,
    ) -> None:
        """As `go_through`, once the gradients of the operands are there."""
        if hooked:
            given = [*outs, *grads]
            outs = self.call_python(NODE_AFTER, recording, event, wrt, given)
        self.hand_on(recording, event, wrt, outs, grads)

    def held_after_read(
        self,
        pause: Pause,
        first: Recording,
        held: dict[Any, Any],
        found: Sequence[Any],
    ) -> dict[Any, Any] | None:
        """The gradients held after code that read something, and those that it gave.

        None if it did not do so then, or gave something else. `first`: the recording
        that the walk started in.
        """
        read = pause.read
        if read is None or first.ended is not read.ended:
            return None
        if self.rec.state is not pause.after:
            return None
        values = [*(held[v[0]] for v in pause.held), *found]
        try:
            known = carried(self.rec, values)
        except NotRepeatable:
            return None
        if known != read.carried:
            return None
        return {k[0]: v for k, v in zip(known, values, strict=True) if k is not None}

    def raised_at(
        self, pause: Pause, owners: Sequence[Recording], held: dict[Any, Any]
    ) -> None:
        """The Python code of a repeated walk raised: brings the walk to where it is."""
        self._restore(pause, owners, held)
        self._raised(pause.code)

    def go_on_from(
        self,
        pause: Pause,
        owners: Sequence[Recording],
        held: dict[Any, Any],
        given: list[Any],
        found: list[Any],
    ) -> None:
        """Goes on event by event after Python code that did something else."""
        self._restore(pause, owners, held)
        owner, event = owners[pause.owner], pause.event
        self.go_on(pause.code, owner, event, pause.wrt, given, found)
        self.run()

    def _restore(
        self, pause: Pause, owners: Sequence[Recording], held: dict[int, Any]
    ) -> None:
        """Brings the walk to where it calls Python code."""
        self.restrict()
        self.capture = None
        if self.rec.recording is owners[0]:
            self._look_again()
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
        self.ready = [(owners[number], slot) for number, slot in pause.ready]
        self.freed += [(owners[n], d) for n, d in course.freed[: pause.n_freed]]
        self.derivatives |= pause.derivatives
        self.nothing |= {(owners[number], slot) for number, slot in pause.nothing}


def _pre_hooks(recording: Recording, event: State, grads: Sequence[Any]) -> list[Any]:
    """What the pre-hooks of a node make of the gradients of its results."""
    custom = recording.python.get(event.depth)
    known = outputs_of(event)
    shown = [grads[k] for k in known] if custom is None else custom._spread(grads)
    for hook in list(recording.node_hooks[event.depth][0].values()):
        replaced = hook(tuple(shown))
        if replaced is not None:
            shown = replaced
    if custom is not None:
        return custom._gathered(shown)
    found = dict(zip(known, shown, strict=True))
    return [found.get(k) for k in range(len(grads))]


def _post_hooks(
    recording: Recording, event: State, wrt: tuple[int, ...], grads: Sequence[Any]
) -> list[Any]:
    """What the hooks of a node make of the gradients of its operands `wrt`.

    `grads`: these, and those of its results.
    """
    outs, arrived = grads[: len(wrt)], grads[len(wrt) :]
    given: dict[int | None, Any] = {}
    custom = recording.python.get(event.depth)
    if custom is None:
        shown = [arrived[k] for k in outputs_of(event)]
    else:
        # PyTorch shows what the user's code gave, needed or not.
        given.update(enumerate(custom._returned))
        custom._returned = ()
        shown = custom._spread(arrived)
    given.update(zip(wrt, outs, strict=True))
    flows = flows_of(event)
    inputs = tuple(given.get(i) for i in flows)
    for hook in list(recording.node_hooks[event.depth][1].values()):
        replaced = hook(inputs, tuple(shown))
        if replaced is not None:
            inputs = tuple(replaced)
    found = dict(zip(flows, inputs, strict=True))
    return [found[i] for i in wrt]
