"""Entrances: an operator, and the tensors that enter with it, found by one look-up.

After a flush no tensor has a slot, so that an operator's key is not in `State.next`.
What entered with it the last time is kept under that key as a jump edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchshim._core.enter import Entering
from torchshim._core.forward import through_dual
from torchshim._core.meta import Meta
from torchshim._core.op import ARRAYS, OPT_ARRAYS, SCALAR_ROLES, Op
from torchshim._core.state import INPUT, WARNED, State
from torchshim._core.storage import (
    Storage,
    TensorBase,
    plain_classes,
    tensor_class,
)


@dataclass(slots=True)
class Entrance:
    """A jump edge: an event, and what enters just before."""

    state: State
    # (number of the operand, its meta, whether it has a history (None: it can't have
    # one), the slot it gets)
    entered: Sequence[tuple[int, Meta, bool | None, int]]


class Entrances(Entering):
    """Remembers what entered with an operator, and repeats it."""

    levels: list[Any]
    mode: Any

    def call_entering(self, op: Op, args: Sequence[Any]) -> State:
        """As `call`; remembers an entrance for the next time."""
        start, key = self.state, self._hot_key(op, args)
        operands: list[Any] = []
        for param, arg in zip(op.params, args, strict=True):
            operands += arg if param.role in (ARRAYS, OPT_ARRAYS) else (arg,)
        entering = None if key is None else entering_operands(operands)
        state = self.call(op, args)
        if entering:
            n_floats = sum(part is float for part in key or ())
            self.remember_entrance(start, key, state, operands, entering, n_floats)
        return state

    def _hot_key(self, op: Op, args: Sequence[Any]) -> tuple[Any, ...] | None:
        """The key that the operator's function looked up; None: no entrance has it."""
        if self.mode is None:
            return None  # tangents follow each event
        plain = tensor_class[0]
        parts: list[Any] = [op, self.bits]
        for param, arg in zip(op.params, args, strict=True):
            kind = arg.__class__
            if kind is plain or kind in plain_classes:
                parts.append(arg._slot)
            elif isinstance(arg, TensorBase):
                return None
            elif param.role in (ARRAYS, OPT_ARRAYS):
                if not all(t is None or t.__class__ is plain for t in arg):
                    return None
                parts.append(tuple([None if t is None else t._slot for t in arg]))
            elif arg is None or param.role not in SCALAR_ROLES:
                parts.append(arg)
            elif kind is float and arg not in op.own_floats.get(param.name, ()):
                parts.append(float)
            else:
                parts.append((kind, arg))
        return tuple(parts)

    def enter_known(self, key: Any, operands: Sequence[Any]) -> State | None:
        """Repeats a known entrance; None where something is not as it was then.

        `operands`: the arguments, with each tensor of a list. The caller fills in the
        event's runtime scalars.
        """
        start = self.state
        if self.levels and key[0].writes:
            return None  # it may write to what a transform captured
        if start.jumps is not None:
            for jump in start.jumps.get(key, ()):
                if self._enter_as(jump, operands):
                    return self.state
        if any(part.__class__ is int and part < 0 for part in key):
            found = self._enter_stored(key, operands)
            if found is not None or self.state is not start:
                return found
        return None if start.learnt is None else self._learnt_event(key, start)

    def _enter_stored(self, key: Any, operands: Sequence[Any]) -> State | None:
        """Has tensors without history enter from their storages, and looks up then."""
        if key[1] is None or self.levels or self.trace is not None:
            return None
        if len(operands) != len(key) - 2:
            return None  # a list among them
        stored = False
        for part, t in zip(key[2:], operands, strict=True):
            if isinstance(t, TensorBase):
                if part.__class__ is not int or part != t._slot:
                    return None  # operators are overridden for it
                if part >= 0:
                    continue
                storage = t._storage
                if storage is None:
                    simple = t._array is not None
                else:
                    simple = storage.shared is None and not t._tmeta.requires_grad
                    stored = True
                if not simple:
                    return None  # whoever looks at it next is to see it as it is
        if not stored and not leads_to_learnt(self.state, operands):
            return None
        slots = [
            self.slot_of(t) if isinstance(t, TensorBase) else part
            for part, t in zip(key[2:], operands, strict=True)
        ]
        key = *key[:2], *slots
        found = self.state.next.get(key)
        return self._learnt_event(key, self.state) if found is None else found

    def _enter_as(self, jump: Entrance, operands: Sequence[Any]) -> bool:
        """Repeats an entrance; False, and nothing is done, if something has changed."""
        start, inputs, recording = self.state, self.inputs, self.recording
        entered = recording.entered
        seen: list[tuple[TensorBase, int]] = []  # on NumPy's memory
        del inputs[start.n_inputs :]
        try:
            for i, meta, history, slot in jump.entered:
                t = operands[i]
                storage = t._storage
                # What shared it may be gone by now. (Not what NumPy let go of just now:
                # it has entered as memory, and may stand among the operands again.)
                if storage is not None and storage.shared is None and not seen:
                    self.give_back(storage)
                array = t._array  # other threads may write to it
                if t._tmeta is not meta or (
                    history is not None and history is not has_history(t)
                ):
                    return False
                if array is None or t._storage is not None:
                    array = None if t._slot >= 0 else self._from_numpy(t)
                    if array is None:
                        return False
                    inputs.append(array)
                    seen.append((t, slot))
                    continue
                if history:
                    recording.hists[slot] = t._hist
                inputs.append(array)
                entered[slot] = t
                # It stands among the operands twice, or another thread took it; there
                # is no call, where that could happen, between this and the next line.
                if t._slot >= 0:
                    return False
                t._slot = slot
            self.state = jump.state
            for t, slot in seen:
                self._note_numpy(t, slot)
            if self.trace is not None:
                self.trace += [operands[i] for i, *_ in jump.entered]
            return True
        finally:
            if self.state is start:
                for i, _, _, slot in jump.entered:
                    recording.hists.pop(slot, None)
                    if (t := operands[i]) is entered.get(slot):
                        if t._slot == slot:
                            t._slot = -1
                        del entered[slot]

    def remember_entrance(
        self,
        start: State,
        key: Any,
        state: State,
        operands: Sequence[Any],
        entering: Sequence[tuple[int, Meta, bool | None]] | None,
        n_floats: int,
    ) -> None:
        """Makes a jump edge of the events from `start` to `state`, if it can be one."""
        if (
            entering is None
            or state.key[0] is WARNED
            or state.n_inputs - start.n_inputs != len(entering)
            or state.n_scalars - start.n_scalars != n_floats
            or state.depth - start.depth != len(entering) + 1
        ):
            return
        for t in operands:
            if isinstance(t, TensorBase) and t._slot >= 0 and not self.owns(t._slot):
                return  # pending in another thread's recording
        slots = range(start.n_slots, start.n_slots + len(entering))
        for (i, *_), slot in zip(entering, slots, strict=True):
            t = operands[i]
            if t._slot != slot and t._storage is None:
                return  # in another thread's recording by now
        entered = [(*entry, slot) for entry, slot in zip(entering, slots, strict=True)]
        start.remember(key, Entrance(state, entered))

    def _from_numpy(self, tensor: TensorBase) -> Any:
        """The array by which a tensor on NumPy's memory enters, as it is now.

        None where it does not simply enter.
        """
        storage = tensor._storage
        if (
            self.trace is not None
            or storage is None
            or storage.slot >= 0
            or not simply_shown(tensor, storage)
            or storage in self.base_tangents
        ):
            return None
        assert storage.shared is not None
        if tensor._path:
            return storage.shared.piece(tensor)
        storage.shared.refresh(storage)
        return storage.array

    def _note_numpy(self, tensor: TensorBase, slot: int) -> None:
        """Notes where a tensor on NumPy's memory entered, see `_derive`."""
        storage = tensor._storage
        assert storage is not None
        if not tensor._path:
            self._note_base(storage, slot)
        self.note_memory(slot, storage, tensor._path)


def entering_operands(
    operands: Sequence[Any],
) -> list[tuple[int, Meta, bool | None]] | None:
    """The operands that enter with an operator; None if one does not simply enter.

    As in `Entrance.entered`, before they have slots.
    """
    found: list[tuple[int, Meta, bool | None]] = []
    for i, t in enumerate(operands):
        if isinstance(t, TensorBase) and t._slot < 0:
            storage = t._storage
            if storage is not None:
                Entering.give_back(storage)  # if it is alone there by now
                storage = t._storage
            if storage is None:
                if t._array is None:
                    return None
            elif storage.slot >= 0 or not simply_shown(t, storage):
                return None
            inner = t._tmeta.requires_grad and not t._tmeta.leaf
            found.append((i, t._tmeta, has_history(t) if inner else None))
    return found


def simply_shown(tensor: TensorBase, storage: Storage) -> bool:
    """Whether a tensor shows NumPy's memory, and nothing else is to be known of it."""
    meta = tensor._tmeta
    return (
        storage.shared is not None
        and not meta.requires_grad
        and not tensor._tangents
        and not through_dual(tensor._path)
        and tensor._own_version is None
        and (bool(tensor._path) or storage.meta is meta)
    )


def leads_to_learnt(start: State, operands: Sequence[Any]) -> bool:
    """Whether integers are runtime scalars where these operands have entered.

    Then an entrance, which is for certain values of the integers, does not help.
    """
    state: State | None = start
    for t in operands:
        if isinstance(t, TensorBase) and t._slot < 0:
            state = state.next.get((INPUT, t._tmeta))
            if state is None:
                return False
    return state.learnt is not None


def has_history(tensor: TensorBase) -> bool:
    return tensor._hist is not None
