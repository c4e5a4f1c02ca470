"""Tensors that are pending in the recording of another thread."""

from __future__ import annotations

from typing import Any

from torchshim._core.enter import Entering
from torchshim._core.flush import values_of
from torchshim._core.state import Recording
from torchshim._core.storage import (
    SLOT_BITS,
    Storage,
    TensorBase,
    next_sequence,
    tensor_class,
)
from torchshim._core.trie import recorders

_new = object.__new__


class Foreign(Entering):
    """Looks into other threads' recordings without changing them."""

    foreign: dict[tuple[int, int], TensorBase]

    def array_of(self, tensor: TensorBase) -> Any:
        """The array of a tensor without a storage; runs what it takes."""
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
        """The array of a storage's base value; runs what it takes."""
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
            return self._enter(tensor)
        return self.slot_of(self._foreign_piece(tensor))

    def _foreign_piece(self, tensor: TensorBase) -> TensorBase:
        owner = recorders[tensor._slot >> SLOT_BITS]
        with owner.lock:
            slot = tensor._slot
            if slot < 0 or slot >> SLOT_BITS == self.id:
                return tensor
            key = owner.recording.seq, slot
            piece = self.foreign.get(key)
            if piece is None:
                piece = self.foreign[key] = self._snapshot(owner, tensor, slot)
            return piece

    def _snapshot(self, owner: Any, tensor: TensorBase, slot: int) -> TensorBase:
        """The value of another recording's slot, with its history."""
        state, recording = owner.state, owner.recording
        meta = tensor._meta
        roots = {slot} if meta.requires_grad and not meta.leaf else set()
        values, saved = values_of(owner, state, recording, [slot], roots)
        piece = _new(tensor_class[0])
        piece._slot = -1
        piece._meta = meta
        piece._array = values[slot]
        if roots:
            twin = Recording(next_sequence())
            twin.entered.update(recording.entered)
            twin.hists.update(recording.hists)
            twin.packed.update(recording.packed)
            twin.python.update(recording.python)
            # One graph: hooks on either, and what a backward through it frees, are
            # those of both.
            twin.hooked = recording.hooked
            twin.node_hooks = recording.node_hooks
            twin.freed = recording.freed
            owner._close(twin, state, values, saved)
            piece._hist = twin, slot
        elif meta.leaf and meta.requires_grad:
            self.recording.entered[self._enter(piece)] = tensor
        return piece

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
                return values_of(owner, state, recording, [slot], set())[0][slot]
            return array
