"""What users note at nodes (`node.metadata`) is dropped as soon as the graph is dead.

That is when no tensor leads to it any more, which may be long before the recording
ends. Recordings with such notes refer to the tensors of the graph by weak references
with a callback; other recordings pay nothing for it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable
from typing import Any

from torchshim._core.flush import find_alive
from torchshim._core.record import local
from torchshim._core.state import CALL, IDENTITY, State
from torchshim._core.walk import walking


class _Ending(weakref.ref[Any]):
    """A weak reference, to a tensor or a node, with a callback for its end."""

    __slots__ = ("slot",)
    # The slot that the tensor had.
    slot: int


class Watched(list[Any]):
    """A `Recorder.live` that notices the end of each tensor that may have a history."""

    def __init__(self, rec: Any) -> None:
        super().__init__()
        self.ended = functools.partial(_ended, rec)
        # References to the nodes that users hold, by their ids.
        self.nodes: dict[int, _Ending] = {}
        for ref in rec.live:
            self.append(ref)

    def append(self, ref: weakref.ref[Any]) -> None:
        tensor = ref()
        if tensor is not None and tensor._tmeta.requires_grad:
            ref = _Ending(tensor, self.ended)
            ref.slot = tensor._slot
        super().append(ref)

    def watch(self, nodes: Iterable[Any]) -> None:
        """Notices the end of nodes, too."""
        for node in nodes:
            key = id(node)
            if key not in self.nodes or self.nodes[key]() is not node:
                self.nodes[key] = ref = _Ending(node, self.ended)
                ref.slot = -1


def watch(rec: Any) -> None:
    """From now on, notes at nodes of the running recording go with the graph."""
    if not isinstance(rec.live, Watched):
        rec.live = Watched(rec)
    if rec.recording.nodes:
        rec.live.watch(rec.recording.nodes.values())


def watch_node(rec: Any, node: Any) -> None:
    """Notices the end of a new node, where that is of interest."""
    if isinstance(rec.live, Watched):
        rec.live.watch((node,))


def _ended(rec: Any, ref: _Ending) -> None:
    live = rec.live
    if local.rec is not rec or walking.stack or not isinstance(live, Watched):
        return
    state, last = rec.state, live[-1]() if live else None
    if ref.slot in state.operands and last is not None:
        if state.slot <= last._slot < state.n_slots:
            return  # what was just computed from it leads there
    forget_unreached(rec)


def forget_unreached(rec: Any) -> None:
    """Drops what is noted, or packed, at nodes that nothing leads to any more."""
    recording = rec.recording
    tables: list[dict[int, Any]] = [recording.packed]
    if recording.metadata:
        tables.append(recording.metadata)
    if not isinstance(rec.live, Watched) or not any(tables):
        return
    alive, _ = find_alive(rec)
    roots = {slot for _, slot in alive.histories}
    for node in list(recording.nodes.values()) if recording.nodes else ():
        roots.update(node._slots())
    reached = _reached(rec.state, roots)
    gone = [
        (table, depth) for table in tables for depth in table if depth not in reached
    ]
    # What is dropped may have finalizers, which may call this again.
    kept = [table.pop(depth, None) for table, depth in gone]
    del kept


def _reached(state: State, slots: set[int]) -> set[int]:
    """Depths of the events that gradients reach from the values in some slots."""
    found: set[int] = set()
    for event in reversed(state.path()):
        if slots.isdisjoint(range(event.slot, event.n_slots)):
            continue
        found.add(event.depth)
        if event.kind == IDENTITY:
            slots.add(event.operands[0])
            slots.update(part for part in event.key[3:] if isinstance(part, int))
        elif event.kind == CALL:
            slots.update(event.operands[i] for i in event.wrt)
    return found
