"""Which values were overwritten in place: what PyTorch's version counters tell."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from torchshim._core.state import MARK, Recording, State
from torchshim._core.storage import writes_of


def versions_of(
    rec: Any, state: State, recording: Recording, saved: Sequence[int]
) -> dict[int, tuple[Any, int]]:
    """Saved slot -> (who holds that value's memory, its version), at closing.

    A slot that was overwritten before the closing has no holder: (None, count).
    """
    if not saved:
        return {}
    written, results = _history_of(state)
    holders: dict[int, Any] = {}
    for tensor in recording.entered.values():
        if tensor._slot >= 0:
            holders[written.root(tensor._slot)] = tensor
    for ref in rec.live:
        tensor = ref()
        if tensor is not None and tensor._slot >= 0:
            holders[written.root(tensor._slot)] = tensor
    found: dict[int, tuple[Any, int]] = {}
    for slot in (*saved, *results):
        count = written.count(slot)
        if count:
            found[slot] = None, count
            continue
        tensor = holders.get(written.root(slot))
        if tensor is None:
            # On memory that numpy shares a tensor doesn't keep its slot.
            tensor = recording.entered.get(slot)
        if tensor is not None:
            holder = tensor._storage
            if holder is None or len(holder.tensors()) == 1:
                # Alone on a storage, a tensor may leave it.
                holder = tensor
            found[slot] = weakref.ref(holder), writes_of(holder)
    return found


def _history_of(state: State) -> tuple[Overwritten, list[int]]:
    """What the path alone tells, kept on its last state."""
    plans = state.plans
    if plans is None:
        plans = state.plans = {}
    found = plans.get("history")
    if found is None:
        found = plans["history"] = Overwritten(state), results_of(state)
    return found


def results_of(state: State) -> list[int]:
    """Results that PyTorch saves for a backward, where we save the operands."""
    return [
        slot
        for event in state.path()
        if event.wrt and "result" in event.call.saved(event.wrt)
        for slot in range(event.slot, event.n_slots)
    ]


class Overwritten:
    """Which values of a path were overwritten in place, and how often."""

    def __init__(self, state: State) -> None:
        self._root: dict[int, int] = {}
        self._next: dict[int, int] = {}
        for event in state.path():
            if event.alias and event.operands:
                source = self.root(event.operands[0])
                for slot in range(event.slot, event.n_slots):
                    self._root[slot] = source
            for old, new in event.mutated():
                self._next[self.root(old)] = self.root(new)
            if event.write is not None:
                new = event.operands[1] if event.kind == MARK else event.slot
                self._next[self.root(event.write)] = self.root(new)

    def root(self, slot: int) -> int:
        return self._root.get(slot, slot)

    def last(self, slot: int) -> int:
        """The value that this value's memory holds at the end of the path."""
        at = self.root(slot)
        while at in self._next:
            at = self._next[at]
        return slot if at == self.root(slot) else at

    def count(self, slot: int) -> int:
        """How many writes the memory of this value has seen since it was made."""
        at, count = self.root(slot), 0
        while at in self._next:
            at = self._next[at]
            count += 1
        return count
