"""The automaton of everything recorded: a trie of events, and recordings in it.

A `State` is a place in the trie; the path from the root to it is the sequence of
events recorded so far. Look-ups go from state to state by an event's key; whatever is
known of an event (metas, programs of recordings that end there) is kept on its state.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container
from typing import Any

from torchshim._core.meta import Meta

# Kinds of events.
ROOT, INPUT, IDENTITY, CALL, MARK = range(5)
# Marks: a value took the place of another
WRITTEN = "write"  # by a write that version counters count
HIDDEN = "hidden"  # by one that they do not count
MOVED = "moved"  # by an assignment to `.data`
DETACHED = "detached"  # a value's tensor left the graph by `detach_()`
SWITCHED = "switched"  # a value's tensor began or ceased to require grad
# The first part of the keys of calls that warn, so that no hot path finds them.
WARNED = "warned"

# What a backward used up. The depth of an event stands for all that the event saved;
# where PyTorch has one node for each of its results, (depth, number of the result)
# stands for what that node saved.
UsedUp = int | tuple[int, int]

# A state keeps jump edges under at most so many keys,
_JUMP_KEYS = 64
# and so many under one key: for operands, histories or gradients that differ.
_JUMP_VARIANTS = 4
# Facts that a state keeps before it forgets them all.
_MEMO_BOUND = 64


class State:
    """One event, and where a recording stands after it."""

    __slots__ = (
        "__weakref__",
        "alias",
        "call",
        "depth",
        "device",
        "given",
        "gradient_of",
        "jumps",
        "key",
        "kind",
        "learnt",
        "line",
        "memo",
        "meta",
        "metas",
        "n_inputs",
        "n_scalars",
        "n_slots",
        "next",
        "operands",
        "parent",
        "places",
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
        # -- The event.
        self.parent = parent
        self.kind = kind  # INPUT, IDENTITY, CALL or MARK
        self.key = key  # under which the parent's `next` has this state
        self.call = call  # what a CALL computes
        self.operands = operands  # slots
        self.given = given  # the operands' metas
        self.metas = metas  # of the results
        self.meta = metas[0] if metas else None
        self.wrt = wrt  # numbers of the operands that get gradients
        self.line = line  # of the script, where it was first recorded
        # -- Where a recording stands after it.
        self.next: dict[Any, State] = {}  # by the key of the event that follows
        self.depth = 0 if parent is None else parent.depth + 1
        # The results have the slots from `slot` to `n_slots`, the event's runtime
        # scalars the places from `scalar` to `n_scalars` in `Recorder.scalars`. The
        # ends count what is on the path, as `n_inputs` does.
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
        self.gradient_of: int | None = None
        # Where the path's calls compute, once there was one.
        self.device: Any = None if parent is None else parent.device
        # -- What was learnt here (None: nothing yet).
        # Key without its numbers (INPUT: an input) -> those of the last such event, and
        # its state; and which of them are runtime scalars (`learning`).
        self.places: dict[Any, tuple[tuple[Any, ...], State]] | None = None
        self.learnt: dict[Any, tuple[bool, ...]] | None = None
        # Jump edges that start here (`remember`), and results of `memoized`.
        self.jumps: dict[Any, Any] | None = None
        self.memo: dict[Any, Any] | None = None
        # -- For pruning. The first event of the path knows how many states are below
        # it, and the number of the flush that used one of them last.
        self.top: State = self if parent is None or parent.depth == 0 else parent.top
        self.size = 0
        self.touched = 0

    def memoized(self, key: Any, compute: Callable[[], Any]) -> Any:
        """A fact about this event, or about the path to it; computed once."""
        memo = self.memo
        if memo is None or len(memo) > _MEMO_BOUND:
            memo = self.memo = {}
        known = memo.get(key)
        if known is None:
            known = memo[key] = compute()
        return known

    def remember(self, key: Any, jump: Any) -> None:
        """Keeps a jump edge that starts here; the oldest under its key makes room."""
        if self.jumps is None or len(self.jumps) >= _JUMP_KEYS:
            self.jumps = {}
        variants = self.jumps.setdefault(key, [])
        if len(variants) >= _JUMP_VARIANTS:
            del variants[0]
        variants.append(jump)

    def keep_only(self, kept: Container[int]) -> None:
        """Forgets what leads to other states than these (their ids)."""
        self.next = {k: s for k, s in self.next.items() if id(s) in kept}
        if self.places is not None:
            places = self.places.items()
            self.places = {k: met for k, met in places if id(met[1]) in kept}
        if self.jumps is not None:
            self.jumps = {
                key: left
                for key, jumps in self.jumps.items()
                if (left := [jump for jump in jumps if id(jump.state) in kept])
            }

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
        "detached",
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
        "tangent_levels",
        "tensors",
        "traces",
        "twin",
        "versions",
    )

    def __init__(self, seq: int) -> None:
        # A number that orders recordings, and what is in them, across threads.
        self.seq = seq
        # That of the graph it is part of: what another thread sees of a recording (its
        # `twin`) is part of the same one.
        self.graph = seq

        # -- What its slots stand for.
        # Slot -> tensor, for values that came in from outside (inputs, leaves).
        self.entered: dict[int, Any] = {}
        # Slot -> storage, for base values that came in.
        self.bases: dict[int, Any] = {}
        # Slot -> (recording, slot): where the history of an entered value goes on.
        self.hists: dict[int, tuple[Recording, int]] = {}
        # Forward mode: slot -> {level: tangent of that value}.
        self.duals: dict[int, dict[int, Any]] = {}
        # Forward mode: depth of what computes a tangent, or a gradient of one -> level.
        self.tangent_levels: dict[int, int] = {}
        # Slot of what was written through a view -> (weak reference to the view, its
        # path).
        self.pieces: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        # (tensor, its array before) where the host replaced one: counters.
        self.counted: list[tuple[Any, Any]] = []

        # -- Writes and other changes that no event records.
        # Slot -> what is known of its memory (`versions.MemoryNote`): for values that
        # came from another thread or that another thread overwrote, and for those in
        # memory that NumPy shares, where each write ends the recording.
        self.elsewhere: dict[int, Any] = {}
        # Slot of what `.data` gave -> (weak reference to that tensor, the cell that
        # counts its versions, the version).
        self.apart: dict[int, tuple[Any, Any, int]] = {}
        # Slot -> (weak reference to the tensor that had this value when its `.data` was
        # assigned to, its version then; None: its memory is the same).
        self.moved: dict[int, tuple[Any, int | None]] = {}
        # Slots of values whose tensor left the graph by `detach_()`.
        self.detached: set[int] = set()
        # Slot of a value that a gradient needs -> its tensor, which began or ceased to
        # require grad after that.
        self.switched: dict[int, Any] = {}

        # -- Backward.
        # Slot -> hooks on the gradient of that value: a `TensorHooks` or `HookChain`.
        self.hooked: dict[int, Any] = {}
        # Depth -> (pre-hooks, hooks) of the node.
        self.node_hooks: dict[int, tuple[Any, Any]] = {}
        # Depth -> the Python code that is the backward of that event.
        self.python: dict[int, Any] = {}
        # Depth -> what saved-tensor hooks made of the values that its backward needs.
        self.packed: dict[int, dict[Any, Any]] = {}
        # What a backward without `retain_graph` used up.
        self.freed: set[UsedUp] = set()
        # Depth of a gradient that may be differentiated -> (recording, event) that it
        # is the gradient of, where `State.gradient_of` does not tell.
        self.forwards: dict[int, tuple[Recording, State]] = {}
        # Depth -> what users noted at the node, beyond its object; None: nothing.
        self.metadata: dict[int, dict[Any, Any]] | None = None
        # Depth -> the node object that users hold; None: they asked for none.
        self.nodes: weakref.WeakValueDictionary[Any, Any] | None = None
        # Anomaly mode: depth -> the stack that an event was recorded from; depth ->
        # (recording, event) whose gradient it is part of.
        self.traces: dict[int, Any] = {}
        self.parents: dict[int, tuple[Recording, State]] = {}

        # -- Other threads. What they see of this recording while it goes on; and in
        # that twin, a weak reference back.
        self.twin: Recording | None = None
        self.original: Any = None

        # -- Once it has ended: the state that it ended at; the same if it was closed,
        # that is, if a later backward may go through it. Then it also has
        self.ended: State | None = None
        self.state: State | None = None
        # the values that gradients need, by slot; depths of the events that need each;
        self.saved: dict[int, Any] = {}
        self.savers: dict[int, frozenset[int]] = {}
        # the runtime scalars; tensors on saved values, made for a walk, by slot;
        self.scalars: list[Any] = []
        self.tensors: dict[int, Any] = {}
        # slot -> what is known of a saved value's memory (`versions.SavedVersion`);
        self.versions: dict[int, Any] = {}
        # `hidden_writes` when it was closed; slot -> the event that made it (`events`).
        self.hidden = -1
        self.producers: dict[int, State] | None = None

    def place(self, slot: int, running: Recording) -> tuple[Recording, int]:
        """A slot as a place: of a twin, in the recording that it shows of.

        Unless that still goes on in another thread, where it is only looked at.
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
