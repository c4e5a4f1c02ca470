"""What a walk does in an earlier recording, remembered by itself.

A jump edge stands for a walk as a whole. Where a script reads a value in each turn, and
goes back through all turns at once (an episode of a game, of another length each time),
no walk is like another, but most recordings that it goes through are. In a walk that is
known to vary, the way through each of them is a recording of its own: a *passage*. It
is remembered at the state that the earlier recording ended at, and repeated where such
gradients come to it again. Those of leaves are added up from one passage to the next.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torchshim._core import follow
from torchshim._core.graph import Place, accumulator_at, before_entry
from torchshim._core.leaf_facts import hook_kinds
from torchshim._core.lower import has_checks
from torchshim._core.meta import Meta
from torchshim._core.saved import SavedValues
from torchshim._core.state import CALL, INPUT, Recording, State, UsedUp
from torchshim._core.storage import SLOT_BITS, TensorBase, hidden_writes, value_lock
from torchshim._core.varying import keeps_varying

# A state keeps so many passages for the same gradients: with and without earlier ones
# of the leaves.
_VARIANTS = 4
# Through more recordings than these no walk that is new is recorded as a whole, if
# another was known there.
_MANY = 64

# A gradient in the running recording (its slot and meta), or one that came to the
# earlier recording (its slot there, None).
Value = tuple[int, Meta | None]


@dataclass(slots=True, eq=False)
class Passage:
    """The way through an earlier recording, as a recording."""

    # Where the running recording stands at its end.
    state: State
    # What enters: ("grad", slot that it came to), ("total", slot of a leaf) or
    # ("saved", slot); and the slot here.
    entered: list[tuple[str, int, int]]
    # Slot of a leaf -> the meta of its earlier gradient, if there is one.
    totals: dict[int, Meta | None]
    # Slot and meta of each leaf reached, and its gradient so far.
    leaves: list[tuple[int, Meta, Value]]
    # Slot of a leaf -> how often a gradient arrived there.
    arrived: dict[int, int]
    # Slot of what had entered that recording -> the gradient that goes on from there.
    left: list[tuple[int, Value]]
    freed: list[UsedUp]
    # Runtime scalars: place here, place there, how many.
    copied: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class Making:
    """A passage in progress: what the walk had before it."""

    recording: Recording  # gone through
    running: Recording
    key: Any
    grads: dict[int, Any]
    totals: dict[Any, Any]  # by the node that accumulates them
    arrived: dict[Place, int]
    n_freed: int
    n_copied: int
    n_derivatives: int
    n_nothing: int
    left: list[tuple[int, Any]] = field(default_factory=list)


class Passages(SavedValues):
    """The part of a walk that knows passages."""

    __slots__ = ()

    roots: Sequence[Place]
    outside: Any
    create: bool
    accumulate: bool
    narrow: bool
    sparse: bool
    called: bool
    derivatives: set[Any]
    heap: list[Any]
    queued: set[Any]
    ranks: dict[tuple[int, int], int] | None
    taken: dict[int, tuple[Any, Recording, int]]
    copied: list[tuple[int, Recording, int, int]]
    # Whether recordings are known to differ here; through how many the walk went while
    # they were not; what becomes a passage.
    varying: bool
    crossed: int
    making: Making | None

    def push(self, place: Place, grad: Any) -> None:
        raise NotImplementedError

    def comes_to(self, recording: Recording, watched: bool) -> bool:
        """Called where a walk comes to another recording: whether it has passed it.

        `watched`: whether the gradient of each event is to be seen.
        """
        if not self.varying:
            self.crossed += 1
            if self.crossed > _MANY and not self.rec.levels:
                self.varying = self.rec.diverged is not None
            self.varying = self.varying or keeps_varying(self.rec)
            if not self.varying:
                return False
        # What was recorded before may be the same every time.
        self.capture = None
        if self.leaf_edges is None:
            self.leaf_grads = self.merged(self.leaf_grads)
        if self.making is not None:
            self._keep(self.making)
            self.making = None
        self.rec.flush()
        if watched or not self._is_plain(recording):
            return False
        arrived = {slot: g for (r, slot), g in self.grads.items() if r is recording}
        if not all(map(_is_simple, arrived.values())):
            return False
        if len({id(grad) for grad in arrived.values()}) < len(arrived):
            return False
        metas = [(slot, arrived[slot]._tmeta) for slot in sorted(arrived)]
        key = "passages", self.rec.bits, *metas
        assert recording.state is not None
        for passage in recording.state.memoized(key, list):
            if self._repeat(passage, recording, arrived):
                return True
        self.making = Making(
            recording=recording,
            running=self.rec.recording,
            key=key,
            grads=arrived,
            totals=self._totals(),
            arrived={p: n for p, n in self.arrived.items() if p[0] is recording},
            n_freed=len(self.freed),
            n_copied=len(self.copied),
            n_derivatives=len(self.derivatives),
            n_nothing=len(self.nothing),
        )
        return False

    def _is_plain(self, recording: Recording) -> bool:
        """Whether the walk, and an earlier recording, are of the kind that is repeated.

        Python code is called in neither, nor is part of the graph asked for.
        """
        if self.create or self.narrow or not self.accumulate or self.outside:
            return False
        if self.called or self.leaf_edges is not None or self.ranks is not None:
            return False
        if self.sparse or self.rec.levels:
            return False
        if recording.state is None or recording.original is not None:
            return False
        if any(place[0] is recording for place in self.nothing):
            return False
        return not (
            recording.hooked
            or recording.node_hooks
            or recording.python
            or recording.packed
            or recording.tangent_levels
            or recording.duals
            or recording.detached
            or recording.switched
            or recording.moved
            or recording.apart
            or recording.forwards
            or recording.freed
        )

    def _totals(self) -> dict[Any, Any]:
        return {accumulator_at(leaf, p): grad for leaf, p, grad in self.leaf_grads}

    # -- remembering -----------------------------------------------------------------

    def _keep(self, making: Making) -> None:
        """Remembers the passage that ends here, if it can be repeated."""
        rec, recording = self.rec, making.recording
        running, state = making.running, rec.state
        path = state.path()
        if rec.recording is not running or any(map(_is_special, path)):
            return
        if running.hists or running.apart or running.pieces or running.elsewhere:
            return
        if (
            len(self.derivatives) > making.n_derivatives
            or len(self.nothing) > making.n_nothing
            or not self._is_plain(recording)
        ):
            return
        freed, copied = self.freed[making.n_freed :], self.copied[making.n_copied :]
        if any(owner is not recording for owner, _ in freed):
            return
        if any(owner is not recording for _, owner, _, _ in copied):
            return
        if sum(n for *_, n in copied) < state.n_scalars:
            return
        reached = [i for i in self.leaf_grads if i[1][0] is recording]
        slots = {accumulator_at(leaf, place): place[1] for leaf, place, _ in reached}
        known: dict[int, tuple[str, int]] = {
            id(grad): ("grad", slot) for slot, grad in making.grads.items()
        }
        for node, grad in making.totals.items():
            if node in slots and id(grad) not in known:
                known[id(grad)] = "total", slots[node]
        entered: list[tuple[str, int, int]] = []
        for event in path:
            if event.kind != INPUT:
                continue
            tensor = running.entered.get(event.slot)
            source = known.get(id(tensor))
            if source is None:
                _, owner, slot = self.taken.get(id(tensor), (None, None, 0))
                if owner is not recording:
                    return
                source = "saved", slot
            kind, at = source
            entered.append((kind, at, event.slot))
        values = [
            self._value(making, grad)
            for grad in [*(g for *_, g in reached), *(g for _, g in making.left)]
        ]
        if None in values:
            return
        passage = Passage(
            state=state,
            entered=entered,
            totals={
                slot: making.totals[node]._tmeta if node in making.totals else None
                for node, slot in slots.items()
            },
            leaves=[
                (place[1], leaf._tmeta, value)
                for (leaf, place, _), value in zip(reached, values, strict=False)
                if value is not None
            ],
            arrived={
                place[1]: n - making.arrived.get(place, 0)
                for place, n in self.arrived.items()
                if place[0] is recording and n > making.arrived.get(place, 0)
            },
            left=[
                (slot, value)
                for (slot, _), value in zip(
                    making.left, values[len(reached) :], strict=True
                )
                if value is not None
            ],
            freed=[depth for _, depth in freed],
            copied=[(to, at, n) for to, _, at, n in copied],
        )
        assert recording.state is not None
        known_ones = recording.state.memoized(making.key, list)
        known_ones.append(passage)
        del known_ones[:-_VARIANTS]

    def _value(self, making: Making, grad: Any) -> Value | None:
        """A gradient after a passage; None if it is of no kind that can be repeated."""
        for slot, given in making.grads.items():
            if given is grad:
                return slot, None
        if grad._composed or grad._storage is not None or grad._tmeta.requires_grad:
            return None
        return (grad._slot, grad._tmeta) if self.rec.owns(grad._slot) else None

    # -- repeating -------------------------------------------------------------------

    def _repeat(
        self, passage: Passage, recording: Recording, arrived: dict[int, Any]
    ) -> bool:
        """Passes a recording as it did before; False, and nothing is done, if it can't.

        The running recording has just begun.
        """
        rec, top = self.rec, passage.state.top
        if rec.root.next.get(top.key) is not top or not self._are_as_saved(recording):
            return False
        nodes = {accumulator_at(i[0], i[1]): k for k, i in enumerate(self.leaf_grads)}
        totals: dict[int, Any] = {}
        places: list[int | None] = []
        for slot, meta, _ in passage.leaves:
            leaf = recording.entered.get(slot)
            if leaf is None or leaf._tmeta is not meta:
                return False
            if leaf._inherits or not _is_free(leaf):
                return False
            place = nodes.get(accumulator_at(leaf, (recording, slot)))
            places.append(place)
            total = None if place is None else self.leaf_grads[place][2]
            if (None if total is None else total._tmeta) is not passage.totals[slot]:
                return False
            if total is not None and not _is_simple(total):
                return False
            totals[slot] = total
        for slot in passage.arrived:
            leaf = recording.entered.get(slot)
            if leaf is None or not (leaf._tmeta.leaf and _is_free(leaf)):
                return False
        if not all(self._is_own(recording, slot) for slot, _ in passage.left):
            return False
        with value_lock:
            if not self._enter(passage, recording, arrived, totals):
                return False
        found: dict[int, Any] = {}
        for place, (slot, _, value) in zip(places, passage.leaves, strict=True):
            leaf, grad = recording.entered[slot], self._made(value, arrived, found)
            entry = leaf, (recording, slot), grad
            if place is None:
                self.leaf_grads.append(entry)
            else:
                self.leaf_grads[place] = entry
        for slot, n in passage.arrived.items():
            at_leaf = recording, slot
            self.arrived[at_leaf] = self.arrived.get(at_leaf, 0) + n
        self.freed += [(recording, depth) for depth in passage.freed]
        for slot in arrived:
            del self.grads[recording, slot]
        while self.heap and self.heap[0][2] is recording:
            *_, event = heapq.heappop(self.heap)
            self.queued.discard((recording.seq, event.depth))
        for slot, value in passage.left:
            ((owner, at),) = self.edges(recording, self.event((recording, slot)))
            self.push((owner, at), self._made(value, arrived, found))
        return True

    def _is_own(self, recording: Recording, slot: int) -> bool:
        """Whether what entered was made by this thread, in the shape that it has."""
        owner, at = recording.hists[slot]
        if (at ^ slot) >> SLOT_BITS or owner.original is not None:
            return False
        made = self.event((owner, at))
        shape = made.metas[at - made.slot].shape
        return shape == self.event((recording, slot)).metas[0].shape

    def _enter(
        self,
        passage: Passage,
        recording: Recording,
        arrived: dict[int, Any],
        totals: dict[int, Any],
    ) -> bool:
        """Brings in what a passage takes; False if another thread uses part of it."""
        rec = self.rec
        entering: list[tuple[Any, int]] = []
        for kind, at, slot in passage.entered:
            if kind == "saved":
                tensor = recording.tensors.get(at)
                if tensor is None:
                    tensor = object.__new__(TensorBase)
                    tensor._slot = -1
                    tensor._tmeta = None  # type: ignore[assignment]
                    tensor._array = recording.saved[at]
                elif tensor._slot >= 0:
                    return False
            else:
                tensor = totals[at] if kind == "total" else arrived[at]
            entering.append((tensor, slot))
        # From here on nothing can fail.
        follow.enter(rec, passage.state, entering)
        for to, at, n in passage.copied:
            rec.scalars[to : to + n] = recording.scalars[at : at + n]
        return True

    def _made(
        self, value: Value, arrived: dict[int, Any], found: dict[int, Any]
    ) -> Any:
        slot, meta = value
        if meta is None:
            return arrived[slot]
        if slot not in found:
            found[slot] = self.rec.tensor_on(slot, meta)
        return found[slot]

    @staticmethod
    def _are_as_saved(recording: Recording) -> bool:
        """Whether nobody wrote to, or detached, what an earlier recording keeps."""
        for slot in recording.versions:
            place: Place | None = recording, slot
            counted = True
            while place is not None:
                owner, at = place
                if at in owner.detached:
                    return False
                saved = owner.versions.get(at)
                if saved is not None:
                    if counted and (saved.writes or saved.written()):
                        return False
                    if saved.hidden is None or owner.hidden != hidden_writes[0]:
                        if saved.outdated():
                            return False
                # What entered as a copy has its memory where it came from.
                place, counted = before_entry(owner, at), False
        return True


def _is_simple(grad: Any) -> bool:
    """Whether a gradient is an array by itself."""
    return (
        not grad._composed
        and grad._array is not None
        and grad._storage is None
        and grad._slot < 0
        and not grad._tmeta.requires_grad
        and not grad._tangents
    )


def _is_free(leaf: Any) -> bool:
    """Whether no Python code is to see what arrives at a leaf."""
    return leaf._hooks is None and not hook_kinds(leaf)


def _is_special(event: State) -> bool:
    """Whether an event does more than to compute, or to bring in a value."""
    return event.kind not in (INPUT, CALL) or has_checks(event)
