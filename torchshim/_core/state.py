"""The automaton of everything recorded: a trie of events, and recordings in it.

A `State` is a place in the trie; the path from the root to it is the sequence of
events recorded so far. Look-ups go from state to state by an event's key; whatever is
known of an event (metas, programs of recordings that end there) is kept on its state.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torchshim._core.meta import Meta

# Kinds of events.
ROOT, INPUT, IDENTITY, CALL, MARK = range(5)
# Kinds of marks for a value that took the place of another: by a write that version
# counters count, by one that they do not, by an assignment to `.data`.
WRITTEN, HIDDEN, MOVED = "write", "hidden", "moved"
# The mark of a value whose tensor left the graph by `detach_()`.
DETACHED = "detached"
# That of a value whose tensor came to require grad, or ceased to.
SWITCHED = "switched"
# Begins the keys of calls that warn: no hot path looks them up.
WARNED = "warned"


# What a backward used up: what an event saved, by its depth; what one of several nodes
# saved that an event stands for, by that and the number of a result.
UsedUp = int | tuple[int, int]

# Kinds of jump edges kept on one state; and of one kind, for operands, histories and
# gradients that differ.
_KINDS, _VARIANTS = 64, 4


class State:
    """One event, and where a recording stands after it."""

    __slots__ = (
        "__weakref__",
        "alias",
        "call",
        "depth",
        "device",
        "given",
        "jumps",
        "key",
        "kind",
        "learnt",
        "line",
        "meta",
        "metas",
        "n_inputs",
        "n_scalars",
        "n_slots",
        "next",
        "of",
        "operands",
        "parent",
        "places",
        "plans",
        "scalar",
        "size",
        "slot",
        "top",
        "touched",
        "tracks",
        "view",
        "write",
        "written",
        "wrt",
    )

    def __init__(
        self,
        parent: State | None,
        kind: int,
        key: Any,
        *,
        call: Any = None,
        operands: tuple[int, ...] = (),
        given: tuple[Meta, ...] = (),
        metas: tuple[Meta, ...] = (),
        first_slot: int = 0,
        scalars: int = 0,
        wrt: tuple[int, ...] = (),
        line: tuple[str, int] | None = None,
    ) -> None:
        self.parent = parent
        self.kind = kind
        self.key = key
        self.call = call
        self.operands = operands
        self.given = given  # the operands' metas
        self.metas = metas
        self.meta = metas[0] if metas else None
        self.wrt = wrt
        self.line = line
        self.next: dict[Any, State] = {}
        self.depth = 0 if parent is None else parent.depth + 1
        self.slot = first_slot if parent is None else parent.n_slots
        self.n_slots = self.slot + len(metas)
        self.scalar = 0 if parent is None else parent.n_scalars
        self.n_scalars = self.scalar + scalars
        self.n_inputs = (0 if parent is None else parent.n_inputs) + (kind == INPUT)
        # In-place events: the slot of the value that this event overwrites.
        self.write: int | None = None
        # Whether anything on the path was overwritten, replaced or detached.
        self.written = parent is not None and parent.written
        # Whether anything on the path has a gradient.
        self.tracks = bool(wrt) or (parent is not None and parent.tracks)
        # Events whose result shares its memory with operand 0.
        self.alias = kind == IDENTITY
        # Whether results are views (hot path: link them to the base).
        self.view = False
        # Gradient events: depth of the event they are the gradient of.
        self.of: int | None = None
        self.places: dict[Any, tuple[tuple[Any, ...], State]] | None = None
        self.learnt: dict[Any, tuple[bool, ...]] | None = None
        self.jumps: dict[Any, Any] | None = None
        self.plans: dict[Any, Any] | None = None
        # The first event of the path, which counts what hangs below it.
        self.top: State = self if parent is None or parent.depth == 0 else parent.top
        self.size = 0
        self.touched = 0
        # What the path's calls compute on, once there was one.
        self.device: Any = None if parent is None else parent.device

    def kept(self, key: Any, find: Callable[[], Any]) -> Any:
        """What is known of this event, or of the path to it; found out once."""
        plans = self.plans
        if plans is None or len(plans) > 64:
            plans = self.plans = {}
        known = plans.get(key)
        if known is None:
            known = plans[key] = find()
        return known

    def remember(self, key: Any, jump: Any) -> None:
        """Keeps a jump edge that starts here; the oldest of its kind make room."""
        if self.jumps is None or len(self.jumps) >= _KINDS:
            self.jumps = {}
        variants = self.jumps.setdefault(key, [])
        if len(variants) >= _VARIANTS:
            del variants[0]
        variants.append(jump)

    def path(self) -> list[State]:
        """The events from the first to this one."""
        events: list[State] = []
        state: State | None = self
        while state is not None and state.kind != ROOT:
            events.append(state)
            state = state.parent
        events.reverse()
        return events

    def maker(self, slot: int) -> State | None:
        """The event of the path to this one that made a slot."""
        state: State | None = self
        while state is not None and not state.slot <= slot < state.n_slots:
            state = state.parent
        return state

    def mutated(self) -> list[tuple[int, int]]:
        """(slot of the old value, slot of the new one) for operators that mutate."""
        op = getattr(self.call, "op", None)
        if op is None or not op.mutates:
            return []
        old = [
            slot
            for slot, owner in zip(self.operands, self.call.owners, strict=True)
            if owner in op.mutates
        ]
        return list(zip(old, range(self.slot, self.n_slots), strict=True))

    def __repr__(self) -> str:
        what = ("root", "input", "identity", "call", "mark")[self.kind]
        if self.kind == CALL:
            what += f" {self.call!r}"
        elif self.kind == MARK:
            what += f" {self.key[1]}"
        elif self.metas:
            what += f" {self.metas[0].dtype.name}{list(self.metas[0].shape)}"
        return f"<state {self.depth} {what}>"


class Recording:
    """What belongs to one pass from the root to a flush.

    While open it knows which tensors its slots stand for. A recording that tensors with
    autograd history outlive is closed with the values that their backward needs.
    """

    __slots__ = (
        "__weakref__",
        "apart",
        "bases",
        "counted",
        "duals",
        "elsewhere",
        "ended",
        "entered",
        "forwards",
        "freed",
        "graph",
        "hidden",
        "hists",
        "hooked",
        "left",
        "metadata",
        "moved",
        "node_hooks",
        "nodes",
        "original",
        "packed",
        "parents",
        "pieces",
        "producers",
        "python",
        "saved",
        "savers",
        "scalars",
        "seq",
        "state",
        "switched",
        "tensors",
        "traces",
        "twin",
        "versions",
    )

    def __init__(self, seq: int) -> None:
        self.seq = seq
        # Which graph it is part of: what another thread sees of it is part of the same.
        self.graph = seq
        # Slot -> tensor, for values that came in from outside (inputs, leaves).
        self.entered: dict[int, Any] = {}
        # Slot -> what is noted of its memory (`versions.Noted`): of values that came
        # from another thread, or that another thread overwrote, and of those in memory
        # that NumPy shares, where each write ends the recording: no event tells of it.
        self.elsewhere: dict[int, Any] = {}
        # Slot of what `.data` gave -> (weak reference to that tensor, the cell that
        # counts its versions, the version).
        self.apart: dict[int, tuple[Any, Any, int]] = {}
        # Slot -> (weak reference to the tensor that had this value when its `.data` was
        # assigned to, its version then; None: its memory is the same).
        self.moved: dict[int, tuple[Any, int | None]] = {}
        # Slot -> storage, for base values that came in.
        self.bases: dict[int, Any] = {}
        # Slot -> (recording, slot): where the history of an entered value goes on.
        self.hists: dict[int, tuple[Recording, int]] = {}
        # Slot -> tensor whose hooks run on the gradient of that slot.
        self.hooked: dict[int, Any] = {}
        # (tensor, its array before) where the host replaced one: counters.
        self.counted: list[tuple[Any, Any]] = []
        # What a backward released.
        self.freed: set[UsedUp] = set()
        # Depth of a gradient that may be differentiated -> (recording, event) that it
        # is the gradient of, where the event itself does not tell (`State.of`).
        self.forwards: dict[int, tuple[Recording, State]] = {}
        # Values whose tensor left the graph by `detach_()`.
        self.left: set[int] = set()
        # Slot of a value that a gradient needs -> its tensor, which came to require
        # grad, or ceased to, after that.
        self.switched: dict[int, Any] = {}
        # Depth -> the Python code that is the backward of that event.
        self.python: dict[int, Any] = {}
        # Depth -> what saved-tensor hooks made of the values that its backward needs.
        self.packed: dict[int, dict[Any, Any]] = {}
        # Slot of what was written through a view -> weak reference to the view.
        self.pieces: dict[int, Any] = {}
        # Depth -> (pre-hooks, hooks) of the node.
        self.node_hooks: dict[int, tuple[Any, Any]] = {}
        # Depth -> what users noted at the node, beyond its object; None: nothing.
        self.metadata: dict[int, dict[Any, Any]] | None = None
        # Depth -> the node object that users hold; None: they asked for none.
        self.nodes: weakref.WeakValueDictionary[Any, Any] | None = None
        # Forward mode: slot -> {level: tangent of that value}.
        self.duals: dict[int, dict[int, Any]] = {}
        # What other threads see of this recording while it goes on; and there, a weak
        # reference back.
        self.twin: Recording | None = None
        self.original: Any = None
        # Anomaly mode: depth -> the stack that an event was recorded from.
        self.traces: dict[int, Any] = {}
        # Depth -> (recording, event) whose gradient it is part of.
        self.parents: dict[int, tuple[Recording, State]] = {}
        # Where it ended, and the same if it was closed.
        self.ended: State | None = None
        self.state: State | None = None
        self.saved: dict[int, Any] = {}
        self.savers: dict[int, frozenset[int]] = {}
        self.scalars: list[Any] = []
        self.tensors: dict[int, Any] = {}
        self.versions: dict[int, Any] = {}
        # `hidden_writes` at that moment.
        self.hidden = -1
        self.producers: dict[int, State] | None = None

    def place(self, slot: int, running: Recording) -> tuple[Recording, int]:
        """A slot of this recording, which is in the one that this shows.

        Unless that still goes on in another thread: it is only looked at there.
        """
        shown = None if self.original is None else self.original()
        if shown is not None and (shown is running or shown.state is not None):
            return shown, slot
        return self, slot

    def add_saved(
        self,
        saved: dict[int, Any],
        savers: dict[int, frozenset[int]],
        versions: dict[int, Any],
    ) -> None:
        """Keeps values that a backward of others needs, beside its own."""
        none: frozenset[int] = frozenset()
        self.saved = saved | self.saved
        self.savers = {
            slot: savers.get(slot, none) | self.savers.get(slot, none)
            for slot in (*savers, *self.savers)
        }
        self.versions = versions | self.versions

    def event(self, slot: int, running: State) -> State:
        """The event that made a slot, where the recording may be the running one."""
        if self.state is not None:
            return self.events(self.state)[slot]
        if running.slot <= slot < running.n_slots:  # often the last one
            return running
        found = running.maker(slot)
        assert found is not None
        return found

    def events(self, state: State) -> dict[int, State]:
        """Slot -> the event that made it, for the path to `state`."""
        if self.producers is not None:
            return self.producers
        found: dict[int, State] = {}
        for event in state.path():
            for slot in range(event.slot, event.n_slots):
                found[slot] = event
        if self.state is not None:
            self.producers = found
        return found
