"""Jump edges: a backward walk remembered, and repeated without walking.

A walk is a function of the path it started from, of what the leaves' `.grad` held, of
the closed recordings it went through, and of what Python code did that it called: hooks
and custom functions. It is remembered in pieces, from one such call to the next. Where
everything is as it was, a piece is repeated by a few assignments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from torchshim._core.leaf_facts import LeafFacts, hook_kinds, leaf_facts
from torchshim._core.meta import Meta
from torchshim._core.record import Recorder
from torchshim._core.state import Recording, State, UsedUp
from torchshim._core.storage import TensorBase, tensor_class

# How many gradients and events the pauses of one walk may hold together. A walk with
# more is not remembered.
_WAITING_BOUND = 20_000

# Kinds of Python code that a walk calls.
HOOKS = "hooks"  # of a value
FUNCTION = "function"  # the backward of a custom function
LEAF, LEAF_AFTER = "leaf", "leaf after"  # hooks before and after `.grad` is added to
NODE_BEFORE, NODE_AFTER = "node", "node after"  # pre-hooks and hooks of a node
MOVE = "move"  # to the device of an operand

# In what follows recordings are numbered in the order in which a walk met them
# ("owner"); 0 is the one that it started in.

# A value of the running recording: its slot, and its meta. Where Python code has read
# something, a gradient may be left outside of any recording: then it has a number below
# -1 in place of the slot.
Value = tuple[int, Meta]

# A recording gone through: (owner before it, slot there, the state that it was closed
# at, slot in it, which of its slots have hooks, which of its nodes have).
Owner = tuple[int, int, State, int, frozenset[int], frozenset[int]]

# A leaf that got a sparse gradient and had no `.grad`: (owner, slot of the leaf, its
# kinds of hooks, its meta, the tensors that the gradient is made of, what makes it).
SparseLeaf = tuple[int, int, int, Meta, list[Value], Callable[[Sequence[Any]], Any]]

# Runtime scalars that gradients take over: (first place, end, owner that they are of,
# what gives them from that recording's scalars).
Copy = tuple[int, int, int, Callable[[Any], Sequence[Any]]]


@dataclass(slots=True, eq=False)
class Jump:
    """One piece of a walk."""

    # Where it leaves the running recording.
    state: State
    # Recordings that this piece is the first to go through.
    owners: list[Owner]
    # Other ways into recordings: (owner before, slot there, owner, slot in it).
    crossings: list[tuple[int, int, int, int]]
    # Values that entered: ("saved", owner, slot), ("grad", position in leaves) or
    # ("held", number, meta), and the slot they took.
    entered: list[tuple[str, int, Any, int]]
    # Gradients put into leaves: (owner, slot of the leaf, its kinds of hooks, its meta,
    # what its `.grad` held before (`grad_status`), slot and meta of its `.grad` now).
    leaves: list[tuple[int, int, int, Meta, Any, int, Meta]]
    copied: list[Copy]
    # (owner, slots, whether counted writes matter) of saved values of closed recordings
    # that are used as they were.
    checked: list[tuple[int, tuple[int, ...], bool]]
    # (owner, depths) of events whose saved values were used up; the last piece lets go
    # of those of all pieces.
    used: list[tuple[int, frozenset[UsedUp]]]
    freed: list[tuple[int, frozenset[UsedUp]]]
    # (owner, slot, kinds of hooks) of leaves that the piece looked at, but put no
    # gradient into.
    idle: list[tuple[int, int, int]]
    # Gradients that were asked for; the last piece has them.
    results: list[Value | None]
    # For each result, the number of the first one that is the same object.
    same: list[int]
    # The call of Python code that the piece ends with; None: it is the last.
    pause: Pause | None = None
    # Whether it ends with such a call and does nothing but record: it takes nothing
    # from closed recordings and puts nothing into leaves.
    inner: bool = False
    # Whether a `.grad` that is added to enters from outside of the recording.
    adds: bool = False
    # Which leaves of the whole walk are the same tensor; the first piece has it.
    facts: LeafFacts | None = None
    sparse: list[SparseLeaf] = field(default_factory=list)


@dataclass(slots=True)
class Course:
    """What the pauses of a walk share: each has had a beginning of these lists."""

    # (owner, slot) of the leaves that gradients arrived at, in this order.
    arrived: list[tuple[int, int]]
    # (owner, depth) of the events whose saved values the walk used up.
    freed: list[tuple[int, UsedUp]]


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
    # (owner, slot) of results of gradients' events along whose edge nothing came.
    nothing: list[tuple[int, int]]
    course: Course
    n_arrived: int
    n_freed: int
    # What the code did: where it left the recording, and what it gave.
    after: State | None = None
    found: list[int | None] | None = None
    gave: int | None = None  # the one in `found`
    read: Read | None = None
    next: Jump | None = None
    # The gradients that the walk holds meanwhile; these, and what the code gets.
    held: list[Value] = field(init=False)
    values: list[Value] = field(init=False)
    # What it gets and what the walk holds, where that is one gradient.
    single: Value | None = field(init=False)

    def __post_init__(self) -> None:
        self.held = [v for *_, v in (*self.waiting, *self.reached, *self.results)]
        self.values = [v for v in self.given if v is not None] + self.held
        alone = len(self.values) == 1 and self.given == self.values
        self.single = self.values[0] if alone else None


@dataclass(slots=True, eq=False)
class Read:
    """What Python code left that read a value: the recording ended there."""

    # Where the recording that the walk started in ended.
    ended: State
    # What became of the gradients held, and of those that the code gave.
    carried: list[Value | None]


def carried(rec: Recorder, values: Sequence[Any]) -> list[Value | None]:
    """What became of gradients in the recording that begins after a read."""
    first: dict[int, int] = {}
    found: list[Value | None] = []
    for i, value in enumerate(values):
        if value is None:
            found.append(None)
            continue
        if value._composed:
            raise NotRepeatable
        slot = value._slot
        if not rec.owns(slot):
            if slot >= 0 or value._array is None or value._storage is not None:
                raise NotRepeatable
            slot = -2 - first.setdefault(id(value), i)
        found.append((slot, value._tmeta))
    return found


class NotRepeatable(Exception):
    """Part of a walk depends on more than a jump edge compares."""


def grad_status(rec: Recorder, grad: Any) -> Any:
    """What decides how a gradient is added to a leaf's `.grad`; None: it has none."""
    if grad is None:
        return None
    if grad._composed or grad._storage is not None or grad._hooks is not None:
        return "other"
    slot = grad._slot
    if not rec.owns(slot):
        if grad._array is None:
            return "other"  # pending in another thread's recording
        slot = -1
    return slot, grad._tmeta


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
        self.checked: list[tuple[Recording, tuple[int, ...], bool]] = []
        # (recording, slot) of the leaves that gradients arrived at.
        self.arrived: list[tuple[Recording, int]] = []
        # (recording, slot, kinds of hooks) of leaves looked at in the running piece.
        self.seen: list[tuple[Recording, int, int]] = []
        # Where the running piece began: in the trie, and in the walk's lists.
        self._start = self._begin = start
        self._via = self._copied = self._freed = self._trace = 0
        self._first: Jump | None = None
        self._pause: Pause | None = None
        self._waiting = 0
        # id -> gradient that a read left outside, and its number.
        self.outside: dict[int, tuple[Any, int]] = {}
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
            nothing=[(number[r.seq], slot) for r, slot in walk.nothing],
            course=self.course,
            n_arrived=len(self.arrived),
            n_freed=len(walk.freed),
        )
        self._waiting += 1 + len(pause.waiting) + len(pause.queue) + len(pause.reached)
        if self._waiting > _WAITING_BOUND:
            raise NotRepeatable
        jump.inner = not (
            jump.owners
            or jump.crossings
            or jump.entered
            or jump.leaves
            or jump.sparse
            or jump.checked
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
            ended = self.recording.ended
            if walk.create or ended is None:
                raise NotRepeatable
            values = [*held, *found]
            pause.read = Read(ended, carried(rec, values))
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
        pause.gave = pause.found[0] if len(found) == 1 else None
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
        leaves = [*self.arrived, *self.leaves]
        self._first.facts = leaf_facts(self.ways, leaves, self.numbers)
        self._start.remember(key, self._first)

    def _value(self, tensor: Any) -> Value:
        if type(tensor) not in (tensor_class[0], TensorBase):
            raise NotRepeatable
        slot = tensor._slot
        if not self.rec.owns(slot):
            if slot >= 0 or id(tensor) not in self.outside:
                raise NotRepeatable
            slot = self.outside[id(tensor)][1]
        return slot, tensor._tmeta

    def _depths(
        self, freed: Sequence[tuple[Recording, UsedUp]]
    ) -> list[tuple[int, frozenset[UsedUp]]]:
        found: dict[int, set[UsedUp]] = {}
        for recording, depth in freed:
            found.setdefault(self.numbers[recording.seq], set()).add(depth)
        return [(n, frozenset(depths)) for n, depths in found.items()]

    def _cut(self, walk: Any) -> Jump:
        """The piece since the last cut."""
        rec, numbers = self.rec, self.numbers
        if rec.recording is not self.running:
            raise NotRepeatable
        owners, crossings = self._note_gone_through(walk)
        if walk.create and (owners or any(s is not None for *_, s in self.delivered)):
            # Values of closed recordings enter with their history then, and gradients
            # are added to out of place.
            raise NotRepeatable
        if any(r.seq not in numbers for r, *_ in self.checked):
            raise NotRepeatable
        copied = walk.copied[self._copied :]
        if sum(n for *_, n in copied) < rec.state.n_scalars - self._begin.n_scalars:
            # A number of the walk's own became a runtime scalar (the factor of `add`,
            # where the script has the same sum with another): nothing would fill it in.
            raise NotRepeatable
        jump = Jump(
            state=rec.state,
            owners=owners,
            crossings=crossings,
            entered=[],
            leaves=[],
            copied=_copies(
                (to, numbers[recording.seq], at, n) for to, recording, at, n in copied
            ),
            checked=[(numbers[r.seq], s, c) for r, s, c in self.checked],
            used=self._depths(walk.freed[self._freed :]),
            freed=[],
            idle=self._idle(),
            results=[],
            same=[],
        )
        self._note_delivered(jump)
        self._note_entered(jump, walk)
        self._via = len(walk.via)
        self._copied, self._freed = len(walk.copied), len(walk.freed)
        self.delivered, self.checked, self.seen = [], [], []
        if self._pause is None:
            self._first = jump
        else:
            self._pause.next = jump
        return jump

    def _note_gone_through(
        self, walk: Any
    ) -> tuple[list[Owner], list[tuple[int, int, int, int]]]:
        """The recordings that the piece went through first, and its other ways."""
        numbers = self.numbers
        owners: list[Owner] = []
        crossings: list[tuple[int, int, int, int]] = []
        for (_, slot), (recording, parent) in list(walk.via.items())[self._via :]:
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
        return owners, crossings

    def _idle(self) -> list[tuple[int, int, int]]:
        """The leaves that the piece looked at, but put no gradient into."""
        fed = {id(leaf) for leaf, *_ in self.delivered}
        return [
            (self.numbers[r.seq], slot, kinds)
            for r, slot, kinds in dict.fromkeys(self.seen)
            if id(r.entered[slot]) not in fed
        ]

    def _note_delivered(self, jump: Jump) -> None:
        """What the piece put into leaves."""
        # Those of `leaves` first: their numbers there are their numbers here.
        self.delivered.sort(key=lambda item: getattr(item[0]._grad, "_composed", False))
        for leaf, place, status in self.delivered:
            grad = leaf._grad
            if grad is not None and grad._composed and status is None:
                owner, (parts, made) = self.numbers[place[0].seq], grad._taken_apart()
                known = owner, place[1], hook_kinds(leaf), leaf._tmeta
                jump.sparse.append((*known, [self._value(p) for p in parts], made))
                continue
            if (
                status == "other"
                or grad is None
                or not self.rec.owns(grad._slot)
                or type(grad) is not tensor_class[0]
            ):
                raise NotRepeatable
            owner = self.numbers[place[0].seq]
            hooks, after = hook_kinds(leaf), (grad._slot, grad._tmeta)
            jump.leaves.append((owner, place[1], hooks, leaf._tmeta, status, *after))

    def _note_entered(self, jump: Jump, walk: Any) -> None:
        """The values that entered the recording with the piece."""
        rec = self.rec
        slots = [
            event.slot
            for event in _between(self._begin, rec.state)
            if event.n_inputs != (event.parent.n_inputs if event.parent else 0)
        ]
        trace = (rec.trace or [])[self._trace :]
        if len(slots) != len(trace):
            raise NotRepeatable
        grads = {id(leaf._grad): i for i, (leaf, *_) in enumerate(self.delivered)}
        for tensor, slot in zip(trace, slots, strict=True):
            taken = walk.taken.get(id(tensor))
            if taken is not None:
                number = self.numbers[taken[1].seq]
                jump.entered.append(("saved", number, taken[2], slot))
            elif id(tensor) in grads:
                jump.entered.append(("grad", grads[id(tensor)], 0, slot))
                jump.adds = True
            elif id(tensor) in self.outside:
                number = self.outside[id(tensor)][1]
                jump.entered.append(("held", number, tensor._tmeta, slot))
            else:
                raise NotRepeatable


def _copies(copied: Iterable[tuple[int, int, int, int]]) -> list[Copy]:
    """Joins what is copied one after another: (to, recording, from, how many)."""
    runs: list[tuple[int, int, list[int]]] = []
    for to, number, at, n in copied:
        if runs and runs[-1][1] == number and runs[-1][0] + len(runs[-1][2]) == to:
            runs[-1][2].extend(range(at, at + n))
        else:
            runs.append((to, number, list(range(at, at + n))))
    return [
        (to, to + len(source), number, itemgetter(*_as_slice(source)))
        for to, number, source in runs
    ]


def _as_slice(places: list[int]) -> list[Any]:
    """Places in a list as one slice of it, if they follow one another either way."""
    first, last = places[0], places[-1]
    if places == [*range(first, last + 1)]:
        return [slice(first, last + 1)]
    if places == [*range(first, last - 1, -1)]:  # of a chain's events
        return [slice(first, last - 1 if last else None, -1)]
    return places


def _between(start: State, end: State) -> list[State]:
    events: list[State] = []
    state: State | None = end
    while state is not None and state is not start:
        events.append(state)
        state = state.parent
    events.reverse()
    return events
