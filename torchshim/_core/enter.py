"""How tensors come into a recording: inputs, leaves, views, detached aliases."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchshim._core.integers import punched
from torchshim._core.meta import Meta
from torchshim._core.op import ARRAYS, OPT_ARRAYS, SCALAR_ROLES, Op, write_op
from torchshim._core.state import HIDDEN, INPUT, WARNED, Recording, State
from torchshim._core.storage import (
    SLOT_BITS,
    Storage,
    TensorBase,
    plain_classes,
    tensor_class,
    writes_of,
)
from torchshim._core.trie import Trie, frozen_call
from torchshim._core.undo import lost

_new = object.__new__
_INT = (int,)


@dataclass(slots=True)
class Entrance:
    """A jump edge: an event, and what enters just before."""

    state: State
    # (operand, meta, whether it has a history if it can have one, slot)
    entered: Sequence[tuple[int, Meta, bool | None, int]]


class Entering(Trie):
    """Gives tensors slots in the running recording."""

    id: int
    recording: Recording
    trace: list[Any] | None
    levels: list[Any]
    storages: dict[int, Storage]
    mode: Any
    base_tangents: weakref.WeakKeyDictionary[Storage, dict[int, Any]]

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
        """What the operator's function looks up, where an entrance may be found."""
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
            else:
                parts.append(float if kind is float else (kind, arg))
        return tuple(parts)

    def enter(self, key: Any, operands: Sequence[Any]) -> State | None:
        """Repeats a known entrance; None where something is not as it was then.

        `operands`: the arguments, each of a list of tensors. The event's runtime
        scalars are left to the caller.
        """
        start = self.state
        if self.levels and key[0].writes:
            return None  # to what a transform may have captured
        if start.jumps is not None:
            for jump in start.jumps.get(key, ()):
                if self._enter_as(jump, operands):
                    return self.state
        if any(part.__class__ is int and part < 0 for part in key):
            found = self._enter_stored(key, operands)
            if found is not None or self.state is not start:
                return found
        return None if start.learnt is None else self._learnt_event(key, start)

    def _learnt_event(self, key: Any, start: State) -> State | None:
        """A known event with integers that are runtime scalars, which it fills in.

        Not where there are others, which the caller fills in.
        """
        op, learnt = key[0], start.learnt
        if learnt is None or op.warns is not None or any(p is float for p in key):
            return None
        places = [
            i for i, p in enumerate(key) if p.__class__ is tuple and p[:1] == _INT
        ]
        mask = learnt.get(tuple(punched(key, [(i, None) for i in places])))
        if mask is None:
            return None
        chosen = [i for i, dynamic in zip(places, mask, strict=True) if dynamic]
        found = start.next.get(tuple(punched(key, [(i, None) for i in chosen])))
        if found is not None:
            values = [key[i][1] for i in chosen]
            self.scalars[found.scalar : found.n_scalars] = values
        return found

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
                    simple = storage.shared is None and not t._meta.requires_grad
                    stored = True
                if not simple:
                    return None  # whoever looks at it next is to see it as it is
        if not stored:
            return None
        slots = [
            self.slot_of(t) if isinstance(t, TensorBase) else part
            for part, t in zip(key[2:], operands, strict=True)
        ]
        return self.state.next.get((*key[:2], *slots))

    def _enter_as(self, jump: Entrance, operands: Sequence[Any]) -> bool:
        start, inputs, recording = self.state, self.inputs, self.recording
        entered = recording.entered
        seen: list[tuple[TensorBase, int]] = []  # on NumPy's memory
        del inputs[start.n_inputs :]
        try:
            for i, meta, history, slot in jump.entered:
                t = operands[i]
                array = t._array  # other threads may write to it
                if (
                    t._meta is not meta
                    or t._slot >= 0  # it stands among the operands twice
                    or (history is not None and history is not has_history(t))
                ):
                    return False
                if array is None or t._storage is not None:
                    array = self._from_numpy(t)
                    if array is None:
                        return False
                    inputs.append(array)
                    seen.append((t, slot))
                    continue
                if history:
                    recording.hists[slot] = t._hist
                inputs.append(array)
                entered[slot] = t
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
                    if entered.get(slot) is operands[i]:
                        operands[i]._slot = -1
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
        self.note_memory(slot, storage)

    def owns(self, slot: int) -> bool:
        """Whether a slot is one of this recorder's."""
        return slot >> SLOT_BITS == self.id

    def slot_of(self, tensor: TensorBase) -> int:
        """The slot of a tensor; one that is not in the recording enters it."""
        slot = tensor._slot
        if slot >= 0:
            if slot >> SLOT_BITS == self.id:
                return slot
            return self._foreign(tensor)
        storage = tensor._storage
        if storage is not None and storage.slot < 0:
            self.give_back(storage)
        if tensor._storage is None:
            return self._enter(tensor)
        self.live.append(weakref.ref(tensor))
        slot = self._derive(tensor, tensor._storage)
        if tensor._own_version is not None:
            slot = self.counted_apart(tensor, slot)
        tangents = tensor._tangents
        if tangents and tensor._tangent_version == tensor._storage.version:
            self.recording.duals[slot] = tangents
        return slot

    def slot_seen(self, tensor: TensorBase) -> int:
        """As `slot_of`, for one who looks where a tensor is and records nothing.

        On memory that NumPy shares it is there for this moment only.
        """
        slot = self.slot_of(tensor)
        if self.volatile:
            self._forget_volatile()
        return slot

    @staticmethod
    def give_back(storage: Storage) -> None:
        """A tensor that is alone on its storage carries its value itself again."""
        tensors = storage.tensors()
        if len(tensors) != 1 or storage.shared is not None or storage.array is None:
            return
        tensor = tensors[0]
        if (
            tensor._path
            or tensor._view_of is not None
            or tensor._own_version is not None
        ):
            return
        if tensor._meta.offset or storage.meta.strides != tensor._meta.strides:
            return
        tensor._array = storage.array
        tensor._versions = storage.version
        tensor._storage = None
        storage.array = None
        storage.home = weakref.ref(tensor)
        tensor._former = storage

    def _enter(self, tensor: TensorBase) -> int:
        meta = tensor._meta
        if tensor._array is None and tensor._raw >= 0:
            self.live.append(weakref.ref(tensor))
            slot = tensor._slot = self._role(tensor, None, self._own_raw(tensor))
            return slot
        array = tensor._array
        if array is None:
            if tensor._slot < 0 and tensor._lost is not None:
                raise lost(tensor)
            # Another thread took the tensor into its recording just now.
            return self.slot_of(tensor)
        hist = tensor._hist if meta.requires_grad and not meta.leaf else None
        key = (INPUT, meta) if hist is None else (INPUT, meta, Recording)
        slot = self._input(key, meta, array)
        if tensor._tangents:
            self.recording.duals[slot] = tensor._tangents
        # An interrupt may come anywhere: what has a slot has its history.
        if hist is not None:
            self.recording.hists[slot] = hist
        self.recording.entered[slot] = tensor
        if tensor._array is array:
            tensor._slot = slot
        if self.trace is not None:
            self.trace.append(tensor)
        return slot

    def _own_raw(self, tensor: TensorBase) -> int:
        raw = tensor._raw
        if raw >> SLOT_BITS == self.id:
            return raw
        meta = tensor._meta.plain
        slot = self._input((INPUT, meta), meta, self._foreign_array(tensor))
        self.note_memory(slot, tensor)
        return slot

    def note_memory(self, slot: int, holder: Storage | TensorBase) -> None:
        """Notes which memory a value is in, whose writes no event will tell of."""
        note = weakref.ref(holder), writes_of(holder)
        self.recording.elsewhere.setdefault(slot, note)

    def _role(self, tensor: TensorBase, storage: Storage | None, slot: int) -> int:
        """Gives a raw value the autograd role of the tensor that shows it."""
        meta = tensor._meta
        if not meta.requires_grad:
            tracked = storage is not None and storage.tracked and slot == storage.slot
            return self.identity(slot, meta) if tracked else slot
        if meta.leaf or tensor._hist is None:
            slot = self.identity(slot, meta)
            self.recording.entered[slot] = tensor
            return slot
        owner, old = tensor._hist
        mark = (0, old) if owner is self.recording else (Recording,)
        slot = self.identity(slot, meta, *mark)
        self.recording.hists[slot] = tensor._hist
        self.recording.entered[slot] = tensor
        return slot

    def counted_apart(self, tensor: TensorBase, slot: int) -> int:
        """What `.data` gave has a slot of its own, as it has a version of its own."""
        meta, cell = tensor._meta, tensor._own_version
        assert cell is not None
        if not meta.requires_grad:
            slot = tensor._slot = self.identity(slot, meta, HIDDEN)
        self.recording.apart[slot] = weakref.ref(tensor), cell, cell[0]
        return slot

    def _share_tangents(
        self, piece: TensorBase, path: Sequence[Any], storage: Storage
    ) -> None:
        """Gives a value the tangents of the tensor that shows the same, if any."""
        duals = self.recording.duals
        if piece._slot in duals:
            return
        for alias in storage.tensors():
            way = alias._path
            if len(way) == len(path) and all(map(operator.is_, way, path)):
                found = duals.get(alias._slot)
                if found is None and alias._tangent_version == storage.version:
                    found = alias._tangents
                if found:
                    duals[piece._slot] = found

    def raw(self, storage: Storage) -> int:
        """The slot of a storage's base value."""
        slot = storage.slot
        if slot < 0:
            slot = self._input((INPUT, storage.meta), storage.meta, storage.array)
            self._note_base(storage, slot)
            if storage in self.base_tangents:
                self.recording.duals[slot] = self.base_tangents[storage]
            if self.trace is not None:
                self.trace.append(storage)
        elif slot >> SLOT_BITS != self.id:
            array = self._foreign_array(storage)
            slot = self._input((INPUT, storage.meta), storage.meta, array)
            self.note_memory(slot, storage)
            return slot
        self.storages[id(storage)] = storage
        return slot

    def _note_base(self, storage: Storage, slot: int) -> None:
        self.recording.bases[slot] = storage
        self.storages[id(storage)] = storage
        storage.slot = slot
        storage.tracked = False

    def _derive(self, tensor: TensorBase, storage: Storage) -> int:
        """The slot of a tensor that shares its storage, from the base value."""
        meta = tensor._meta
        shared = storage.shared
        if shared is not None:
            self.volatile.append(tensor)
            if tensor._path and not meta.requires_grad and storage.slot < 0:
                # A view of numpy's memory enters by itself, without its base.
                piece = shared.piece(tensor)
                if piece is not None:
                    slot = tensor._slot = self._input((INPUT, meta), meta, piece)
                    self.note_memory(slot, storage)
                    return slot
            shared.refresh(storage)
            self.note_memory(self.raw(storage), storage)
        base = tensor._view_of
        if base is not None and tensor._hist is not None:
            if tensor._hist_version == storage.version:
                base = None  # unmodified since: its own history goes on
            else:
                tensor._hist = None
        left = base is not None and base._storage is not storage
        if base is not None and meta.requires_grad and not meta.leaf:
            # A differentiable view: the history goes through its base.
            source, done = base, 0 if left else len(base._path)
        else:
            source, done = None, 0
        if len(tensor._path) == done and source is None:
            slot = tensor._slot = self._role(tensor, storage, self.raw(storage))
            return slot
        if source is None:
            piece = _new(TensorBase)
            piece._meta = storage.meta
            piece._array = None
            raw = self.raw(storage)
            piece._slot = self.identity(raw, storage.meta) if storage.tracked else raw
        elif left:
            # The base is on other memory by now: `.data` was assigned to.
            piece = self.ending_at(self.raw(storage), storage.meta, tensor)
        elif source._meta.requires_grad:
            self.slot_of(source)
            piece = source
        else:
            # Written to since it was made, by way of a base without history:
            # PyTorch makes its node anew, and that leads nowhere.
            piece = self.ending_at(self.slot_of(source), source._meta, tensor)
        piece = self._piece_of(piece, tensor, done, source is not None)
        slot = piece._slot
        if source is None and meta.requires_grad:
            slot = self._role(tensor, storage, slot)
        elif piece is not source and piece._meta is not meta:
            tensor._meta = meta.replace(
                requires_grad=piece._meta.requires_grad,
                leaf=piece._meta.leaf,
                levels=piece._meta.levels,
            )
        tensor._slot = slot
        if shared is not None:
            self.volatile.append(tensor)  # the views on the way forgot it
        if tensor._hooks is not None and source is not None:
            tensor._hooks.derived(self, tensor)
        return slot

    def ending_at(self, slot: int, meta: Meta, view: TensorBase) -> TensorBase:
        """The base of a view that requires grad, from where no gradient goes on."""
        levels = view._meta.levels
        meta = meta.replace(requires_grad=True, leaf=True, levels=levels)
        piece = self.at(self.identity(slot, meta, Recording), meta)
        end = _new(tensor_class[0])
        end._slot, end._meta, end._array = -1, meta, None
        self.recording.entered[piece._slot] = end
        return piece

    def _piece_of(
        self, whole: TensorBase, view: TensorBase, done: int, grad: bool
    ) -> TensorBase:
        """What a view shows of `whole`, by its path but for the first `done` steps."""
        before = self.grad
        try:
            self.grad = grad
            self.set_mode()
            plain = not (self.volatile or self.recording.duals)
            for op, args, k in view._path[done:]:
                key = op, self.bits, self.slot_of(whole), *args
                found = self.state.next.get(key) if plain else None
                if found is None:
                    found = self.call(op, [whole, *args])
                else:
                    self.state = found
                whole = self.result(found, k)
        finally:
            self.grad = before
            self.set_mode()
        return whole

    def write_back(
        self,
        whole: TensorBase,
        steps: Sequence[Any],
        new: TensorBase,
        writer: TensorBase,
        before: int = 0,
    ) -> TensorBase:
        """The base with a piece replaced, through every step of a view path.

        That of `writer`, from where it has taken `before` steps.
        """
        pieces = [whole]
        for op, args, k in steps[:-1]:
            pieces.append(self.result(self.call(op, [pieces[-1], *args]), k))
            if self.forward and writer._storage is not None:
                # One on the way may be what `make_dual` gave.
                path = writer._path[: before + len(pieces) - 1]
                self._share_tangents(pieces[-1], path, writer._storage)
        for (op, args, k), piece in zip(reversed(steps), reversed(pieces), strict=True):
            new = self.result(self.call(write_op(op), [piece, new, *args, k]))
        return new

    def derived_anew(self, view: TensorBase) -> TensorBase:
        """A view about to be written to, without the hooks on the way to its base.

        PyTorch leaves the nodes that a view was made by out of the graph then.
        """
        base, storage, recording = view._view_of, view._storage, self.recording
        grad = view._meta.requires_grad and not view._meta.leaf
        if base is None or storage is None or not (grad and self.grad):
            return view
        if not base._meta.requires_grad:
            return view
        hooked = recording.hooked or recording.node_hooks
        if not hooked and all(t._hooks is None for t in storage.tensors()):
            return view
        self.slot_of(base)
        return self._piece_of(base, view, len(base._path), True)

    def renamed(self, tensor: TensorBase) -> TensorBase:
        """Another tensor with the same value and no history."""
        meta = tensor._meta.plain
        twin = _new(tensor_class[0])
        twin._slot = self.identity(self.slot_of(tensor), meta)
        twin._meta = meta
        twin._array = None
        self.live.append(weakref.ref(twin))
        return twin

    def shared_views(self, op: Op, args: Sequence[Any]) -> list[TensorBase] | None:
        """Views of memory that numpy shares, made without recording anything."""
        base = args[0]
        metas, _, view = self.infer(frozen_call(op, args[1:]), [base._meta])
        if not view:
            return None
        made = []
        for k, meta in enumerate(metas):
            tensor = _new(tensor_class[0])
            tensor._slot = -1
            tensor._meta = meta
            tensor._array = None
            self.link(tensor, base, op, args[1:], k)
            made.append(tensor)
        return made

    def link(
        self, view: TensorBase, base: TensorBase, op: Op, args: Any, k: int = 0
    ) -> None:
        raise NotImplementedError

    def _foreign(self, tensor: TensorBase) -> int:
        raise NotImplementedError

    def _foreign_array(self, holder: Storage | TensorBase) -> Any:
        raise NotImplementedError


def entering_operands(
    operands: Sequence[Any],
) -> list[tuple[int, Meta, bool | None]] | None:
    """Tensors that enter with their next use; None if one does not simply enter.

    Each with its place, its meta, and whether it has a history, where it can have one.
    """
    found: list[tuple[int, Meta, bool | None]] = []
    for i, t in enumerate(operands):
        if isinstance(t, TensorBase) and t._slot < 0:
            storage = t._storage
            if storage is None:
                if t._array is None:
                    return None
            elif storage.slot >= 0 or not simply_shown(t, storage):
                return None
            inner = t._meta.requires_grad and not t._meta.leaf
            found.append((i, t._meta, has_history(t) if inner else None))
    return found


def simply_shown(tensor: TensorBase, storage: Storage) -> bool:
    """Whether a tensor shows NumPy's memory and that is all there is to it."""
    meta = tensor._meta
    return (
        storage.shared is not None
        and not meta.requires_grad
        and not tensor._tangents
        and tensor._own_version is None
        and (bool(tensor._path) or storage.meta is meta)
    )


def has_history(tensor: TensorBase) -> bool:
    return tensor._hist is not None
