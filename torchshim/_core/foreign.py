"""Tensors that are pending in the recording of another thread."""

from __future__ import annotations

import weakref
from typing import Any

from torchshim._core.enter import ChangedMeanwhile
from torchshim._core.entrances import Entrances
from torchshim._core.flush import values_of
from torchshim._core.state import INPUT, Recording
from torchshim._core.storage import (
    SLOT_BITS,
    Storage,
    TensorBase,
    next_sequence,
    tensor_class,
)
from torchshim._core.threads import turns
from torchshim._core.trie import recorders

_new = object.__new__


class Foreign(Entrances):
    """Looks into other threads' recordings without changing them."""

    foreign: dict[tuple[int, ...], TensorBase]
    foreign_raws: dict[tuple[int, ...], int]

    def array_of(self, tensor: TensorBase) -> Any:
        """The array of a tensor without a storage; runs what it takes.

        None if another thread has just given it one, or written to it.
        """
        if tensor._array is None:
            slot = tensor._slot if tensor._raw < 0 else tensor._raw
            if slot >> SLOT_BITS == self.id:
                self.flush()
            elif tensor._raw >= 0:
                return self._foreign_array(tensor)
            else:
                self.slot_of(tensor)
                if tensor._array is None:
                    return self._foreign_piece(tensor)._array
        return tensor._array

    def base_array_of(self, storage: Storage) -> Any:
        """The array of a storage's base value; runs what it takes. None as above."""
        if storage.array is None:
            if storage.slot >> SLOT_BITS == self.id:
                self.flush()
                home = None if storage.home is None else storage.home()
                if home is not None:
                    return home._array
            else:
                return self._foreign_array(storage)
        return storage.array

    def _foreign(self, tensor: TensorBase) -> int:
        """A tensor whose slot belongs to another thread's recording.

        Its owner may be recording at this moment, so that recording is only read.
        """
        if tensor._array is not None and tensor._storage is None:
            self.tell_owner(tensor, tensor._slot)
            return self._enter(tensor)
        slot = self.slot_of(self._foreign_piece(tensor))
        self.note_memory(slot, tensor._storage or tensor, tensor._path)
        return slot

    def tell_owner(
        self, holder: Storage | TensorBase, old: int, memory: Storage | None = None
    ) -> None:
        """Has the owner of a slot note that another thread will overwrite its value.

        `memory`: what is noted, if not the tensor or storage that has the slot.
        """
        if old < 0:
            return
        owner = recorders[old >> SLOT_BITS]
        with owner.lock:
            if old in self._pending(holder):
                path = () if isinstance(holder, Storage) else holder._path
                owner.note_memory(old, memory or holder, path)

    @staticmethod
    def _pending(holder: Storage | TensorBase) -> tuple[int, ...]:
        if isinstance(holder, Storage):
            return (holder.slot,)
        return holder._slot, holder._raw

    def _foreign_piece(self, tensor: TensorBase) -> TensorBase:
        for _ in turns():  # the owner may have it enter at this very moment
            owner = recorders[tensor._slot >> SLOT_BITS]
            with owner.lock:
                slot = tensor._slot
                if slot < 0 or slot >> SLOT_BITS == self.id:
                    return tensor
                if slot >> SLOT_BITS == owner.id and slot < owner.state.n_slots:
                    key = owner.recording.seq, slot
                    piece = self.foreign.get(key)
                    if piece is None:
                        piece = self.foreign[key] = self._snapshot(owner, tensor, slot)
                    return piece
        raise RuntimeError("a tensor is in no recording of the thread that used it")

    def slot_here(self, tensor: TensorBase) -> int:
        """The slot here of a tensor's value, of any thread; -1: it is not here."""
        slot = tensor._slot
        if slot < 0 or slot >> SLOT_BITS == self.id:
            return slot
        piece = self.foreign.get(self._place(slot, tensor))
        return -1 if piece is None else piece._slot

    def _foreign_raw(self, storage: Storage) -> int:
        """The slot here of a base value that is pending in another's recording."""
        there = storage.slot
        slot = self.raw_slot_here(there, storage)
        if slot < 0:
            key = self._place(there, storage)
            array = self._foreign_array(storage)
            if array is None:
                raise ChangedMeanwhile
            slot = self._input((INPUT, storage.meta), storage.meta, array)
            self.note_memory(slot, storage)
            if key:
                self.foreign_raws[key] = slot
        return slot

    def raw_slot_here(self, slot: int, storage: Storage) -> int:
        """The slot here of the base value that a storage has in `slot`; -1 as above."""
        return self.foreign_raws.get(self._place(slot, storage), -1)

    @classmethod
    def _place(cls, slot: int, holder: Storage | TensorBase) -> tuple[int, ...]:
        """A key for a slot that no other recording of its thread has.

        Slots are counted anew in each: an empty key if the owner has just ended the one
        that the slot was read in, so that the holder is not in it any more.
        """
        if slot < 0:
            return ()
        owner = recorders[slot >> SLOT_BITS]
        with owner.lock:
            return (owner.recording.seq, slot) if slot in cls._pending(holder) else ()

    def _snapshot(self, owner: Any, tensor: TensorBase, slot: int) -> TensorBase:
        """The value of another recording's slot, with its history."""
        meta = tensor._tmeta
        history = meta.requires_grad and not meta.leaf
        value, twin = self._look(owner, slot, history)
        piece = _new(tensor_class[0])
        piece._slot = -1
        piece._tmeta = meta
        piece._array = value
        if twin is not None:
            piece._hist = twin, slot
        elif meta.leaf and meta.requires_grad:
            self.recording.entered[self._enter(piece)] = tensor
        return piece

    @staticmethod
    def _look(owner: Any, slot: int, history: bool) -> tuple[Any, Recording | None]:
        """The value of another recording's slot, and what a backward from it needs."""
        state, recording = owner.state, owner.recording
        value, saved, savers = values_of(owner, state, recording, slot, history)
        twin: Recording | None = None
        if history:
            # One for all who look, so that a value has one place in the graph.
            twin = recording.twin
            if twin is None:
                twin = recording.twin = Recording(next_sequence())
                twin.original = weakref.ref(recording)
            before = twin.saved, twin.savers, twin.versions
            twin.entered.update(recording.entered)
            for at, (within, place) in list(recording.hists.items()):
                # A history that goes on in the recording itself does so in its twin.
                twin.hists[at] = (twin if within is recording else within), place
            twin.elsewhere = recording.elsewhere
            twin.packed.update(recording.packed)
            twin.python.update(recording.python)
            # One graph: hooks on either, and what a backward through it frees, are
            # those of both.
            twin.graph = recording.graph
            twin.hooked = recording.hooked
            twin.node_hooks = recording.node_hooks
            twin.pieces, twin.traces = recording.pieces, recording.traces
            twin.freed, twin.detached = recording.freed, recording.detached
            twin.forwards, twin.switched = recording.forwards, recording.switched
            twin.apart, twin.moved = recording.apart, recording.moved
            owner._close(twin, state, saved, savers)
            twin.producers = None
            twin.add_saved(*before)
        return value, twin

    def _role(self, tensor: TensorBase, storage: Storage | None, slot: int) -> int:
        """As of any tensor; its history may be in a recording of another thread."""
        slot = Entrances._role(self, tensor, storage, slot)
        hist = self.recording.hists.get(slot)
        if hist is not None:
            self.recording.hists[slot] = self.history(*hist)
        return slot

    def history(self, recording: Recording, slot: int) -> tuple[Recording, int]:
        """A place in the graph, in a recording that this thread may look into."""
        if recording.state is None and recording is not self.recording:
            owner = recorders[slot >> SLOT_BITS]
            with owner.lock:
                if owner.recording is recording:
                    twin = self._look(owner, slot, True)[1]
                    assert twin is not None
                    return twin, slot
        return recording, slot

    def _foreign_array(self, holder: Storage | TensorBase) -> Any:
        """As `_foreign`, for a base value or one written without history."""

        def look() -> tuple[int, Any]:
            if isinstance(holder, Storage):
                return holder.slot, holder.array
            return holder._raw, holder._array

        slot, array = look()
        if array is not None or slot < 0:
            return array
        owner = recorders[slot >> SLOT_BITS]
        with owner.lock:
            slot, array = look()
            if array is None and slot >> SLOT_BITS == owner.id:
                state, recording = owner.state, owner.recording
                return values_of(owner, state, recording, slot, False)[0]
            return array
