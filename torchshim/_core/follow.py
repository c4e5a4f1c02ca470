"""Repeats a walk that is remembered as jump edges, piece by piece.

First everything that a piece depends on is compared. If anything differs, the piece is
not repeated, and nothing has been changed.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from torchshim._core.jumps import Jump, grad_status
from torchshim._core.leaf_facts import hook_kinds
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


def start(
    rec: Recorder, key: Any, owners: list[Recording], held: dict[Any, Any]
) -> tuple[Jump | None, list[Any]]:
    """Repeats the first piece of a walk that is known here.

    Returns its jump edge (None: there is none that fits) and its results.
    """
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

    `owners`: the recordings that earlier pieces went through, to which this one adds
    its own. `held`: the gradients on their way, by slot.
    """
    if jump.inner:
        for number, depths in jump.used:
            if not depths.isdisjoint(owners[number].freed):
                return None
        if jump.idle and not _idle_leaves_unchanged(jump, owners):
            return None
        if jump.copied:
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
    owners = _owners(jump, before)
    if owners is None:
        return None
    if jump.idle and not _idle_leaves_unchanged(jump, owners):
        return None
    found = _leaves(rec, jump, owners)
    if found is None or (jump.checked and _was_overwritten(jump, owners)):
        return None
    leaves, grads = found
    if jump.sparse and not _sparse_leaves_unchanged(jump, owners):
        return None
    entering = None
    if jump.entered:
        entering = _entering(jump, owners, grads, held)
        if entering is None:
            return None
    # From here on nothing can fail.
    if owners is not before:
        before[:] = owners
    if jump.copied:
        _copy_scalars(rec, jump, owners)
    if entering:
        enter(rec, jump.state, entering)
        for kind, number, _, slot in jump.entered:
            if kind == "held":
                held[slot] = held[number]
    else:
        rec.state = jump.state
    _deliver(rec, jump, leaves, grads)
    for number, slot, _, _, parts, made in jump.sparse:
        owners[number].entered[slot]._grad = made(
            [rec.tensor_on(*part) for part in parts]
        )
    for number, depths in jump.freed:
        owners[number].freed |= depths
        if owners[number].state is not None:
            release(owners[number])
    if not jump.results:
        return []
    results = [
        None if r is None else held[r[0]] if r[0] in held else rec.tensor_on(*r)
        for r in jump.results
    ]
    return [results[k] for k in jump.same]


def _owners(jump: Jump, before: list[Recording]) -> list[Recording] | None:
    """The recordings up to and with this piece; None if they are others by now."""
    owners = before
    if jump.owners:
        owners = before[:]
        for number, slot, state, at, hooked, nodes in jump.owners:
            hist = owners[number].hists.get(slot)
            if hist is None or hist[0].state is not state or hist[1] != at:
                return None
            if hist[0].hooked.keys() != hooked or hist[0].node_hooks.keys() != nodes:
                return None
            if hist[0].detached:
                return None
            owners.append(hist[0])
    for number, slot, reached, at in jump.crossings:
        hist = owners[number].hists.get(slot)
        if hist is None or hist[0] is not owners[reached] or hist[1] != at:
            return None
    for number, depths in jump.used:
        if not depths.isdisjoint(owners[number].freed):
            return None
    return owners


def _idle_leaves_unchanged(jump: Jump, owners: Sequence[Recording]) -> bool:
    """Whether the leaves that get no gradient in this piece have the hooks they had."""
    for number, slot, kinds in jump.idle:
        leaf = owners[number].entered.get(slot)
        if leaf is None or hook_kinds(leaf) != kinds:
            return False
    return True


def _leaves(
    rec: Recorder, jump: Jump, owners: Sequence[Recording]
) -> tuple[list[Any], list[Any]] | None:
    """The leaves that get gradients, and their `.grad`s; None if one has changed.

    They are many: functions are called only for those that have hooks, or a `.grad`.
    Another thread may drop a `.grad` at any time: each is looked at once.
    """
    leaves: list[Any] = []
    grads: list[Any] = []
    for number, slot, hooks, meta, status, _, _ in jump.leaves:
        leaf = owners[number].entered[slot]
        if leaf._tmeta is not meta:
            return None
        if hooks or leaf._hooks is not None or leaf._node is not None:
            if hook_kinds(leaf) != hooks:
                return None
        grad = leaf._grad
        if status is not None or grad is not None:
            if grad_status(rec, grad) != status:
                return None
        leaves.append(leaf)
        grads.append(grad)
    return leaves, grads


def _sparse_leaves_unchanged(jump: Jump, owners: Sequence[Recording]) -> bool:
    """Whether the leaves that get sparse gradients are as they were then."""
    for number, slot, hooks, meta, _, _ in jump.sparse:
        leaf = owners[number].entered[slot]
        if hook_kinds(leaf) != hooks or leaf._tmeta is not meta:
            return False
        if leaf._grad is not None:
            return False
    return True


def _was_overwritten(jump: Jump, owners: Sequence[Recording]) -> bool:
    """Whether a saved value that was used as it is has been written to."""
    for number, slots, counted in jump.checked:
        owner = owners[number]
        seldom = hidden_writes[0] != owner.hidden
        for slot in slots:
            saved = owner.versions.get(slot)
            if saved is None:
                continue
            if counted and (saved.writes or saved.written()):
                return True
            if (seldom or saved.hidden is None) and saved.outdated():
                return True
    return False


def _entering(
    jump: Jump,
    owners: Sequence[Recording],
    grads: Sequence[Any],
    held: dict[Any, Any],
) -> list[tuple[Any, int]] | None:
    """The values that enter the recording, and their slots; None if they can't."""
    entering: list[tuple[Any, int]] = []
    for kind, number, at, slot in jump.entered:
        if kind == "grad":
            tensor = grads[number]
        elif kind == "held":
            tensor = held[number]
            if (
                tensor._slot >= 0
                or tensor._array is None
                or tensor._storage is not None
                or tensor._tmeta is not at
            ):
                return None
        else:
            owner = owners[number]
            tensor = owner.tensors.get(at)
            if tensor is None:
                tensor = _new(TensorBase)
                tensor._slot = -1
                tensor._tmeta = None  # type: ignore[assignment]
                tensor._array = owner.saved[at]
            elif tensor._slot >= 0:
                return None
        entering.append((tensor, slot))
    # One tensor may be the `.grad` of several leaves by now: the path does not tell it.
    if jump.adds and len({id(tensor) for tensor, _ in entering}) < len(entering):
        return None
    return entering


def enter(rec: Recorder, state: State, entering: Sequence[tuple[Any, int]]) -> None:
    """Steps to a state past what enters now: values, and the slots they get there."""
    entered = rec.recording.entered
    del rec.inputs[rec.state.n_inputs :]
    rec.inputs += [tensor._array for tensor, _ in entering]
    rec.state = state
    # An interrupt may come anywhere: no slot is given before the flush would take it.
    for tensor, slot in entering:
        entered[slot] = tensor
        tensor._slot = slot


def _deliver(
    rec: Recorder, jump: Jump, leaves: Sequence[Any], grads: Sequence[Any]
) -> None:
    """Puts the gradients into the leaves."""
    live, cls = rec.live, tensor_class[0]
    places = zip(leaves, grads, jump.leaves, strict=True)
    for leaf, grad, (*_, status, slot, meta) in places:
        if status is None:
            grad = _new(cls)
            grad._tmeta = meta
        else:
            grad._versions += 1
        live.append(weakref.ref(grad))
        grad._slot = slot
        grad._array = None
        if status is None:
            leaf._grad = grad


def release(recording: Recording) -> None:
    """Drops the values of a closed recording that only freed events needed."""
    assert recording.state is not None
    needed = recording.savers
    for slot in [s for s in recording.saved if needed[s] <= recording.freed]:
        del recording.saved[slot]
        recording.tensors.pop(slot, None)
        recording.versions.pop(slot, None)
