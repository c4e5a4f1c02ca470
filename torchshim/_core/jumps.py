"""Jump edges: a backward walk remembered, and repeated without walking.

A walk is a function of the path it started from, of what the leaves' `.grad` held, of
the closed recordings it went through, and of what Python code did that it called: hooks
and custom functions. It is remembered in pieces, from one such call to the next. Where
everything is as it was, a piece is repeated by a few assignments.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from torchshim._core.leaf_facts import LeafFacts, has_hooks, leaf_facts
from torchshim._core.meta import Meta
from torchshim._core.record import Recorder
from torchshim._core.state import Recording, State
from torchshim._core.storage import (
    TensorBase,
    accumulate_lock,
    hidden_writes,
    tensor_class,
    value_lock,
)

_new = object.__new__
# What the pauses of one walk may hold: many gradients on their way at each are many.
_WAITING = 20_000

# Python code that a walk calls: hooks of a value, the gradient of a custom function,
# hooks of a leaf before and after a gradient is added to its `.grad`, hooks of a node
# before and after its gradients are computed.
HOOKS, FUNCTION, LEAF, LEAF_AFTER = "hooks", "function", "leaf", "leaf after"
NODE_BEFORE, NODE_AFTER = "node", "node after"

# A value of the running recording: its slot, and its meta. What a read of Python code
# left outside of any recording has a number below -1 in place of the slot.
Value = tuple[int, Meta]

# Runtime scalars that gradients take over: from where, up to where, the recording they
# are of, and what gives them from its scalars.
Copy = tuple[int, int, int, Callable[[Any], Sequence[Any]]]


@dataclass(slots=True, eq=False)
class Jump:
    """One piece of a walk. Recordings are numbered: 0 is the one that it started in."""

    state: State
    # Recordings gone through: (number of the one before, slot there, the state that
    # it was closed at, the slot in it, which of its slots and which nodes have hooks).
    owners: list[tuple[int, int, State, int, frozenset[int], frozenset[int]]]
    # Other ways into these: (number of the one before, slot there, number, slot in it).
    crossings: list[tuple[int, int, int, int]]
    # Values that entered: ("saved", owner, slot), ("grad", position in leaves) or
    # ("held", number, meta), and the slot they took.
    entered: list[tuple[str, int, Any, int]]
    # (owner, slot of the leaf, its kinds of hooks, its shape, what its grad held
    # before, slot and meta of its grad)
    leaves: list[tuple[int, int, int, tuple[int, ...], Any, int, Meta]]
    copied: list[Copy]
    # (owner, slots) of saved values of closed recordings that are used as they were.
    checked: list[tuple[int, tuple[int, ...]]]
    # (owner, depths) of events whose saved values were used up; the last piece lets go
    # of those of all pieces.
    used: list[tuple[int, frozenset[int]]]
    freed: list[tuple[int, frozenset[int]]]
    # Gradients that were asked for; the last piece has them.
    results: list[Value | None]
    # The first result that is the same object, for each.
    same: list[int]
    # The call of Python code that the piece ends with; None: it is the last.
    pause: Pause | None = None
    # Whether it is before such a call, and takes nothing from closed recordings.
    inner: bool = False
    # What else is looked at in the leaves of the whole walk; the first piece has it.
    facts: LeafFacts | None = None


@dataclass(slots=True)
class Course:
    """What all pauses of a walk share."""

    # (owner, slot) of the leaves that gradients arrived at, in this order.
    arrived: list[tuple[int, int]]
    # (owner, depth) of the events whose saved values the walk used up.
    freed: list[tuple[int, int]]


@dataclass(slots=True, eq=False)
class Pause:
    """A call of Python code, and all that it takes to walk on from there."""

    code: str
    owner: int
    event: State
    # The operands that the event's gradients are for.
    wrt: tuple[int, ...]
    # What the code gets.
    given: list[Value | None]
    # (owner, slot, gradient) on their way, and (owner, event) still to be visited.
    waiting: list[tuple[int, int, Value]]
    queue: list[tuple[int, State]]
    # (owner, slot of a leaf, gradient) not put into `.grad` yet; gradients asked for.
    reached: list[tuple[int, int, Value]]
    results: list[tuple[int, Value]]
    # (owner, slot) of leaves that are about to be finished.
    ready: list[tuple[int, int]]
    derivatives: frozenset[Any]
    course: Course
    n_arrived: int
    n_freed: int
    # What the code did: where it left the recording, and what it gave.
    after: State | None = None
    found: list[int | None] | None = None
    read: Read | None = None
    next: Jump | None = None
    # The gradients that the walk holds meanwhile; these, and what the code gets.
    held: list[Value] = field(init=False)
    values: list[Value] = field(init=False)

    def __post_init__(self) -> None:
        self.held = [v for *_, v in (*self.waiting, *self.reached, *self.results)]
        self.values = [v for v in self.given if v is not None] + self.held


@dataclass(slots=True, eq=False)
class Read:
    """What Python code left that read a value: the recording ended there."""

    # Where the recording that the walk started in was closed.
    closed: State
    # What became of the gradients held, and of those that the code gave.
    carried: list[Value | None]


def carried(rec: Recorder, values: Sequence[Any]) -> list[Value | None]:
    """What is known of gradients in the recording that followed on a read."""
    first: dict[int, int] = {}
    found: list[Value | None] = []
    for i, value in enumerate(values):
        if value is None:
            found.append(None)
            continue
        slot = value._slot
        if not rec.owns(slot):
            if slot >= 0 or value._array is None or value._storage is not None:
                raise NotRepeatable
            slot = -2 - first.setdefault(id(value), i)
        found.append((slot, value._meta))
    return found


class NotRepeatable(Exception):
    """Part of a walk is no function of what a jump edge looks at."""


def grad_status(rec: Recorder, leaf: Any) -> Any:
    """What decides how a gradient is put into a leaf; None: there is no grad yet."""
    grad = leaf._grad
    if grad is None:
        return None
    if grad._storage is not None or grad._hooks is not None:
        return "other"
    try:
        slot = grad._slot
    except NotImplementedError:
        return "other"  # it is sparse
    if not rec.owns(slot):
        if grad._array is None:
            return "other"  # pending in another thread's recording
        slot = -1
    return slot, grad._meta


class Capture:
    """A walk in progress, noted piece by piece."""

    def __init__(self, rec: Recorder, start: State) -> None:
        self.rec = rec
        # The recording that the walk started in, and the one that it is in.
        self.recording = self.running = rec.recording
        self.numbers: dict[int, int] = {rec.recording.seq: 0}
        self.course = Course([], [])
        # (leaf, its place, what its grad held before) as gradients are put there.
        self.delivered: list[tuple[Any, tuple[Recording, int], Any]] = []
        # (recording, slots) of saved values whose versions were looked at.
        self.checked: list[tuple[Recording, tuple[int, ...]]] = []
        # (recording, slot) of the leaves that gradients arrived at.
        self.arrived: list[tuple[Recording, int]] = []
        # Those that gradients would have arrived at, had somebody asked for them.
        self.touched: list[tuple[Recording, int]] = []
        # Where the running piece began: in the trie, and in the walk's lists.
        self._start = self._begin = start
        self._via = self._copied = self._freed = self._trace = 0
        self._first: Jump | None = None
        self._pause: Pause | None = None
        self._waiting = 0
        # id -> gradient that a read left outside, and its number.
        self.outside: dict[int, tuple[Any, int]] = {}
        # The leaves that a gradient was for, by their ids.
        self.fed: set[int] = set()
        # Further leaves, which were asked for or might have been.
        self.leaves: list[tuple[Recording, int]] = []
        # How each recording but the first was reached: (number, slot).
        self.ways: list[tuple[int, int]] = []

    def pause(
        self,
        walk: Any,
        code: str,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        grads: Sequence[Any],
    ) -> None:
        """Ends a piece: the walk is about to call Python code with `grads`."""
        of_leaf = code in (LEAF, LEAF_AFTER)
        if walk.finishing != of_leaf or (of_leaf and not walk.between):
            raise NotRepeatable
        jump = self._cut(walk)
        number = self.numbers
        pause = jump.pause = Pause(
            code=code,
            owner=number[recording.seq],
            event=event,
            wrt=wrt,
            given=[None if g is None else self._value(g) for g in grads],
            waiting=[
                (number[p[0].seq], p[1], self._value(g)) for p, g in walk.grads.items()
            ],
            queue=[(number[r.seq], e) for _, _, r, e in walk.heap],
            reached=[
                (number[p[0].seq], p[1], self._value(g)) for _, p, g in walk.leaf_grads
            ],
            results=[(i, self._value(g)) for i, g in walk.results.items()],
            ready=[(number[r.seq], slot) for r, slot in walk.ready],
            derivatives=frozenset(walk.derivatives),
            course=self.course,
            n_arrived=len(self.arrived),
            n_freed=len(walk.freed),
        )
        self._waiting += 1 + len(pause.waiting) + len(pause.queue) + len(pause.reached)
        if self._waiting > _WAITING:
            raise NotRepeatable
        jump.inner = not (
            jump.owners or jump.crossings or jump.entered or jump.leaves or jump.checked
        )
        self._pause = pause

    def resume(self, walk: Any, found: Sequence[Any]) -> None:
        """The next piece begins: Python code gave these gradients."""
        rec, pause = self.rec, self._pause
        if pause is None:
            raise NotRepeatable
        held = [
            *walk.grads.values(),
            *(grad for *_, grad in walk.leaf_grads),
            *walk.results.values(),
        ]
        if rec.recording is not self.running:
            closed = self.recording.state
            if walk.create or closed is None:
                raise NotRepeatable
            values = [*held, *found]
            pause.read = Read(closed, carried(rec, values))
            self.running = rec.recording
            self.outside = {
                id(value): (value, known[0])
                for value, known in zip(values, pause.read.carried, strict=True)
                if known is not None and known[0] < 0
            }
        elif any(v[0] < 0 <= g._slot for v, g in zip(pause.held, held, strict=True)):
            raise NotRepeatable  # the code made it part of the recording
        pause.after = self._begin = rec.state
        pause.found = [None if g is None else self._value(g)[0] for g in found]
        self._trace = len(rec.trace or ())

    def finish(self, walk: Any, key: Any, results: Sequence[Any]) -> None:
        """Keeps the walk, which is over, as a jump edge."""
        jump = self._cut(walk)
        jump.freed = [] if walk.retain else self._depths(walk.freed)
        self.course.freed += [(self.numbers[r.seq], d) for r, d in walk.freed]
        jump.results = [None if r is None else self._value(r) for r in results]
        jump.same = [
            next(k for k, r in enumerate(results) if r is each) for each in results
        ]
        self.course.arrived += [(self.numbers[r.seq], s) for r, s in self.arrived]
        assert self._first is not None
        idle = [p for p in self.arrived if id(p[0].entered[p[1]]) not in self.fed]
        idle += self.touched
        leaves = [*self.arrived, *self.leaves]
        self._first.facts = leaf_facts(self.ways, leaves, idle, self.numbers)
        self._start.remember(key, self._first)

    def _value(self, tensor: Any) -> Value:
        slot = tensor._slot
        if type(tensor) not in (tensor_class[0], TensorBase):
            raise NotRepeatable
        if not self.rec.owns(slot):
            if slot >= 0 or id(tensor) not in self.outside:
                raise NotRepeatable
            slot = self.outside[id(tensor)][1]
        return slot, tensor._meta

    def _depths(
        self, freed: Sequence[tuple[Recording, int]]
    ) -> list[tuple[int, frozenset[int]]]:
        found: dict[int, set[int]] = {}
        for recording, depth in freed:
            found.setdefault(self.numbers[recording.seq], set()).add(depth)
        return [(n, frozenset(depths)) for n, depths in found.items()]

    def _cut(self, walk: Any) -> Jump:
        """The piece since the last cut."""
        rec, numbers = self.rec, self.numbers
        if rec.recording is not self.running:
            raise NotRepeatable
        owners: list[tuple[int, int, State, int, frozenset[int], frozenset[int]]] = []
        via = list(walk.via.items())
        crossings: list[tuple[int, int, int, int]] = []
        for (_, slot), (recording, parent) in via[self._via :]:
            hist = parent.hists[slot]
            if parent.seq not in numbers or hist[0].state is None:
                raise NotRepeatable
            number = numbers.get(recording.seq)
            if number is not None:
                crossings.append((numbers[parent.seq], slot, number, hist[1]))
                continue
            numbers[recording.seq] = len(numbers)
            self.ways.append((numbers[parent.seq], slot))
            hooked = frozenset(hist[0].hooked), frozenset(hist[0].node_hooks)
            owners.append((numbers[parent.seq], slot, hist[0].state, hist[1], *hooked))
        if walk.create and (owners or any(s is not None for *_, s in self.delivered)):
            # Values of closed recordings enter with their history then, and gradients
            # are added to out of place.
            raise NotRepeatable
        jump = Jump(
            state=rec.state,
            owners=owners,
            crossings=crossings,
            entered=[],
            leaves=[],
            copied=_copies(
                (to, numbers[recording.seq], at, n)
                for to, recording, at, n in walk.copied[self._copied :]
            ),
            checked=[(numbers[r.seq], slots) for r, slots in self.checked],
            used=self._depths(walk.freed[self._freed :]),
            freed=[],
            results=[],
            same=[],
        )
        grads: dict[int, int] = {}
        for i, (leaf, place, status) in enumerate(self.delivered):
            grad = leaf._grad
            if (
                status == "other"
                or grad is None
                or not rec.owns(grad._slot)
                or type(grad) is not tensor_class[0]
            ):
                raise NotRepeatable
            grads[id(grad)] = i
            owner = numbers[place[0].seq]
            hooks, shape = has_hooks(leaf), leaf._meta.shape
            after = grad._slot, grad._meta
            jump.leaves.append((owner, place[1], hooks, shape, status, *after))
        slots = [
            event.slot
            for event in _between(self._begin, rec.state)
            if event.n_inputs != (event.parent.n_inputs if event.parent else 0)
        ]
        trace = (rec.trace or [])[self._trace :]
        if len(slots) != len(trace):
            raise NotRepeatable
        for tensor, slot in zip(trace, slots, strict=True):
            taken = walk.taken.get(id(tensor))
            if taken is not None:
                jump.entered.append(("saved", numbers[taken[1].seq], taken[2], slot))
            elif id(tensor) in grads:
                jump.entered.append(("grad", grads[id(tensor)], 0, slot))
            elif id(tensor) in self.outside:
                number = self.outside[id(tensor)][1]
                jump.entered.append(("held", number, tensor._meta, slot))
            else:
                raise NotRepeatable
        self._via, self._copied, self._freed = (
            len(via),
            len(walk.copied),
            len(walk.freed),
        )
        self.delivered, self.checked = [], []
        if self._pause is None:
            self._first = jump
        else:
            self._pause.next = jump
        return jump


def _copies(copied: Iterable[tuple[int, int, int, int]]) -> list[Copy]:
    """Joins what is copied one after another: (to, recording, from, how many)."""
    runs: list[tuple[int, int, list[int]]] = []
    for to, number, at, n in copied:
        if runs and runs[-1][1] == number and runs[-1][0] + len(runs[-1][2]) == to:
            runs[-1][2].extend(range(at, at + n))
        else:
            runs.append((to, number, list(range(at, at + n))))
    return [
        (
            to,
            to + len(source),
            number,
            itemgetter(*source)
            if len(source) > 1
            else itemgetter(slice(source[0], source[0] + 1)),
        )
        for to, number, source in runs
    ]


def _between(start: State, end: State) -> list[State]:
    events: list[State] = []
    state: State | None = end
    while state is not None and state is not start:
        events.append(state)
        state = state.parent
    events.reverse()
    return events


def start(
    rec: Recorder, key: Any, owners: list[Recording], held: dict[Any, Any]
) -> tuple[Jump | None, list[Any]]:
    """Repeats the first piece of a walk that is known here; gives what it gave."""
    for jump in (rec.state.jumps or {}).get(key, ()):
        if jump.facts is not None and not jump.facts.hold(rec.recording):
            continue
        results = follow(rec, jump, owners, held)
        if results is not None:
            return jump, results
    return None, []


def forget(start: State, key: Any, jump: Jump) -> None:
    """Drops a jump edge whose Python code does something else by now."""
    variants = (start.jumps or {}).get(key, [])
    if jump in variants:
        variants.remove(jump)


def follow(
    rec: Recorder, jump: Jump, owners: list[Recording], held: dict[Any, Any]
) -> list[Any] | None:
    """Repeats a piece of a walk; None where something is not as it was then.

    `owners` are the recordings that pieces before went through, and get its own;
    `held` the gradients on their way.
    """
    if jump.inner:
        for number, depths in jump.used:
            if not depths.isdisjoint(owners[number].freed):
                return None
        _copy_scalars(rec, jump, owners)
        rec.state = jump.state
        return []
    with accumulate_lock, value_lock:
        return _follow(rec, jump, owners, held)


def _copy_scalars(rec: Recorder, jump: Jump, owners: Sequence[Recording]) -> None:
    scalars = rec.scalars
    for start, end, number, values in jump.copied:
        owner = owners[number]
        scalars[start:end] = values(scalars if owner.state is None else owner.scalars)


def _follow(
    rec: Recorder, jump: Jump, before: list[Recording], held: dict[Any, Any]
) -> list[Any] | None:
    owners = before
    if jump.owners:
        owners = before[:]
        for number, slot, state, at, hooked, nodes in jump.owners:
            hist = owners[number].hists.get(slot)
            if hist is None or hist[0].state is not state or hist[1] != at:
                return None
            if hist[0].hooked.keys() != hooked or hist[0].node_hooks.keys() != nodes:
                return None
            if hist[0].left:
                return None
            owners.append(hist[0])
    for number, slot, reached, at in jump.crossings:
        hist = owners[number].hists.get(slot)
        if hist is None or hist[0] is not owners[reached] or hist[1] != at:
            return None
    for number, depths in jump.used:
        if not depths.isdisjoint(owners[number].freed):
            return None
    leaves = []
    for number, slot, hooks, shape, status, _, _ in jump.leaves:
        leaf = owners[number].entered[slot]
        meta = leaf._meta
        if has_hooks(leaf) != hooks or meta.shape != shape:
            return None
        if not (meta.requires_grad and meta.leaf):
            return None
        if grad_status(rec, leaf) != status:
            return None
        leaves.append(leaf)
    for number, slots in jump.checked:
        owner = owners[number]
        seldom = hidden_writes[0] != owner.hidden
        for slot in slots:
            saved = owner.versions.get(slot)
            if saved is None:
                continue
            if saved.writes or saved.written():
                return None
            if (seldom or saved.hidden is None) and saved.outdated():
                return None
    pieces: list[tuple[Any, int]] = []
    for kind, number, at, slot in jump.entered:
        if kind == "grad":
            pieces.append((leaves[number]._grad, slot))
        elif kind == "held":
            tensor = held[number]
            if (
                tensor._slot >= 0
                or tensor._array is None
                or tensor._storage is not None
                or tensor._meta is not at
            ):
                return None
            pieces.append((tensor, slot))
        else:
            owner = owners[number]
            tensor = owner.tensors.get(at)
            if tensor is None:
                tensor = _new(TensorBase)
                tensor._slot = -1
                tensor._meta = None  # type: ignore[assignment]
                tensor._array = owner.saved[at]
            elif tensor._slot >= 0:
                return None
            pieces.append((tensor, slot))
    # From here on nothing can fail.
    if owners is not before:
        before[:] = owners
    _copy_scalars(rec, jump, owners)
    if pieces:
        entered = rec.recording.entered
        del rec.inputs[rec.state.n_inputs :]
        rec.inputs += [tensor._array for tensor, _ in pieces]
        rec.state = jump.state
        # An interrupt may come anywhere: no slot is given before the flush would take
        # it.
        for tensor, slot in pieces:
            entered[slot] = tensor
            tensor._slot = slot
        for kind, number, _, slot in jump.entered:
            if kind == "held":
                held[slot] = held[number]
    else:
        rec.state = jump.state
    live, cls = rec.live, tensor_class[0]
    for leaf, (*_, status, slot, meta) in zip(leaves, jump.leaves, strict=True):
        grad = leaf._grad
        if status is None:
            grad = _new(cls)
            grad._meta = meta
        else:
            grad._versions += 1
        live.append(weakref.ref(grad))
        grad._slot = slot
        grad._array = None
        if status is None:
            leaf._grad = grad
    for number, depths in jump.freed:
        owners[number].freed |= depths
        if owners[number].state is not None:
            release(owners[number])
    found = [
        None if r is None else held[r[0]] if r[0] in held else rec.at(*r)
        for r in jump.results
    ]
    return [found[k] for k in jump.same]


def release(recording: Recording) -> None:
    """Lets go of a closed recording's values once its graph is freed."""
    assert recording.state is not None
    needed = recording.savers
    for slot in [s for s in recording.saved if needed[s] <= recording.freed]:
        del recording.saved[slot]
        recording.tensors.pop(slot, None)
        recording.versions.pop(slot, None)
