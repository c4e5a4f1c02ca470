"""Undoes a recording whose program could not be made or run, because of an error.

A tensor from before it has the value again with which it entered. What was computed in
the recording is lost; wherever a lost value is used, an error says so.
"""

from __future__ import annotations

from typing import Any

from torchshim._core.state import INPUT, Recording, State
from torchshim._core.storage import Storage, TensorBase


class Undo:
    """Undoes one recording."""

    def __init__(self, rec: Any, error: Exception) -> None:
        self.rec = rec
        self.recording: Recording = rec.recording
        self.reason = f"{type(error).__name__}: {error}"
        # Slot -> (meta, array) of each input, as it came in.
        self.inputs: dict[int, tuple[Any, Any]] = {}
        for event in rec.state.path():
            if event.kind == INPUT:
                array = rec.inputs[event.n_inputs - 1]
                if not _deleted(array):
                    self.inputs[event.slot] = event.meta, array
        # id of a tensor or a storage -> the slot that it entered with.
        self.entered: dict[int, int] = {}
        for slot, holder in reversed(self.recording.entered.items()):
            if slot in self.inputs:
                self.entered[id(holder)] = slot
        for slot, storage in reversed(self.recording.bases.items()):
            if slot in self.inputs:
                self.entered[id(storage)] = slot

    def run(self) -> None:
        """Gives every tensor of the recording its old value, or none."""
        rec = self.rec
        for tensor, array in reversed(self.recording.counted):
            if tensor._array is not None:
                tensor._array = array
        tensors: dict[int, TensorBase] = {}
        for tensor in self.recording.entered.values():
            tensors[id(tensor)] = tensor
        for ref in (*rec.live, *rec.stale):
            if (tensor := ref()) is not None:
                tensors[id(tensor)] = tensor
        for tensor in rec.raws:
            tensors[id(tensor)] = tensor
        for storage in rec.storages.values():
            for tensor in storage.tensors():
                tensors[id(tensor)] = tensor
            if rec.owns(storage.slot):
                self._take_back(storage)
        for tensor in tensors.values():
            self._restore(tensor)
        for tensor in tensors.values():
            grad = tensor._grad
            if grad is not None and grad._lost is not None and grad._array is None:
                tensor._grad = None  # it had none

    def _take_back(self, storage: Storage) -> None:
        storage.slot = -1
        storage.tracked = False
        if storage.array is not None or storage.shared is not None:
            return  # NumPy's memory is the value
        whole = [t for t in storage.tensors() if not t._path]
        for slot in (self.entered.get(id(holder)) for holder in (storage, *whole)):
            if slot is None:
                continue
            meta, array = self.inputs[slot]
            storage.meta = meta.plain
            storage.array = array
            return

    def _restore(self, tensor: TensorBase) -> None:
        rec, hist = self.rec, tensor._hist
        slot = tensor._slot if tensor._raw < 0 else tensor._raw
        if rec.owns(tensor._slot):
            tensor._slot = -1
        if rec.owns(tensor._raw):
            tensor._raw = -1
        storage = tensor._storage
        if hist is not None and hist[0] is self.recording:
            # Data written without history: the history was this recording's.
            tensor._hist = hist = self._earlier(hist[1])
        if storage is not None:
            meta = tensor._tmeta
            missing = meta.requires_grad and not meta.leaf
            if storage.array is None and storage.shared is None and storage.slot < 0:
                self._lose(tensor)
            elif missing and hist is None and tensor._view_of is None:
                self._entered_again(tensor)
            return
        if tensor._array is None and rec.owns(slot):
            self._entered_again(tensor)

    def _entered_again(self, tensor: TensorBase) -> None:
        """The value and the history that a tensor came with, if it did."""
        slot = self.entered.get(id(tensor))
        if slot is None:
            self._lose(tensor)
            return
        meta, array = self.inputs[slot]
        if tensor._storage is None:
            tensor._array = array
        if not tensor._tmeta.leaf or tensor._tmeta.shape != meta.shape:
            tensor._tmeta = meta
        tensor._hist = self.recording.hists.get(slot)
        tensor._node = None

    def _earlier(self, slot: int) -> tuple[Recording, int] | None:
        """Where a history from this recording was before it."""
        producers: dict[int, State] | None = None
        while slot not in self.recording.hists:
            if producers is None:
                producers = self.recording.events(self.rec.state)
            event = producers[slot]
            if not event.alias or event.call is not None or not event.operands:
                return None
            slot = event.operands[0]
        hist = self.recording.hists[slot]
        return hist if hist[0] is not self.recording else self._earlier(hist[1])

    def _lose(self, tensor: TensorBase) -> None:
        storage = tensor._storage
        if storage is not None:
            storage.aliases[:] = [r for r in storage.aliases if r() is not tensor]
        tensor._storage = tensor._former = None
        tensor._array = None
        tensor._lost = self.reason


def _deleted(array: Any) -> bool:
    """Whether a program that failed has taken an array already."""
    asked = getattr(array, "is_deleted", None)
    return asked is not None and asked()


def lost(tensor: TensorBase) -> RuntimeError:
    """The error for using a tensor whose value an earlier error took."""
    return RuntimeError(
        "the value of this tensor was lost: the program that was to compute it "
        f"failed with {tensor._lost}"
    )
