"""How tensors enter a recording: inputs, leaves, views, detached aliases.

`Entering.slot_of` is the way in. A tensor that carries its value itself becomes an
input event; one that shares its memory is derived from the base value of its storage.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.forward import DualStep, through_dual
from torchshim._core.known import Known
from torchshim._core.learning import frozen_call
from torchshim._core.meta import Meta
from torchshim._core.op import Op, alone, anew, write_op
from torchshim._core.state import HIDDEN, IDENTITY, INPUT, Recording
from torchshim._core.storage import (
    SLOT_BITS,
    Storage,
    TensorBase,
    counts_as_memory,
    steps_from,
    tensor_class,
    value_lock,
    views,
)
from torchshim._core.threads import turns
from torchshim._core.undo import lost
from torchshim._core.versions import memory_note

# (operator, meta of the base, arguments) -> metas of the views that `unrecorded` makes;
# none where the operator would make a copy.
_VIEW_METAS: dict[Any, Sequence[Meta]] = {}
_VIEW_METAS_BOUND = 4096

_new = object.__new__


class ChangedMeanwhile(RuntimeError):
    """Another thread has just written to a storage, or taken it from its tensor."""

    def __init__(self) -> None:
        super().__init__("another thread wrote to this tensor at the same time")


class Entering(Known):
    """Gives tensors slots in the running recording."""

    id: int
    recording: Recording
    trace: list[Any] | None
    storages: dict[int, Storage]
    base_tangents: weakref.WeakKeyDictionary[Storage, dict[int, Any]]
    levels: list[Any]
    mode: Any
    # Such steps that something was written through, with its tangents.
    crossed: list[tuple[DualStep, dict[int, Any]]]
    # Of `Foreign`, which knows other threads' recordings.
    history: Callable[[Recording, int], tuple[Recording, int]]

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
            storage = tensor._storage
        if storage is None:
            return self._enter(tensor)
        self.live.append(weakref.ref(tensor))
        try:
            slot = self._derive(tensor, storage)
        except ChangedMeanwhile:
            time.sleep(0)
            return self.slot_of(tensor)
        if tensor._own_version is not None:
            slot = self.counted_apart(tensor, slot)
        tangents = tensor._tangents
        if tangents and tensor._tangent_version == storage.version:
            self.recording.duals[slot] = tangents
        return slot

    def slot_seen(self, tensor: TensorBase) -> int:
        """As `slot_of`, where only the slot is of interest and nothing is recorded.

        On memory that NumPy shares, a tensor has its slot for this moment only.
        """
        slot = self.slot_of(tensor)
        if self.volatile:
            self.forget_volatile()
        return slot

    @staticmethod
    def give_back(storage: Storage) -> None:
        """A tensor that is alone on its storage carries its value itself again."""
        tensors = storage.tensors()
        if len(tensors) != 1 or storage.shared is not None or storage.array is None:
            return
        tensor = tensors[0]
        if tensor._path or tensor._view_of is not None or not counts_as_memory(tensor):
            return
        if tensor._tmeta.offset or storage.meta.strides != tensor._tmeta.strides:
            return
        with value_lock:
            newest = storage.aliases[-1] if storage.aliases else None
            if len(storage.tensors()) != 1 or tensor._storage is not storage:
                return
            home = weakref.ref(tensor)
            # From here on there is no call, where another thread could write to it.
            if (array := storage.array) is None or storage.slot >= 0:
                return
            if storage.aliases[-1] is not newest:
                return
            if tensor._own_version is not None:  # it is the only one that counts now
                tensor._ahead += tensor._own_version[0] - storage.version
                tensor._own_version = None
            tensor._array = array
            tensor._versions = storage.version
            tensor._storage = None
            storage.array = None
            storage.home = home
            tensor._former = storage

    def _enter(self, tensor: TensorBase) -> int:
        meta = tensor._tmeta
        if tensor._array is None and tensor._raw >= 0:
            self.live.append(weakref.ref(tensor))
            raw = self._own_raw(tensor)
            if raw >= 0:
                slot = tensor._slot = self._role(tensor, None, raw)
                return slot
        array = tensor._array
        if array is None:
            if tensor._slot < 0 and tensor._lost is not None:
                raise lost(tensor)
            # Another thread took the tensor into its recording just now, or is about to
            # give it a value.
            for _ in turns():
                nowhere = tensor._array is None and tensor._storage is None
                if not nowhere or tensor._slot >= 0 or tensor._raw >= 0:
                    break
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
        """The slot here of what was written without history.

        -1 if another thread has just given the tensor another value.
        """
        raw = tensor._raw
        if raw >> SLOT_BITS == self.id:
            return raw
        meta = tensor._tmeta.plain
        array = self._foreign_array(tensor)
        if array is None:
            return -1
        slot = self._input((INPUT, meta), meta, array)
        self.note_memory(slot, tensor)
        return slot

    def note_memory(
        self, slot: int, holder: Storage | TensorBase, path: tuple[Any, ...] = ()
    ) -> None:
        """Notes the memory that a value is in, as no event will record writes to that.

        `path`: that of the value, if it is a view of the memory's whole value.
        """
        self.recording.elsewhere.setdefault(slot, memory_note(holder, path))

    def _role(self, tensor: TensorBase, storage: Storage | None, slot: int) -> int:
        """Gives a raw value the autograd role of the tensor that shows it."""
        meta = tensor._tmeta
        if not meta.requires_grad:
            if storage is None:
                return slot
            # (A tensor of inference mode may be on memory from outside: `set_`.)
            other = meta.inference is not storage.meta.inference
            tracked = storage.tracked and slot == storage.slot
            return self.identity(slot, meta) if tracked or other else slot
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
        """Notes a tensor with a version counter of its own, such as `.data` gives.

        Without a history it gets another slot than the value that it shares.
        """
        meta, cell = tensor._tmeta, tensor._own_version
        assert cell is not None
        if not meta.requires_grad:
            slot = tensor._slot = self.identity(slot, meta, HIDDEN)
        self.recording.apart[slot] = weakref.ref(tensor), cell, cell[0]
        return slot

    def raw_slot(self, storage: Storage) -> int:
        """The slot of a storage's base value."""
        slot = storage.slot
        if slot < 0:
            if (array := storage.array) is None:
                raise ChangedMeanwhile
            slot = self._input((INPUT, storage.meta), storage.meta, array)
            self._note_base(storage, slot)
            if storage in self.base_tangents:
                self.recording.duals[slot] = self.base_tangents[storage]
            if self.trace is not None:
                self.trace.append(storage)
        elif slot >> SLOT_BITS != self.id:
            return self._foreign_raw(storage)
        self.storages[id(storage)] = storage
        return slot

    def _raw_tensor(self, storage: Storage) -> TensorBase:
        """A tensor without history on a storage's base value."""
        whole = _new(TensorBase)
        whole._tmeta = storage.meta
        whole._array = None
        raw = self.raw_slot(storage)
        whole._slot = self.identity(raw, storage.meta) if storage.tracked else raw
        return whole

    def _note_base(self, storage: Storage, slot: int) -> None:
        self.recording.bases[slot] = storage
        self.storages[id(storage)] = storage
        storage.slot = slot
        storage.tracked = False

    def _derive(self, tensor: TensorBase, storage: Storage) -> int:
        """The slot of a tensor that shares its storage, from the base value."""
        shared = storage.shared
        if shared is not None:
            self.volatile.append(tensor)
            slot = self._enter_piece(tensor, storage, shared)
            if slot is not None:
                return slot
            shared.refresh(storage)
            self.note_memory(self.raw_slot(storage), storage)
        base = self._base_with_history(tensor, storage)
        if base is not None:
            slot = self._derive_by_base(tensor, storage, base)
        elif tensor._path:
            slot = self._derive_by_path(tensor, storage)
        else:
            slot = tensor._slot = self._role(tensor, storage, self.raw_slot(storage))
            return slot
        tensor._slot = slot
        if shared is not None:
            self.volatile.append(tensor)  # the views on the way forgot it
        if base is not None and tensor._hooks is not None:
            tensor._hooks.derived(self, tensor)
        return slot

    def _enter_piece(
        self, tensor: TensorBase, storage: Storage, shared: Any
    ) -> int | None:
        """A view of NumPy's memory enters by itself, without its base, if it can."""
        meta = tensor._tmeta
        if not tensor._path or meta.requires_grad or storage.slot >= 0:
            return None
        if self.levels and storage in self.base_tangents:
            return None
        if through_dual(tensor._path):
            return None
        piece = shared.piece(tensor)
        if piece is None:
            return None
        slot = tensor._slot = self._input((INPUT, meta), meta, piece)
        self.note_memory(slot, storage, tensor._path)
        return slot

    def _base_with_history(
        self, tensor: TensorBase, storage: Storage
    ) -> TensorBase | None:
        """The base that the history of a differentiable view goes through, if any."""
        meta, base = tensor._tmeta, tensor._view_of
        if base is not None and tensor._hist is not None:
            if tensor._hist_version == storage.version:
                base = None  # unmodified since: its own history goes on
            else:
                tensor._hist = None
        if base is None or not meta.requires_grad or meta.leaf:
            return None
        if base._storage is not storage and base._tmeta.requires_grad:
            # The base is on other memory by now (`.data` was assigned to): what it
            # holds is not what this shows, but its history is.
            self.slot_of(base)
            found = self.piece_of(base, steps_from(base, tensor), True)
            tensor._hist = self.recording, found._slot
            tensor._hist_version = storage.version
            return None
        return base

    def _derive_by_base(
        self, tensor: TensorBase, storage: Storage, base: TensorBase
    ) -> int:
        """The slot of a view whose history goes through its base."""
        path = tensor._path
        if base._storage is not storage:
            piece = self.ending_at(self.raw_slot(storage), storage.meta, tensor)
        else:
            path = path[len(path) - len(steps_from(base, tensor)) :]
            if base._tmeta.requires_grad:
                self.slot_of(base)
                piece = base
            else:
                # Written to since it was made, by way of a base without history:
                # PyTorch makes its node anew, and that leads nowhere.
                piece = self.ending_at(self.slot_of(base), base._tmeta, tensor)
        piece = self.piece_of(piece, path, True)
        if piece is not base:
            _take_role(tensor, piece._tmeta)
        return piece._slot

    def _derive_by_path(self, tensor: TensorBase, storage: Storage) -> int:
        """The slot of a view without history, or with one of its own."""
        meta = tensor._tmeta
        piece = self.piece_of(self._raw_tensor(storage), tensor._path)
        if meta.requires_grad:
            if meta.offset != piece._tmeta.offset:
                # Of an index that is a runtime scalar: the path has the true one.
                tensor._tmeta = meta.replace(offset=piece._tmeta.offset)
            return self._role(tensor, storage, piece._slot)
        if meta.inference is not storage.meta.inference:
            return self.identity(piece._slot, meta)  # as in `_role`
        _take_role(tensor, piece._tmeta)
        return piece._slot

    def ending_at(self, slot: int, meta: Meta, view: TensorBase) -> TensorBase:
        """A stand-in for the base of a view that requires grad: gradients end there."""
        levels = view._tmeta.levels
        meta = meta.replace(requires_grad=True, leaf=True, levels=levels)
        piece = self.tensor_on(self.identity(slot, meta, Recording), meta)
        end = _new(tensor_class[0])
        end._slot, end._tmeta, end._array = -1, meta, None
        self.recording.entered[piece._slot] = end
        return piece

    def piece_of(
        self, whole: TensorBase, path: Sequence[Any], grad: bool = False
    ) -> TensorBase:
        """The view of `whole` by a path; with a history if `grad`."""
        before, as_strided = self.grad, grad and not views.replayed
        try:
            self.grad = grad
            self.set_mode()
            for step in path:
                op, args, k = step if grad else alone(*step)
                made = anew(op) if as_strided else op
                whole = self.result(self.call_again(made, [whole, *args]), k)
                if step.__class__ is DualStep:
                    self._step_behind(step, whole)
        finally:
            self.grad = before
            self.set_mode()
        return whole

    def write_back(
        self,
        whole: TensorBase,
        steps: Sequence[Any],
        new: TensorBase,
    ) -> TensorBase:
        """The base with a piece replaced, through every step of a view path."""
        duals = self.recording.duals
        pieces = [whole]
        for step in steps[:-1]:
            op, args, k = step
            pieces.append(self.result(self.call_again(op, [pieces[-1], *args]), k))
            if step.__class__ is DualStep:
                self._step_behind(step, pieces[-1])
        for step, piece in zip(reversed(steps), reversed(pieces), strict=True):
            op, args, k = step
            written = new
            put = self.call_again(write_op(op), [piece, new, *args, k])
            new = self.result(put)
            if step.__class__ is DualStep and self.levels:
                if self.forward:
                    self.crossed.append((step, duals.get(written._slot, {})))
                across = duals.get(new._slot, {}), duals.get(piece._slot, {})
                self.set_tangents(new._slot, step.across(*across))
        return new

    def _step_behind(self, step: DualStep, piece: TensorBase) -> None:
        """Gives a view behind a step the tangents that are there."""
        if self.levels:
            before = self.recording.duals.get(piece._slot, {})
            self.set_tangents(piece._slot, step.behind(before))

    def derived_anew(self, view: TensorBase) -> TensorBase:
        """A view to be written to, derived again past hooks on the way to its base.

        For PyTorch drops the nodes that made the view from the graph then.
        """
        base, storage = view._view_of, view._storage
        grad = view._tmeta.requires_grad and not view._tmeta.leaf
        if base is None or storage is None or not (grad and self.grad):
            return view
        if not base._tmeta.requires_grad:
            return view
        if base._storage is not storage:
            return view  # the base is on other memory by now
        if all(t._hooks is None for t in storage.tensors()):
            place = view._hist
            if self.owns(view._slot):
                place = self.recording, view._slot
            elif place is not None and view._hist_version != storage.version:
                return view  # its node is made anew, from the base
            if not self._passes_hooks(place, len(view._path)):
                return view
        self.slot_of(base)
        return self.piece_of(base, steps_from(base, view), True)

    def _passes_hooks(self, place: tuple[Recording, int] | None, steps: int) -> bool:
        """Whether a recording that a view, of so many steps, came through has hooks."""
        if self.recording.hooked or self.recording.node_hooks:
            return True
        while place is not None:
            recording, slot = self.history(*place)
            if recording.hooked or recording.node_hooks:
                return True
            place = recording.hists.get(slot)
            if place is None and steps and slot not in recording.entered:
                event = recording.event(slot, self.state)
                steps -= event.kind != IDENTITY
                place = (recording, event.operands[0]) if event.operands else None
        return False

    def without_history(self, tensor: TensorBase) -> TensorBase:
        """Another tensor with the same value and no history."""
        meta = tensor._tmeta.plain
        twin = _new(tensor_class[0])
        twin._slot = self.identity(self.slot_of(tensor), meta)
        twin._tmeta = meta
        twin._array = None
        self.live.append(weakref.ref(twin))
        return twin

    def shared_views(self, op: Op, args: Sequence[Any]) -> list[TensorBase] | None:
        """Views of memory that NumPy shares, made without recording anything.

        None where the memory is not shared, or a view would have a history.
        """
        base, storage = args[0], args[0]._storage
        if storage is None or storage.shared is None or base._tmeta.requires_grad:
            return None
        return self.unrecorded(op, args)

    def may_be_unrecorded(self, base: TensorBase) -> bool:
        """Whether a tensor has its value, and its views get no history."""
        meta, storage = base._tmeta, base._storage
        if meta.requires_grad or meta.batch or self.trace is not None or self.levels:
            return False
        array = base._array if storage is None else storage.array
        return array is not None and not self.recording.duals and self.mode is not None

    def unrecorded(self, op: Op, args: Sequence[Any]) -> list[TensorBase] | None:
        """Views of a tensor that has its value; they enter when they are used.

        None where the operator would make a copy.
        """
        base = args[0]
        # Rows and slices differ in where they begin, which their paths tell.
        rest = args[2:] if op.name == "basic_index" else args[1:]
        key = op, base._tmeta, rest
        metas = _VIEW_METAS.get(key)
        if metas is None:
            metas, _, view = self.infer(frozen_call(op, args[1:]), [base._tmeta])
            metas = metas if view else ()
            if len(_VIEW_METAS) >= _VIEW_METAS_BOUND:
                _VIEW_METAS.clear()
            _VIEW_METAS[key] = metas
        if not metas:
            return None
        made = []
        for k, meta in enumerate(metas):
            tensor = _new(tensor_class[0])
            tensor._slot = -1
            tensor._tmeta = meta
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

    def _foreign_raw(self, storage: Storage) -> int:
        raise NotImplementedError

    def _foreign_array(self, holder: Storage | TensorBase) -> Any:
        raise NotImplementedError


def _take_role(tensor: TensorBase, piece: Meta) -> None:
    """Gives a tensor the autograd role that its value turned out to have."""
    if piece is not tensor._tmeta:
        tensor._tmeta = tensor._tmeta.replace(
            requires_grad=piece.requires_grad, leaf=piece.leaf, levels=piece.levels
        )
