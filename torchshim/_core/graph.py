"""The graph that a backward walk goes through, and what is asked for in it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from torchshim._core.jumps import Capture
from torchshim._core.record import Recorder, local
from torchshim._core.state import IDENTITY, INPUT, Recording, State
from torchshim._core.storage import SLOT_BITS, TensorBase

Place = tuple[Recording, int]


def before_entry(recording: Recording, slot: int) -> Place | None:
    """Where the history of a value goes on that entered a recording, if it does."""
    hist = recording.hists.get(slot)
    if hist is None:
        return None
    recording, slot = hist
    if recording.original is not None:
        return recording.place(slot, local.rec.recording)
    return recording, slot


def origin(recording: Recording, slot: int) -> Place:
    """Where the history of a value begins: the event that made it, or its entry."""
    while True:
        hist = before_entry(recording, slot)
        if hist is not None:
            recording, slot = hist
            continue
        if slot in recording.entered:
            return recording, slot
        event = recording.event(slot, local.rec.state)
        if event.kind != IDENTITY:
            return recording, slot
        slot = event.operands[0]


def accumulator_at(leaf: Any, place: Place) -> tuple[int, bool]:
    """A key for the node that accumulates a leaf's gradients from a place.

    The leaf's id, and whether this is the node that the leaf has now.
    """
    since = leaf._node_since
    return id(leaf), since is None or since <= (place[0].seq, place[1])


class Graph:
    """The part of a walk that knows events and edges."""

    __slots__ = ()

    rec: Recorder
    roots: Sequence[Place]
    # Where gradients are asked for -> for which of those asked for; and id(leaf) -> so.
    targets: dict[Place, list[int]]
    captured: dict[int, list[int]]
    # `_node_since` of leaves asked for, as it was before any Python code.
    since: dict[int, tuple[int, int]]
    # Whether gradients of some values alone are asked for; those that are on a way from
    # the roots to one of these (None: all), found out once something is visited.
    narrow: bool
    needed: set[Place] | None
    tables: dict[int, dict[int, State]]
    frozen: State | None
    # Place where the walk left a recording -> the one that it went on in, the one left.
    via: dict[tuple[int, int], tuple[Recording, Recording]]
    capture: Capture | None
    ranks: dict[tuple[int, int], int] | None

    def event(self, place: Place) -> State:
        recording, slot = place
        table = self.tables.get(recording.seq)
        if table is None:
            state = recording.state or self.frozen or self.rec.state
            table = self.tables[recording.seq] = recording.events(state)
        return table[slot]

    def edges(self, recording: Recording, event: State) -> list[Place]:
        """Where the gradients of an event's operands flow to."""
        if event.kind in (INPUT, IDENTITY):
            hist = recording.hists.get(event.slot)
            if hist is not None:
                if (hist[1] ^ event.slot) >> SLOT_BITS or hist[0].original is not None:
                    # The numbers of two threads' recordings say nothing of an order.
                    self.interleave()
                    return [hist[0].place(hist[1], self.rec.recording)]
                self.via[recording.seq, event.slot] = hist[0], recording
                return [hist]
            if event.slot in recording.entered:
                return []
            return [(recording, event.operands[0])] if event.operands else []
        return [(recording, event.operands[i]) for i in event.wrt]

    def interleave(self) -> None:
        raise NotImplementedError

    def ranked(self) -> dict[tuple[int, int], int]:
        """The order of the events: each comes after those that its gradient comes from.

        Among those that could come next, the latest recorded is first.
        """
        self.ranks = {}
        waiting: dict[tuple[int, int], int] = {}
        stack = [(place[0], self.event(place)) for place in self.roots]
        ready: list[Any] = []
        edges: dict[tuple[int, int], list[tuple[Recording, State]]] = {}
        while stack:
            recording, event = stack.pop()
            key = recording.seq, event.depth
            if key not in edges:
                below = [(p[0], self.event(p)) for p in self.edges(recording, event)]
                edges[key] = below
                stack += below
                for owner, each in below:
                    at = owner.seq, each.depth
                    waiting[at] = waiting.get(at, 0) + 1
        for place in self.roots:
            at = place[0].seq, self.event(place).depth
            if at not in waiting:
                waiting[at] = 0
                ready.append((-at[0], -at[1]))
        heapq.heapify(ready)
        ranks: dict[tuple[int, int], int] = {}
        while ready:
            seq, depth = heapq.heappop(ready)
            ranks[-seq, -depth] = len(ranks)
            for owner, each in edges[-seq, -depth]:
                at = owner.seq, each.depth
                waiting[at] -= 1
                if not waiting[at]:
                    heapq.heappush(ready, (-at[0], -at[1]))
        return ranks

    def restrict(self) -> None:
        """Finds the values on a way from the roots to a target, if not all are."""
        if not self.narrow or self.needed is not None:
            return
        reaches: dict[Place, bool] = {}
        stack = list(self.roots)
        while stack:
            place = stack[-1]
            if place in reaches:
                stack.pop()
                continue
            below = self.edges(place[0], self.event(place))
            waiting = [p for p in below if p not in reaches]
            if waiting:
                stack.extend(waiting)
                continue
            reaches[place] = self.is_target(place) or any(reaches[p] for p in below)
            stack.pop()
        self.needed = {p for p, reached in reaches.items() if reached}
        if self.capture is not None:
            self.capture.leaves += [p for p in reaches if self.is_leaf(p)]

    def aim(self, targets: Sequence[Any], slots: Sequence[int] | None) -> None:
        """Notes what is asked for; `slots`: where that is in the running recording."""
        self.narrow = True
        for i, target in enumerate(targets):
            slot = None if slots is None else slots[i]
            if isinstance(target, TensorBase) and target._tmeta.leaf:
                self.captured.setdefault(id(target), []).append(i)
                if target._node_since is not None:
                    self.since[id(target)] = target._node_since
                if self.capture is not None and slot is not None:
                    self.capture.leaves.append((self.rec.recording, slot))
            else:
                place = self.place_of(target, slot)
                self.targets.setdefault(place, []).append(i)

    def place_of(self, target: Any, slot: int | None) -> Place:
        """Where a gradient that is asked for arrives."""
        if not isinstance(target, TensorBase):
            return target
        recording = self.rec.recording
        if slot is None:
            return origin(recording, self.rec.slot_seen(target))
        while slot in recording.hists:
            # The recordings on the way decide what is asked for, too.
            ((recording, slot),) = self.edges(recording, self.event((recording, slot)))
        return origin(recording, slot)

    @staticmethod
    def is_leaf(place: Place) -> bool:
        recording, slot = place
        return slot in recording.entered and slot not in recording.hists

    def is_target(self, place: Place) -> bool:
        """Whether a place, or another result of the node there, is asked for."""
        recording, slot = place
        if self.is_leaf(place):
            at = id(recording.entered[slot])
            since = self.since.get(at)
            return at in self.captured and (
                since is None or since <= (recording.seq, slot)
            )
        event = self.event(place)
        return any(
            (recording, s) in self.targets for s in range(event.slot, event.n_slots)
        )

    def wanted(self, recording: Recording, event: State) -> tuple[int, ...]:
        """The operands of an event that get a gradient."""
        if self.needed is None:
            return event.wrt
        operands, needed = event.operands, self.needed
        return tuple([i for i in event.wrt if (recording, operands[i]) in needed])
