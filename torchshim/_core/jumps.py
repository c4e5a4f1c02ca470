"""Jump edges: a whole backward walk remembered as one look-up.

A walk that met no Python code is a function of the path it started from, of what the
leaves' `.grad` held, and of the closed recordings it went through. Where those are as
they were, its effect is repeated without walking.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from torchshim._core.meta import Meta
from torchshim._core.record import Recorder
from torchshim._core.state import Recording, State
from torchshim._core.storage import (
    TensorBase,
    accumulate_lock,
    hidden_writes,
    tensor_class,
    value_lock,
    writes_of,
)

_new = object.__new__
_BOUND = 16  # kinds of walks kept on one state
_VARIANTS = 4  # of one kind, for different histories and grads


@dataclass(slots=True)
class Jump:
    """What one walk did. Recordings are numbered: 0 is the running one."""

    state: State
    # Recordings gone through: (number of the one before, slot there, the state that
    # it was closed at, the slot in it).
    owners: list[tuple[int, int, State, int]]
    # Values that entered: ("saved", owner, slot) or ("grad", position in leaves), and
    # the slot they took.
    entered: list[tuple[str, int, int, int]]
    # (owner, slot of the leaf, what its grad held before, slot and meta of its grad)
    leaves: list[tuple[int, int, Any, int, Meta]]
    copied: list[tuple[int, int, int, int]]
    freed: list[tuple[int, frozenset[int]]]
    results: list[tuple[int, Meta] | None]
    # The first result that is the same object, for each.
    same: list[int]


def has_hooks(leaf: Any) -> bool:
    """Whether Python code runs when a gradient reaches this leaf."""
    node = leaf._node
    return leaf._hooks is not None or not (
        node is None or isinstance(node, weakref.ref)
    )


def grad_status(rec: Recorder, leaf: Any) -> Any:
    """What decides how a gradient is put into a leaf; None: there is no grad yet."""
    grad = leaf._grad
    if grad is None:
        return None
    if grad._storage is not None or grad._hooks is not None:
        return "other"
    slot = grad._slot
    if not rec.owns(slot):
        if grad._array is None:
            return "other"  # pending in another thread's recording
        slot = -1
    return slot, grad._meta


def remember(
    rec: Recorder,
    start: State,
    key: Any,
    walk: Any,
    trace: list[Any],
    before: list[Any],
    results: list[Any],
) -> None:
    """Keeps a walk as a jump edge, unless part of it cannot be repeated."""
    numbers: dict[int, int] = {rec.recording.seq: 0}
    owners: list[tuple[int, int, State, int]] = []
    for seq, (_, parent, slot) in walk.via.items():
        hist = parent.hists[slot]
        if parent.seq not in numbers or hist[0].state is None:
            return
        numbers[seq] = len(numbers)
        owners.append((numbers[parent.seq], slot, hist[0].state, hist[1]))
    named: dict[int, tuple[str, int, int]] = {}
    for tensor, recording, slot in walk.taken.values():
        named[id(tensor)] = "saved", numbers[recording.seq], slot
    leaves: list[tuple[int, int, Any, int, Meta]] = []
    for i, ((leaf, place, _), status) in enumerate(
        zip(walk.leaf_grads, before, strict=True)
    ):
        grad = leaf._grad
        if status == "other" or grad._slot < 0 or type(grad) is not tensor_class[0]:
            return
        named[id(grad)] = "grad", i, 0
        owner = numbers[place[0].seq]
        leaves.append((owner, place[1], status, grad._slot, grad._meta))
    entered: list[tuple[str, int, int, int]] = []
    slots = [
        event.slot
        for event in _between(start, rec.state)
        if event.n_inputs != (event.parent.n_inputs if event.parent else 0)
    ]
    if len(slots) != len(trace):
        return
    for tensor, slot in zip(trace, slots, strict=True):
        name = named.get(id(tensor))
        if name is None:
            return
        entered.append((*name, slot))
    freed: dict[int, set[int]] = {}
    for recording, depth in walk.freed:
        freed.setdefault(numbers[recording.seq], set()).add(depth)
    if start.jumps is None or len(start.jumps) >= _BOUND:
        start.jumps = {}
    variants = start.jumps.setdefault(key, [])
    if len(variants) >= _VARIANTS:
        del variants[0]
    jump = Jump(
        state=rec.state,
        owners=owners,
        entered=entered,
        leaves=leaves,
        copied=[
            (to, numbers[recording.seq], at, n) for to, recording, at, n in walk.copied
        ],
        freed=[(n, frozenset(depths)) for n, depths in freed.items()],
        results=[None if r is None else (rec.slot_of(r), r._meta) for r in results],
        same=[next(k for k, r in enumerate(results) if r is each) for each in results],
    )
    variants.append(jump)


def _between(start: State, end: State) -> list[State]:
    events: list[State] = []
    state: State | None = end
    while state is not None and state is not start:
        events.append(state)
        state = state.parent
    events.reverse()
    return events


def follow(rec: Recorder, jump: Jump) -> list[Any] | None:
    """Repeats a remembered walk; None where something is not as it was then."""
    with accumulate_lock, value_lock:
        return _follow(rec, jump)


def _follow(rec: Recorder, jump: Jump) -> list[Any] | None:
    owners = [rec.recording]
    for number, slot, state, at in jump.owners:
        hist = owners[number].hists.get(slot)
        if hist is None or hist[0].state is not state or hist[1] != at:
            return None
        if hist[0].hooked or hist[0].node_hooks:
            return None
        owners.append(hist[0])
    for number, depths in jump.freed:
        if not depths.isdisjoint(owners[number].freed):
            return None
    leaves = []
    for number, slot, status, _, _ in jump.leaves:
        leaf = owners[number].entered[slot]
        if has_hooks(leaf) or not leaf._meta.requires_grad:
            return None
        if grad_status(rec, leaf) != status:
            return None
        leaves.append(leaf)
    for owner in owners[1:]:
        seldom = hidden_writes[0] != owner.hidden
        for saved in owner.versions.values():
            alive = None if saved.holder is None else saved.holder()
            if saved.writes or (alive is not None and writes_of(alive) != saved[1]):
                return None
            if seldom and saved.outdated():
                return None
    pieces: list[tuple[Any, int]] = []
    for kind, number, at, slot in jump.entered:
        if kind == "grad":
            pieces.append((leaves[number]._grad, slot))
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
    entered = rec.recording.entered
    del rec.inputs[rec.state.n_inputs :]
    rec.inputs += [tensor._array for tensor, _ in pieces]
    scalars = rec.scalars
    for to, number, at, n in jump.copied:
        owner = owners[number]
        source = scalars if number == 0 else owner.scalars
        scalars[to : to + n] = source[at : at + n]
    rec.state = jump.state
    # An interrupt may come anywhere: no slot is given before the flush would take it.
    for tensor, slot in pieces:
        entered[slot] = tensor
        tensor._slot = slot
    live, cls = rec.live, tensor_class[0]
    for leaf, (_, _, status, slot, meta) in zip(leaves, jump.leaves, strict=True):
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
        if number:
            release(owners[number])
    found = [None if r is None else rec.at(*r) for r in jump.results]
    return [found[k] for k in jump.same]


def release(recording: Recording) -> None:
    """Lets go of a closed recording's values once its graph is freed."""
    assert recording.state is not None
    needed = recording.savers
    for slot in [s for s in recording.saved if needed[s] <= recording.freed]:
        del recording.saved[slot]
        recording.tensors.pop(slot, None)
