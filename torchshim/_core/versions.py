"""Which values were overwritten in place: what PyTorch's version counters tell.

No counter counts a write through `.data`: PyTorch's gradients then use what the memory
holds at the time of the backward. Such writes are called hidden here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from torchshim._core.declared import DERIVED
from torchshim._core.state import HIDDEN, MARK, MOVED, Recording, State
from torchshim._core.storage import REPLACED, Storage, TensorBase, hidden_of, writes_of


class SavedVersion(NamedTuple):
    """What a closed recording knows of the memory of a value that it saved."""

    # Gives the storage or tensor that stands for the memory (`reference`); None: there
    # was none.
    holder: Any
    # The version when the value was saved, and the writes since, until the closing.
    version: int
    writes: int
    # `hidden_of` the memory at the closing; None: there was a hidden write before.
    hidden: Any
    # Weak reference to the tensor that came in as this value, if one did, and its
    # `_replaced` at the closing.
    tensor: Any
    replaced: int = 0
    # By how much the version of the tensor, if that is known, or else of the holder was
    # ahead of the count of the memory, at the closing.
    ahead: int = 0
    # The path of the view that came in as this value, where the memory is not its own.
    path: tuple[Any, ...] = ()
    # The node that the last write gave the tensor, for when it is dead.
    node: str | None = None

    def written(self) -> int:
        """How often the memory was written to since the value was saved.

        If the tensor that came in as this value has other memory by now: how often that
        tensor was.
        """
        holder = self.moved()
        if holder is None and self.holder is not None:
            holder = self.holder()
        if holder is None:
            return self.writes
        ahead = self.ahead if isinstance(holder, TensorBase) else 0
        return number_of(holder) - self.version - ahead

    def tensors(self) -> list[Any]:
        """The tensors that show the whole of the memory."""
        return showing(None if self.holder is None else self.holder())

    def moved(self) -> Any:
        """The tensor that came in as this value, if it has other memory by now."""
        tensor = None if self.tensor is None else self.tensor()
        return None if tensor is None or tensor._replaced == self.replaced else tensor

    def outdated(self, result: bool = False) -> bool:
        """Whether a hidden write, or other memory, has replaced the value by now.

        Other memory of its tensor counts unless it is a `result`, which PyTorch saves
        without its tensor.
        """
        moved = self.moved()
        if moved is not None and not result:
            return True
        holder = None if self.holder is None else self.holder()
        if holder is None or holder is moved:
            return self.hidden is None
        return hidden_of(holder) != self.hidden


def reference(holder: Storage | TensorBase) -> Callable[[], Any]:
    """A function that gives the holder of a memory, as long as it may be asked for.

    It keeps a holder without history alive, as in PyTorch the graph keeps the memory,
    until `release` drops it with the graph. A tensor with history would also keep its
    recordings alive, so it is referred to weakly.
    """
    if isinstance(holder, TensorBase) and holder._tmeta.requires_grad:
        return weakref.ref(holder)
    return lambda: holder


def showing(holder: Any) -> list[Any]:
    """The tensors that show the whole of a memory, given one that stands for it."""
    if isinstance(holder, Storage):
        return [t for t in holder.tensors() if not t._path]
    return [] if holder is None or holder._path else [holder]


def written_elsewhere(recording: Recording) -> bool:
    """Whether another thread or NumPy has overwritten something."""
    if not recording.elsewhere:
        return False
    for note in list(recording.elsewhere.values()):  # other threads add to it
        holder = note.holder()
        if holder is not None:
            if writes_of(holder) != note.version or hidden_of(holder) != note.hidden:
                return True
    return False


def ahead_of(holder: Storage | TensorBase) -> int:
    """By how much a tensor's version is ahead of the count of its memory."""
    return holder._ahead if isinstance(holder, TensorBase) else 0


def _ahead_on(holder: Storage | TensorBase, tensor: TensorBase | None) -> int:
    """By how much a tensor's version is ahead of the count of the storage it is on."""
    if tensor is None or tensor._storage is not holder:
        return 0
    return number_of(tensor) - writes_of(holder)


def number_of(holder: Storage | TensorBase) -> int:
    """The version of a memory, or of a tensor that was given another one."""
    return writes_of(holder) + ahead_of(holder)


class Moved(NamedTuple):
    """A tensor whose `.data` was assigned to, though its value is needed."""

    # None: it is dead.
    tensor: Any
    # Its version when the value was made; None: its memory, still the same, tells.
    version: int | None
    # Slot of what was assigned.
    value: int


def moved_at(recording: Recording, written: Overwritten, slot: int) -> Moved | None:
    """The tensor that had a value; None if its `.data` was not assigned to since."""
    known, noted = recording.moved.get(slot), written.moved.get(slot)
    if known is None or noted is None:
        return None
    (tensor, version), (value, writes) = known, noted
    return Moved(tensor(), None if version is None else version - writes, value)


class MemoryNote(NamedTuple):
    """The state of a memory whose writes are not events, at one moment."""

    # Weak reference to the storage or tensor that stands for it; its number of writes,
    # `hidden_of` and `ahead_of` it.
    holder: Any
    version: int
    hidden: int
    ahead: int
    # The path of the view that the value is of all that is there.
    path: tuple[Any, ...]


def memory_note(holder: Storage | TensorBase, path: tuple[Any, ...]) -> MemoryNote:
    """The note of a memory as it is now."""
    known = writes_of(holder), hidden_of(holder), ahead_of(holder)
    return MemoryNote(weakref.ref(holder), *known, path)


class Elsewhere(NamedTuple):
    """What is noted of a value's memory, with its holder, which is alive."""

    note: MemoryNote
    holder: Any
    # The writes on the path from the value to the note; below 0: from it to the value.
    before: int

    @property
    def version(self) -> int:
        """The version when the value was made."""
        return self.note.version - self.before

    def writes(self) -> int:
        """The counted writes since the value was made."""
        return number_of(self.holder) - self.version - self.note.ahead

    def is_hidden(self) -> bool:
        """Whether a write was among them that nobody counted."""
        return hidden_of(self.holder) != self.note.hidden

    def moved(self) -> bool:
        """Whether the holder is a tensor that was given another memory since."""
        known = self.holder
        return isinstance(known, TensorBase) and known._replaced > self.note.hidden


def elsewhere_at(
    noted: dict[int, MemoryNote], at: int, before: int
) -> Elsewhere | None:
    """What is noted there (`Overwritten.at_note`); None if nobody holds it."""
    note = noted[at]
    holder = note.holder()
    return None if holder is None else Elsewhere(note, holder, before)


def keeps_no_slot(recording: Recording, tensor: TensorBase) -> bool:
    """Whether a tensor has another slot each time it is used, as on NumPy's memory."""
    holders = tensor, tensor._storage, tensor._former
    return any(
        any(note.holder() is each for each in holders if each is not None)
        for note in recording.elsewhere.values()
    )


def versions_of(
    rec: Any, state: State, recording: Recording, saved: Sequence[int]
) -> dict[int, SavedVersion]:
    """Saved slot -> what is known of that value's memory, at closing."""
    if not saved:
        return {}
    written, memories = state.memoized(
        ("memories", saved), lambda: _memories_of(state, saved)
    )
    holders, made = _holders_of(rec, recording, written)
    entered = recording.entered
    found: dict[int, SavedVersion] = {}
    noted, at_note = written.noted(recording), {}
    if noted:
        at_note = state.memoized(
            ("noted", saved, *noted),
            lambda: {slot: written.at_note(noted, slot) for slot, *_ in memories},
        )
    for slot, last, writes, is_hidden in memories:
        tensor = entered.get(slot, made.get(slot))
        known, replaced = None, 0
        moved = moved_at(recording, written, slot)
        if moved is not None and (tensor := moved.tensor) is not None:
            now = number_of(tensor)
            version = now - writes if moved.version is None else moved.version
            found[slot] = SavedVersion(
                reference(tensor),
                version,
                now - version,
                None if is_hidden else 0,  # (not compared: it left that memory)
                weakref.ref(tensor),
                tensor._replaced - REPLACED,
            )
            continue
        if tensor is not None:
            known, replaced = weakref.ref(tensor), tensor._replaced
        if noted and (known_at := at_note[slot]) is not None:
            there = elsewhere_at(noted, *known_at)
            if there is not None:
                if not there.moved():
                    is_hidden = is_hidden or there.is_hidden()
                elif tensor is there.holder:
                    is_hidden, replaced = True, replaced - REPLACED
                found[slot] = SavedVersion(
                    reference(there.holder),
                    there.version,
                    there.writes(),
                    None if is_hidden else hidden_of(there.holder),
                    known,
                    replaced,
                    there.note.ahead or _ahead_on(there.holder, tensor),
                    there.note.path,
                )
                continue
        # On memory that numpy shares a tensor doesn't keep its slot.
        holder = holders.get(last, tensor)
        if holder is None:
            if writes:
                found[slot] = SavedVersion(None, 0, writes, None, None)
            continue
        storage = getattr(holder, "_storage", None)
        if storage is not None and len(storage.tensors()) != 1:
            holder = storage  # alone on a storage, a tensor may leave it
        hidden = None if is_hidden else hidden_of(holder)
        # A result whose operands are kept is not among what is let go of.
        ref = reference(holder) if slot in recording.saved else weakref.ref(holder)
        version = writes_of(holder) - writes
        ahead = ahead_of(holder) or _ahead_on(holder, tensor)
        found[slot] = SavedVersion(ref, version, writes, hidden, known, replaced, ahead)
    return found


def _holders_of(
    rec: Any, recording: Recording, written: Overwritten
) -> tuple[dict[int, Any], dict[int, Any]]:
    """First value of a memory -> its holder; slot -> the tensor made there.

    For what is alive of a recording.
    """
    root: Any = written.roots.get
    holders: dict[int, Any] = {}
    made: dict[int, Any] = {}
    # (Another thread may be looking at what its owner records just now.)
    for storage in list(rec.storages.values()):
        if (slot := storage.slot) >= 0:
            holders[root(slot, slot)] = storage
    for tensor in list(recording.entered.values()):
        if (slot := tensor._slot) >= 0:
            holders[root(slot, slot)] = tensor
    for ref in rec.live:
        tensor = ref()
        if tensor is None or type(tensor) is TensorBase:
            continue
        if (slot := tensor._slot) >= 0:
            made[slot] = tensor
            at = root(slot, slot)
            # (What is just being written to a memory has the slot of its new value.)
            if tensor._storage is not None or type(holders.get(at)) is not Storage:
                holders[at] = tensor
    for ref in rec.stale:
        tensor = ref()
        hist = None if tensor is None else tensor._hist
        if hist is not None and hist[0] is recording:
            made.setdefault(hist[1], tensor)
    for tensor in rec.raws:  # written to by what autograd did not track
        if (slot := tensor._raw) >= 0 and tensor._storage is None:
            holders[root(slot, slot)] = tensor
    return holders, made


def _memories_of(
    state: State, saved: Sequence[int]
) -> tuple[Overwritten, list[tuple[int, int, int, bool]]]:
    """What the path alone tells of the memories of values.

    For each slot the value that its memory holds at the end, the counted writes since,
    and whether a hidden write was among these.
    """
    written = Overwritten(state)
    return written, [
        (
            slot,
            written.root(written.last(slot)),
            written.count(slot),
            written.is_hidden(slot),
        )
        for slot in (*saved, *results_of(state))
    ]


def results_of(state: State) -> list[int]:
    """Results that PyTorch saves for a backward; operands are saved here instead."""
    return [
        slot
        for event in state.path()
        if event.wrt and not DERIVED.isdisjoint(event.call.saved(event.wrt))
        for slot in range(event.slot, event.n_slots)
    ]


class Overwritten:
    """Which values of a path were overwritten in place, and how often."""

    def __init__(self, state: State) -> None:
        # Value -> the first one that shows the same memory.
        self.roots: dict[int, int] = {}
        self._next: dict[int, int] = {}
        self._before: dict[int, int] = {}
        # Values that a hidden write overwrote.
        self._hidden: set[int] = set()
        # Values of tensors that `.data` was assigned to -> what was assigned, and the
        # counted writes before.
        self.moved: dict[int, tuple[int, int]] = {}
        for event in state.path():
            if event.kind == MARK and event.key[1] == MOVED:
                old, new = event.operands
                self.moved[old] = new, self.count(old)
                continue
            if event.alias and event.operands:
                source = self.root(event.operands[0])
                for slot in range(event.slot, event.n_slots):
                    self.roots[slot] = source
            for old, new in event.mutated():
                self._next[self.root(old)] = self.root(new)
            if event.write is not None:
                new = event.operands[1] if event.kind == MARK else event.slot
                old, whole = self.root(event.write), self.root(new)
                if event.kind == MARK and old in self._next:
                    # Written through a view: the piece is in the memory of the whole.
                    self.roots[self._next[old]] = whole
                self._next[old] = whole
                if event.kind == MARK and event.key[1] == HIDDEN:
                    self._hidden.add(old)

    def root(self, slot: int) -> int:
        return self.roots.get(slot, slot)

    def chain(self, slot: int) -> list[int]:
        """The values that this value's memory has held since, the first included."""
        found = [self.root(slot)]
        while found[-1] in self._next:
            found.append(self._next[found[-1]])
        return found

    def last(self, slot: int) -> int:
        """The value that this value's memory holds at the end of the path."""
        found = self.chain(slot)
        return slot if len(found) == 1 else found[-1]

    def count(self, slot: int) -> int:
        """How many counted writes this value's memory has seen since it was made."""
        return sum(at not in self._hidden for at in self.chain(slot)[:-1])

    def noted(self, recording: Recording) -> dict[int, MemoryNote]:
        """`Recording.elsewhere`, by the first values of the memories."""
        return {self.root(s): note for s, note in list(recording.elsewhere.items())}

    def at_note(self, noted: Container[int], slot: int) -> tuple[int, int] | None:
        """The value of a value's memory of which something is noted, if any is.

        And how many writes there are from the value to it, or below 0 from it on.
        """
        before = 0
        for at in self.chain(slot):
            if at in noted:
                return at, before
            before += at not in self._hidden
        # What was there before may be from elsewhere, and this written over it.
        first, writes = self.origin(slot)
        return (first, -writes) if first in noted else None

    def elsewhere(self, noted: dict[int, MemoryNote], slot: int) -> Elsewhere | None:
        """What is noted of a value's memory; None if nothing is, or nobody holds it."""
        found = self.at_note(noted, slot)
        return None if found is None else elsewhere_at(noted, *found)

    def origin(self, slot: int) -> tuple[int, int]:
        """The first value of this value's memory, and the counted writes since."""
        if not self._before:
            self._before = {new: old for old, new in self._next.items()}
        at, count = self.root(slot), 0
        while at in self._before:
            at = self._before[at]
            count += at not in self._hidden
        return at, count

    def is_hidden(self, slot: int) -> bool:
        """Whether a hidden write was among those that it has seen."""
        return bool(self._hidden) and not self._hidden.isdisjoint(self.chain(slot))
