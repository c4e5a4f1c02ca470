"""Views: the memory that they share with their bases, and their histories.

Where PyTorch gives a view a new node after a write to its base, when it forbids writes
to a view, and what a view keeps when its base changes: the rules are PyTorch's.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from torchshim._core.dtypes import FLOATING, dtype
from torchshim._core.foreign import Foreign
from torchshim._core.forward import DualStep
from torchshim._core.meta import Meta
from torchshim._core.naming import is_saved
from torchshim._core.op import Op
from torchshim._core.state import SWITCHED
from torchshim._core.storage import (
    SLOT_BITS,
    Storage,
    TensorBase,
    base_of,
    lacks_node,
    placed,
    underived,
    value_lock,
    version_of,
    writes_of,
    written_since,
)
from torchshim._core.trie import recorders
from torchshim._core.undo import lost

_CLARIFY = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can "
    "clarify your code by moving both the view and the inplace either both inside the "
    "{0} block (if you don't want the inplace to be tracked) or both outside (if you "
    "want the inplace to be tracked)."
)
_VIEW_NOTES = {
    "no_grad": _CLARIFY.format("no_grad"),
    "inference": _CLARIFY.format("inference_mode"),
    "multi": (
        " This view is the output of a function that returns multiple views. Such "
        "functions do not allow the output views to be modified inplace. You should "
        "replace the inplace operation by an out-of-place one."
    ),
    "custom": (
        " This view was created inside a custom Function (or because an input was "
        "returned as-is) and the autograd logic to handle view+inplace would override "
        "the custom backward associated with the custom Function, leading to incorrect "
        "gradients. This behavior is forbidden. You can fix this by cloning the output "
        "of the custom Function."
    ),
}


def view_error(tensor: Any, outdated: bool = False) -> str:
    """Why PyTorch forbids writing to a view, or using one that is outdated."""
    note, made_by = tensor._view_note, None
    if tensor._tmeta.requires_grad and not tensor._tmeta.leaf:
        made_by = _own_node(tensor)
    what = "is being"
    if outdated:
        what = "its base or another view of its base has been"
    if made_by is not None and note not in ("no_grad", "inference"):
        name, number = made_by
        start = f"Output {number} of {name} is a view and {what} modified inplace."
    else:
        start = "A view was created in"
        if made_by is not None:
            name, number = made_by
            start = (
                f"Output {number} of {name} is a view of a view which was created in"
            )
        start += (
            f" inference mode and {what} modified inplace in normal mode."
            if note == "inference"
            else f" no_grad mode and {what} modified inplace with grad mode enabled."
        )
    return start + _VIEW_NOTES[note]


def _own_node(tensor: Any) -> tuple[str, int]:
    """Name and output number of the node that a view was made by."""
    if tensor._view_of is None:
        return tensor._made_by
    *before, (op, args, number) = tensor._path
    root = tensor._storage.meta
    shape, strides, offset = placed(root, before)
    meta = root.replace(shape=shape, strides=strides, offset=offset)
    name = op.grad_fn
    if name is not None and not isinstance(name, str):
        name = name(meta, *args)
    return re.sub(r"Backward\d*$", "", name or op.public.capitalize()), number


def differentiable(meta: Meta) -> bool:
    return meta.dtype.is_floating_point or meta.dtype.is_complex


class Viewing(Foreign):
    """Makes views, and keeps what is known of their histories."""

    levels: list[Any]
    lock: threading.RLock
    stale: list[weakref.ref[TensorBase]]

    def storage_of(self, tensor: TensorBase) -> Storage:
        """The tensor's storage, made now if it had its memory to itself."""
        while (storage := tensor._storage) is None:
            slot = tensor._slot if tensor._raw < 0 else tensor._raw
            if slot < 0 or slot >> SLOT_BITS == self.id:
                with value_lock:
                    storage = self._stored(tensor, slot)
            else:
                # A value pending in another thread's recording is handed out there.
                with recorders[slot >> SLOT_BITS].lock, value_lock:
                    storage = self._stored(tensor, slot)
            if storage is not None:
                break
            if slot < 0 and tensor._lost is not None:
                raise lost(tensor)
        return storage

    def join(self, tensor: TensorBase, other: TensorBase) -> Storage:
        """Puts a new tensor on the storage of another one."""
        while True:
            storage = self.storage_of(other)
            with value_lock:  # it might take its value back
                if other._storage is storage:
                    if tensor._storage is not storage:
                        storage.add(tensor)
                    return storage

    def _stored(self, tensor: TensorBase, slot: int) -> Storage | None:
        """A storage for a tensor whose value has a slot, or is there; with the locks.

        None if another thread has just given the tensor another value.
        """
        if tensor._storage is not None:
            return tensor._storage
        storage = tensor._former
        if storage is None:
            storage = Storage(tensor)
        else:
            # Closed recordings know the tensor's memory by it.
            storage.take(tensor)
        if storage.slot != slot or (slot < 0 and storage.array is None):
            return None
        if slot < 0 and tensor._tangents:
            self.base_tangents[storage] = tensor._tangents
        known, key = {}, id(storage)
        if slot >= 0:
            known = recorders[slot >> SLOT_BITS].storages
        # All at once: an interrupt comes before or after, and so do other threads.
        if storage.array is not tensor._array or slot != (
            tensor._slot if tensor._raw < 0 else tensor._raw
        ):
            return None
        taken = None, -1, storage, storage
        tensor._array, tensor._raw, tensor._storage, known[key] = taken
        return storage

    def link(
        self, view: TensorBase, base: TensorBase, op: Op, args: Any, k: int = 0
    ) -> None:
        """Makes a new tensor a view of the one it was made from."""
        storage = base._storage
        if storage is None:
            storage = self.storage_of(base)
        storage.add(view)
        if base._storage is not storage:  # it took its value back just now
            storage = self.join(view, base)
        assert op.view is not None
        if base._own_version is not None and not base._tmeta.inference:
            view._own_version = base._own_version
        if base._ahead:
            view._ahead = base._ahead
        if base._levels:
            view._levels = base._levels
        if op.view.detached:
            if base._tmeta.inference and not self.inference:
                # What was made in inference mode counts no versions, this does.
                view._own_version = [0]
            if storage.shared is not None:
                view._slot = -1
                self.forget_volatile()
            view._path = base._path
            if self.levels and any(n.cells for n in self.levels):
                # It shows the memory and no tangents, whatever is written to it.
                view._path = (*base._path, DualStep.of((op, args, k), None, {}))
            elif op.view.retyped:
                view._path = (*base._path, (op, args, k))
            if base._unaware or (base._view_note is not None and written_since(base)):
                base._slot = -1  # let in for its data alone
            return
        view._view_of = base if base._view_of is None else base._view_of
        view._path = (*base._path, (op, args, k))
        # Its node is PyTorch's until the memory is written to.
        view._versions = version_of(view)
        if (
            self.inference and not base._tmeta.inference
        ) or base._view_note == "inference":
            view._view_note = "inference"
            if not self.grad:
                self._inherit(view)
        elif not self.grad:
            view._view_note = "no_grad"
            self._inherit(view)
        elif op.results != "tensor":
            view._view_note = "multi"
        elif base._view_note is not None:
            view._view_note = base._view_note
        if storage.shared is not None:
            # Derived again when it is used: NumPy may write at any time.
            self.volatile.append(view)
            self.forget_volatile()

    @staticmethod
    def _inherit(view: TensorBase) -> None:
        """Of a new view without history: it requires grad if its base does."""
        if not view._tmeta.requires_grad:
            return
        if base_of(view)._tmeta.requires_grad:
            view._inherits = True
        else:
            # What it was made from is a view that requires grad itself.
            view._tmeta = view._tmeta.replace(requires_grad=False)
            view._slot = -1

    def settle_views_before_switch(self, base: TensorBase, value: bool) -> None:
        """Keeps the histories of views whose base is about to stop requiring grad.

        `value`: what `requires_grad` of the base is set to.
        """
        if value or base._view_of is not None:
            return
        for view in underived(base):
            if view._unaware:
                # It never had a node.
                view._unaware = False
                view._tmeta = view._tmeta.plain
                continue
            if written_since(view) and view._hist_version != writes_of(view):
                # PyTorch makes its node anew when it is used.
                end = self.ending_at(self.slot_of(base), base._tmeta, view)
                piece = self.piece_of(end, view._path[len(base._path) :], True)
                view._slot = piece._slot
            self.settle_view(view)

    def settle_views_before_move(self, base: TensorBase) -> None:
        """Keeps the histories of views whose base is about to get other memory."""
        for view in underived(base):
            if not lacks_node(view):
                self.settle_view(view)

    def settle_view(self, view: TensorBase) -> None:
        """Keeps the history that a view has now, whatever becomes of its base."""
        self.slot_of(view)
        self.keep_history(view)
        view._hist_version = writes_of(view)
        view._slot = -1

    def note_switch(self, tensor: TensorBase) -> None:
        """Call this before a tensor begins or ceases to require grad.

        A gradient computed from it later is differentiable by it, or no longer is.
        """
        slot, state = tensor._slot, self.state
        if (
            state.tracks
            and self.owns(slot)
            and state.memoized(("needed", slot), lambda: is_saved(state, slot))
        ):
            self.recording.switched[slot] = tensor
            self.mark(SWITCHED, slot)

    def let_views_inherit(self, base: TensorBase, value: bool) -> None:
        """Has views without history of their own require grad as their base does."""
        storage = base._storage
        assert storage is not None
        for view in storage.tensors():
            meta = view._tmeta
            if view._view_of is not base or not (
                view._inherits or (meta.requires_grad < value and differentiable(meta))
            ):
                continue
            if value and written_since(view) and not view._view_note:
                # PyTorch makes the node of a view anew when its memory was written to.
                view._unaware = True
                view._hist = view._node = None
                view._tmeta = meta.replace(requires_grad=True, leaf=False)
                view._slot = -1
                continue
            self.note_switch(view)
            view._inherits = value
            view._tmeta = meta.replace(requires_grad=value)
            view._slot = -1

    def keep_history(self, tensor: TensorBase) -> None:
        """Notes where the history of a tensor is before its value is replaced."""
        if tensor._slot >= 0 and not self.owns(tensor._slot):
            # In another thread's recording: a copy of that keeps it.
            piece = self._foreign_piece(tensor)
            if piece is not tensor:
                tensor._hist = piece._hist
        if self.owns(tensor._slot):
            tensor._hist = self.recording, tensor._slot
            self.stale.append(weakref.ref(tensor))

    def forget_volatile(self) -> None:
        """What has a history keeps its place in the graph; its data is new."""
        for tensor in self.volatile:
            meta, storage = tensor._tmeta, tensor._storage
            own = meta.requires_grad and not meta.leaf
            if own and tensor._hist is None and storage is not None:
                self.keep_history(tensor)
                tensor._hist_version = storage.version
        Foreign.forget_volatile(self)

    def _derive(self, tensor: TensorBase, storage: Storage) -> int:
        """As `Entering._derive`; raises for views that PyTorch refuses to use."""
        if tensor._view_note is not None and self.grad:
            self.check_current(tensor)
        if self.grad:
            tensor._unaware = False
        slot = Foreign._derive(self, tensor, storage)
        if tensor._unaware or (tensor._view_note is not None and lacks_node(tensor)):
            tensor._slot = -1  # derived again as soon as gradients are wanted
        return slot

    def enter_outdated(self, op: Op, args: Sequence[Any]) -> Sequence[TensorBase]:
        """Enters outdated views of which an operator uses the data alone.

        PyTorch never refuses that.
        """
        if not (
            op.differentiable is False
            or (op.view is not None and op.view.detached)
            or any(isinstance(a, dtype) and a.category < FLOATING for a in args)
        ):
            return ()
        entered: list[TensorBase] = []
        for t in args:
            if isinstance(t, TensorBase) and t._slot < 0 and t._storage is not None:
                if t._unaware or lacks_node(t):
                    self.live.append(weakref.ref(t))
                    Foreign._derive(self, t, t._storage)
                    entered.append(t)
        return entered

    def check_current(self, tensor: TensorBase) -> None:
        """Raises for a view without a node after a write that would give it one."""
        if lacks_node(tensor):
            raise RuntimeError(view_error(tensor, outdated=True))
