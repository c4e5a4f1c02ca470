"""Writes in place: to tensors, through views, with history or without."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core.entrances import entering_operands
from torchshim._core.meta import Meta
from torchshim._core.naming import grad_name
from torchshim._core.op import Op
from torchshim._core.state import HIDDEN, INPUT, MARK, MOVED, WRITTEN, State
from torchshim._core.storage import (
    REPLACED,
    SHARED_WITHIN,
    CountOf,
    Storage,
    TensorBase,
    bits_of,
    hidden_writes,
    placement,
    repeats,
    steps_from,
)
from torchshim._core.versions import number_of
from torchshim._core.views import Viewing, differentiable, view_error
from torchshim._errors import triggered, warn

_INFERENCE_WRITTEN = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can "
    "make a clone to get a normal tensor before doing inplace update.See "
    "https://github.com/pytorch/rfcs/pull/17 for more details."
)
WRITTEN_LEAF = (
    "a leaf Variable that requires grad is being used in an in-place operation."
)
WRITTEN_VIEW = (
    "a view of a leaf Variable that requires grad is being used in an in-place "
    "operation."
)
_EXPANDED = (
    "Use of {} on expanded tensors is deprecated. Please clone() the tensor before "
    "performing this operation. This also applies to advanced indexing e.g. {}"
)


def autograd_sees(op: Op | None) -> bool:
    """Whether autograd sees a write by this operator, which may have gradients."""
    return op is None or op.differentiable is not False


class Writing(Viewing):
    """Replaces the values of tensors."""

    raws: list[TensorBase]
    unstored: list[tuple[TensorBase, TensorBase]]
    delivering: bool
    levels: list[Any]

    def check_captured(
        self, tensor: TensorBase, op: Op | str, args: Sequence[Any] = ()
    ) -> None:
        raise NotImplementedError

    def write_tangents(self) -> None:
        raise NotImplementedError

    def check_writable(
        self, tensor: TensorBase, op: Op | None = None, args: Sequence[Any] = ()
    ) -> None:
        """Raises where PyTorch forbids an in-place operator on this tensor."""
        meta = tensor._tmeta
        if self.levels and op is not None:
            self.check_captured(tensor, op, args)
        self.check_inference(tensor)
        if autograd_sees(op):
            self.check_history(tensor, args)
        if repeats(meta.shape, meta.strides):
            onto_itself = (
                op is not None
                and op.name == "copy_"
                and isinstance(other := args[1], TensorBase)
                and (other is tensor or other._storage is tensor._storage is not None)
                and placement(other) == placement(tensor)
                and bits_of(other) == bits_of(tensor)
            )
            # PyTorch would write to a copy of a tensor with bits, and copy that back.
            overlaps = op is not None and op.overlaps and not bits_of(tensor)
            if op is None or not (overlaps or onto_itself):
                raise RuntimeError(SHARED_WITHIN)
            if isinstance(op.overlaps, tuple):
                name, form, line = op.overlaps
                where = f"aten/src/ATen/native/TensorAdvancedIndexing.cpp:{line}"
                text = triggered(_EXPANDED.format(name, form), where)
                warn(text)

    def check_inference(self, tensor: TensorBase) -> None:
        """Raises for a tensor without a version counter, outside of inference mode."""
        if tensor._tmeta.inference and not self.inference:
            if tensor._own_version is None:
                raise RuntimeError(_INFERENCE_WRITTEN)

    def check_history(self, tensor: TensorBase, args: Sequence[Any]) -> None:
        """Raises where autograd would track a write to a leaf, or to certain views.

        Those were made in a way that PyTorch cannot rewrite their history.
        """
        if not self.grad:
            return
        meta, base = tensor._tmeta, tensor._view_of
        if tensor._view_note is not None and (
            meta.requires_grad
            or any(isinstance(a, TensorBase) and a._tmeta.requires_grad for a in args)
        ):
            raise RuntimeError(view_error(tensor))
        if meta.requires_grad:
            if base is not None and base._tmeta.leaf:
                raise RuntimeError(WRITTEN_VIEW)
            if meta.leaf or tensor._unaware:
                raise RuntimeError(WRITTEN_LEAF)

    def write(self, tensor: TensorBase, new: TensorBase) -> None:
        """Replaces a tensor's value by `new` (same shape and dtype), in place.

        Tracked by autograd where `new` requires grad or grad mode is on and the tensor
        has history; an untracked write leaves the history as it was.
        """
        meta = tensor._tmeta
        if tensor._view_note is not None and self.grad and new._tmeta.requires_grad:
            raise RuntimeError(view_error(tensor))
        untracked = not self.grad and meta.requires_grad
        base = tensor if tensor._view_of is None else tensor._view_of
        if tensor._storage is None:
            slot = self.slot_of(new)
            old = tensor._slot if tensor._raw < 0 else tensor._raw
            if not self.owns(old):
                self.tell_owner(tensor, old)
            elif self.state.write != old:
                self._overwritten(old, slot)
            self.set_value(tensor, slot, new._tmeta)
            return
        storage = self.storage_of(tensor)
        read = None if storage.shared is None else self._read_by(tensor, storage, new)
        tracked = not untracked and (new._tmeta.requires_grad or meta.requires_grad)
        written = whole = new
        left = base is not tensor and base._storage is not storage
        if tracked:
            if left:
                self.storage_of(base)  # by now its value is in other memory
            steps = steps_from(base, tensor)
            if steps:
                self.slot_of(base)
                self.recording.pieces[new._slot] = weakref.ref(tensor), tensor._path
                written = whole = self.write_back(base, steps, new)
            if left:
                raw = self._raw_tensor(storage)
                whole = self.write_back(raw, tensor._path, new)
            elif base._path:
                # A detached alias of a view: the history is its own.
                raw = self._raw_tensor(storage)
                whole = self.write_back(raw, base._path, written)
            self._store(storage, tensor, whole)
            self._rebase(base, tensor, written)
            if steps and (cell := base._own_version) is not None:
                self.recording.apart[new._slot] = weakref.ref(tensor), cell, cell[0]
            if left:
                self.keep_history(base)
                base._slot = -1
        else:
            if tensor._path:
                if storage.shared is not None and storage.slot < 0:
                    storage.shared.refresh(storage)  # NumPy may have written meanwhile
                raw = self._raw_tensor(storage)
                whole = self.write_back(raw, tensor._path, new)
            self._store(storage, tensor, whole)
        if storage.shared is not None:
            # The flush comes first: it keeps the history of what was written.
            if not self.delivering:
                self.flush()
                storage.shared.store(tensor, new._array, read)
            else:  # at the end of the walk
                self.unstored.append((tensor, new))
            self.volatile.append(tensor)
            self.forget_volatile()
        if tracked and tensor._hooks is not None and tensor is not base:
            self.slot_of(tensor)  # PyTorch makes its node at once
        if self.crossed:
            self.write_tangents()

    def _read_by(
        self, tensor: TensorBase, storage: Storage, new: TensorBase
    ) -> np.ndarray | None:
        """The value of the whole storage that `new` was computed from, if it was."""
        if tensor._path or not self.owns(new._slot):
            return None
        for slot in self.recording.event(new._slot, self.state).operands:
            if self.recording.bases.get(slot) is storage:
                event = self.recording.event(slot, self.state)
                if event.kind == INPUT:
                    return np.asarray(self.inputs[event.n_inputs - 1])
        return None

    def store_shared(self) -> None:
        """Copies what a backward wrote to `.grad`s on NumPy's memory into that."""
        self.flush()
        for tensor, new in self.unstored:
            storage = tensor._storage
            if storage is not None and storage.shared is not None:
                storage.shared.store(tensor, new._array, None)
        self.unstored.clear()

    def slots_of_values(self, tensor: TensorBase) -> list[int]:
        """The slots of the values that a tensor had in this recording."""
        if (slot := self.slot_here(tensor)) >= 0:
            return [slot]
        storage, recording = tensor._storage, self.recording
        if storage is None or not self.owns(storage.slot):
            return []
        # Something was written to the memory since.
        found = [slot for slot, t in recording.entered.items() if t is tensor]
        if tensor._hist is not None and tensor._hist[0] is recording:
            found.append(tensor._hist[1])
        return found

    def note_replaced(
        self, tensor: TensorBase, values: Sequence[int], value: TensorBase
    ) -> None:
        """Notes an assignment to `.data`: a tensor left its `values` for `value`."""
        tensor._replaced += REPLACED
        hidden_writes[0] += 1
        meta = value._tmeta.plain
        version = None if tensor._own_version is None else number_of(tensor)
        for old in values:
            self._overwritten(old, self.identity(self.slot_of(value), meta), MOVED)
            self.recording.moved.setdefault(old, (weakref.ref(tensor), version))

    def whole(self, holder: Storage | TensorBase) -> TensorBase:
        """The whole value of a memory, from a storage or tensor that stands for it."""
        if isinstance(holder, Storage):
            home = None if holder.home is None else holder.home()
            if home is None or home._storage is not None:
                return self._raw_tensor(holder)
            holder = home  # it took the value back
        if holder._storage is None:
            return holder
        return self._raw_tensor(holder._storage)

    def set_value(self, tensor: TensorBase, slot: int, meta: Meta) -> None:
        """Gives a tensor that has its memory to itself a new value, in place."""
        untracked = not self.grad and tensor._tmeta.requires_grad
        if tensor._hist is not None:
            self.tell_maker(tensor, 1, None if untracked else slot)
        # No call between the assignments: another thread sees all of them or none.
        if untracked:
            # The history stays, on a new identity when it is used next.
            if not tensor._tmeta.leaf:
                self.keep_history(tensor)
            self.raws.append(tensor)
            tensor._slot = -1
            tensor._raw = slot
            tensor._array = None
            tensor._versions += 1
        else:
            self.live.append(weakref.ref(tensor))
            tensor._slot = slot
            tensor._raw = -1
            tensor._tmeta = meta
            tensor._hist = None
            tensor._array = None
            tensor._versions += 1
            tensor._node = None

    def tell_maker(self, tensor: TensorBase, more: int, slot: int | None) -> None:
        """Keeps the count of writes to a value with the closed recording that made it.

        So it is still known when the tensor is dead. `more`: writes that come now;
        `slot`: the tensor's present value, whose node is kept as well.
        """
        recording, made = tensor._hist
        while made in recording.hists:
            recording, made = recording.hists[made]
        known = recording.versions.get(made)
        if known is not None:
            writes = number_of(tensor) + more - known.version - known.ahead
            event = None if slot is None else self.state.maker(slot)
            node = None if event is None or not writes else grad_name(event)
            recording.versions[made] = known._replace(writes=writes, node=node)

    def mutate(
        self, op: Op, args: Sequence[Any], targets: Sequence[TensorBase]
    ) -> None:
        """Records an operator whose results are the new values of `targets`.

        The operator declares `mutates=`: the parameters whose operands, in order, its
        results replace. So one event updates all parameters of an optimizer. Sequences
        of tensors come as tuples. Once known, the call is an entrance.
        """
        self.make_room(targets[0]._tmeta if targets else None)
        operands: list[TensorBase | None] = []
        floats: list[float] = []
        parts: list[Any] = [op, self.bits]
        for a in args:
            if a.__class__ is tuple:
                operands += a
                parts.append(tuple([None if t is None else t._slot for t in a]))
            elif a.__class__ is float:
                floats.append(a)
                parts.append(float)
            elif isinstance(a, TensorBase):
                operands.append(a)
                parts.append(a._slot)
            else:
                parts.append(a)
        key = tuple(parts)
        start = self.state
        sharing = [t for t in targets if t._storage is not None]
        if sharing:
            for storage in {t._storage for t in sharing if t._storage is not None}:
                self.give_back(storage)  # what shared it may be gone by now
            sharing = [t for t in sharing if t._storage is not None]
        state = None if sharing else self.enter_known(key, operands)
        if state is None:
            self._mutate_slowly(op, args, operands, targets, start, key, len(floats))
            return
        self.scalars[state.scalar : state.n_scalars] = floats
        slot, tracking = state.slot, self.grad
        live, ref = self.live, weakref.ref
        for t, meta in zip(targets, state.metas, strict=True):
            if tracking or t._tmeta.requires_grad:
                self.set_value(t, slot, meta)
            else:
                live.append(ref(t))
                t._slot = slot
                t._array = None
                t._versions += 1
            slot += 1

    def _mutate_slowly(
        self,
        op: Op,
        args: Sequence[Any],
        operands: Sequence[TensorBase | None],
        targets: Sequence[TensorBase],
        start: State,
        key: Any,
        n_floats: int,
    ) -> None:
        entering = entering_operands(operands)
        plain = all(t._storage is None for t in targets)
        state = self.call(op, args)
        if plain:
            self.remember_entrance(start, key, state, operands, entering, n_floats)
        # A write to memory that NumPy shares ends the recording: all values come first.
        values = [
            self.tensor_on(state.slot + k, meta) for k, meta in enumerate(state.metas)
        ]
        for target, value in zip(targets, values, strict=True):
            if target._storage is None:
                self.set_value(target, self.slot_of(value), value._tmeta)
            else:
                self.write(target, value)

    def _overwritten(self, old: int, new: int, kind: str = WRITTEN) -> None:
        """Notes in the path that a value took the place of another."""
        key = (MARK, kind, old, new)
        found = self.state.next.get(key)
        if found is None:
            found = self._add(key, MARK, None, operands=(old, new))
            found.write = None if kind is MOVED else old
            found.written = True
        self.state = found

    def _store(self, storage: Storage, writer: TensorBase, new: TensorBase) -> None:
        """Puts a new base value into a storage; every tensor on it becomes stale."""
        slot = self.slot_of(new)
        overwritten = storage.slot
        known: tuple[int, ...] = (overwritten,)
        if not self.owns(overwritten):
            # As this thread knows it: what was written through a view is part of it.
            whole = writer if writer._view_of is None else writer._view_of
            as_base = -1 if whole._path else self.slot_here(whole)
            known = self.raw_slot_here(overwritten, storage), as_base
        version = storage.version + (writer._own_version is None)
        for alias in storage.tensors():
            meta = alias._tmeta
            base = alias._view_of
            counted = alias._own_version is writer._own_version
            if meta.requires_grad and not meta.leaf:
                if base is None or not counted:
                    # History stays; only the data changed. (A view gets another
                    # node when it is used after a write that its version counts.)
                    noted = base is not None and alias._hist is not None
                    outdated = noted and alias._hist_version != storage.version
                    if alias._slot >= 0 or not outdated:
                        self.keep_history(alias)
                        alias._hist_version = version
            elif alias._inherits and counted and alias._view_note is None:
                # As `let_views_inherit`: PyTorch makes its node when that is asked for.
                alias._unaware, alias._inherits = True, False
                alias._hist = alias._node = None
                alias._tmeta = meta.replace(requires_grad=True, leaf=False)
            alias._slot = -1
        if not self.owns(overwritten):
            self.tell_owner(storage, overwritten)
        # Marked in the path, so that backward knows whose values were overwritten.
        kind = WRITTEN if storage.count_write(writer) else HIDDEN
        if type(own := writer._own_version) is CountOf and own.storage is not None:
            for alias in own.storage.tensors():
                if alias._view_of is not None:
                    alias._slot = -1  # its node is made anew when it is used
        for old in filter(self.owns, known):
            self._overwritten(old, slot, kind)
        self.storages[id(storage)] = storage
        storage.slot = slot
        storage.array = None
        storage.tracked = new._tmeta.requires_grad

    def _rebase(self, base: TensorBase, writer: TensorBase, new: TensorBase) -> None:
        """Gives a base, and with it its views, the history of what was written."""
        grad = new._tmeta.requires_grad
        if base._hist is not None:
            self.tell_maker(base, 0, new._slot)
        base._slot = new._slot
        levels = new._tmeta.levels
        base._tmeta = base._tmeta.replace(
            requires_grad=grad, leaf=not grad, levels=levels
        )
        base._hist = None
        base._node = None
        self.live.append(weakref.ref(base))
        if grad and base._own_version is not None:
            self.counted_apart(base, base._slot)
        if not grad or base._storage is None:
            return
        for alias in base._storage.tensors():
            meta = alias._tmeta
            if alias._view_of is not base or not differentiable(meta):
                continue
            if alias is writer or alias._view_note is None:
                alias._unaware = alias is not writer and (meta.leaf or alias._unaware)
                alias._hist = None
                alias._inherits = False
                alias._tmeta = meta.replace(
                    requires_grad=True, leaf=False, levels=levels
                )
                alias._node = None
                if alias is writer:  # PyTorch makes its node at once
                    alias._hist_version = base._storage.version
            elif meta.leaf:
                alias._inherits = True
                alias._tmeta = meta.replace(requires_grad=True)
