"""The only way into a recording.

A hit costs one dictionary look-up and is done by the functions that `_bind` generates.
Everything here is the way around it: the first time an operator is met at a place, a
tensor that enters the recording, writes to shared memory, and the flush that turns the
recording into a program and its results into arrays.
"""

from __future__ import annotations

import itertools
import re
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.device import get_default_device
from torchshim._core.flush import Alive, flush, values_of
from torchshim._core.meta import Meta, elementwise_strides, meta_of
from torchshim._core.op import (
    ARRAY,
    ARRAYS,
    FLOAT_HOLE,
    HOLE,
    INDEX,
    INDICES,
    INT_HOLE,
    OPT_ARRAY,
    OPT_ARRAYS,
    STATIC,
    Call,
    Number,
    Op,
    PythonCall,
    VjpCall,
    intern_call,
    write_op,
)
from torchshim._core.program import CACHE
from torchshim._core.promotion import check_result
from torchshim._core.state import CALL, IDENTITY, INPUT, MARK, ROOT, Recording, State
from torchshim._core.storage import Storage, TensorBase

# A recording that grows past this many events is flushed.
LENGTH_BOUND = 2000
# States kept in one recorder's trie before the oldest branches are dropped.
STATE_BOUND = 100_000

_SLOT_BITS = 40
_new = object.__new__
next_sequence = itertools.count().__next__

# The class of results; `_tensor` puts the public one here.
tensor_class: list[type[TensorBase]] = [TensorBase]
# Subclasses whose operators give plain tensors (Parameter, Buffer add themselves).
plain_classes: set[type] = set()


_INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created "
    "in inference mode in computation tracked by autograd. To work around this, you can "
    "make a clone to get a normal tensor and use it in autograd, or use "
    "`torch.no_grad()` instead of `torch.inference_mode()`."
)
_INFERENCE_WRITTEN = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can "
    "make a clone to get a normal tensor before doing inplace update.See "
    "https://github.com/pytorch/rfcs/pull/17 for more details."
)
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


def view_error(tensor: Any) -> str:
    """Why PyTorch forbids writing to a view."""
    node = tensor.grad_fn
    note = tensor._view_note
    if node is not None:
        name = re.sub(r"Backward\d*$", "", node.name())
        start = (
            f"Output {tensor.output_nr} of {name} is a view and is being modified "
            "inplace."
        )
    elif note == "inference":
        start = (
            "A view was created in inference mode and is being modified inplace in "
            "normal mode."
        )
    else:
        start = (
            "A view was created in no_grad mode and is being modified inplace with grad "
            "mode enabled."
        )
    return start + _VIEW_NOTES[note]


class Caller:
    """Finds the line of the user's program that a slow path was entered from."""

    package = __name__.split(".")[0]

    def __call__(self) -> tuple[str, int] | None:
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if name.split(".", 1)[0] != self.package or name.endswith("__main__"):
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return None


caller = Caller()


class Recorder:
    """Records what one thread does."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.first_slot = number << _SLOT_BITS
        self.lock = threading.RLock()
        self.root = State(None, ROOT, None, first_slot=self.first_slot)
        self.state = self.root
        self.states = 0
        self.grad = True
        self.inference = False
        self.mode = 0
        self.scalars: list[Any] = []
        self.inputs: list[Any] = []
        self.live: list[weakref.ref[TensorBase]] = []
        # Tensors written without history, see `place`.
        self.raws: list[TensorBase] = []
        # Tensors on memory that numpy shares: they keep no slot from call to call.
        self.volatile: list[TensorBase] = []
        # Storages on shared memory that a backward in progress wrote to.
        self.unstored: list[Storage] = []
        self.storages: dict[int, Storage] = {}
        self.recording = Recording(next_sequence())
        # Values taken over from other threads' recordings.
        self.foreign: dict[tuple[int, int], TensorBase] = {}
        self.flushes = 0
        self.shadow: State | None = None
        self.diverged: tuple[State, Any] | None = None
        self.reports: list[tuple[Any, list[Any]]] = []
        # Entries of a backward walk in progress, for its jump edge.
        self.trace: list[Any] | None = None
        self.set_mode()

    # -- modes -------------------------------------------------------------------

    def set_mode(self) -> None:
        """Folds everything that decides what an operator means into one key part."""
        self.mode = (
            self.grad
            | self.inference << 1
            | dtypes.get_default_dtype().index << 2
        )

    def make_room(self) -> None:
        """Flushes a recording that has grown long; between events of users only."""
        if self.state.depth >= LENGTH_BOUND:
            self.flush()

    # -- keys and steps ------------------------------------------------------------

    def call(self, op: Op, args: Sequence[Any]) -> State:
        """Records an operator, however it was called. Raises as PyTorch does."""
        parts: list[Any] = []
        template: list[Any] = []
        operands: list[tuple[int, Meta]] = []
        values: list[Any] = []
        numbers: list[tuple[int, int | None, int]] = []

        def scalar(value: Any, inner: int | None) -> Any:
            """The key part of a number; notes how the template holds it."""
            kind = value.__class__
            if kind is float:
                values.append(value)
                return float, FLOAT_HOLE
            if kind is int and -(2**53) < value < 2**53:
                numbers.append((len(parts), inner, len(values)))
                values.append(value)
                return (int, value), Number(value)
            return (kind, value), Number(value)

        for param, arg in zip(op.params, args, strict=True):
            role = param.role
            if arg is None or role == STATIC:
                parts.append(arg)
                template.append(arg)
            elif isinstance(arg, TensorBase):
                slot = self.slot_of(arg)
                parts.append(slot)
                template.append(HOLE)
                operands.append((slot, arg._meta))
            elif role in (ARRAYS, OPT_ARRAYS):
                slots = []
                for item in arg:
                    if item is None:
                        slots.append(None)
                    else:
                        slots.append(self.slot_of(item))
                        operands.append((slots[-1], item._meta))
                parts.append(tuple(slots))
                template.append(tuple(None if s is None else HOLE for s in slots))
            elif role in (ARRAY, OPT_ARRAY):
                raise TypeError(f"{op.public}(): {param.name} must be a Tensor")
            elif role == INDICES:
                inner = [scalar(v, i)[1] for i, v in enumerate(arg)]
                parts.append(tuple(arg))
                template.append(tuple(inner))
            elif isinstance(arg, (bool, int, float, complex)):
                part, entry = scalar(arg, None)
                # An index is keyed as plainly as the hot path keys it.
                parts.append(arg if role == INDEX else part)
                template.append(entry)
            else:
                parts.append(arg)
                template.append(arg)
        key = (op, self.mode, *parts)
        if self.volatile:
            self._forget_volatile()
        if not numbers:
            return self._step(key, op, template, operands, values, None)
        return self._step_learning(key, op, template, operands, values, numbers)

    def _forget_volatile(self) -> None:
        for tensor in self.volatile:
            tensor._slot = -1
        self.volatile.clear()

    def _step(
        self,
        key: tuple[Any, ...],
        op: Op,
        template: Sequence[Any],
        operands: Sequence[tuple[int, Meta]],
        values: Sequence[Any],
        place: tuple[Any, tuple[Any, ...]] | None,
    ) -> State:
        found = self.state.next.get(key)
        if found is None:
            default = dtypes.get_default_dtype()
            template = tuple(template)
            call = intern_call(
                (op, template, default), lambda: Call(op, template, default, op.writes)
            )
            found = self.extend(key, call, operands, len(values), place)
        self.advance(found, values)
        return found

    def _step_learning(
        self,
        key: tuple[Any, ...],
        op: Op,
        template: list[Any],
        operands: Sequence[tuple[int, Meta]],
        values: list[Any],
        numbers: list[tuple[int, int | None, int]],
    ) -> State:
        """Records an event with integers that may turn out to be runtime scalars.

        A second value at the same place makes the integer a runtime scalar from then
        on, if the operator's shapes do not depend on it.
        """
        state = self.state
        ints = tuple(values[at] for _, _, at in numbers)
        place = self._blank(key, numbers, (True,) * len(numbers))
        floats = [v for i, v in enumerate(values) if i not in {n[2] for n in numbers}]
        if key in state.next:
            found = state.next[key]
            self.advance(found, floats)
            return found
        mask = state.learnt.get(place) if state.learnt else None
        known = state.places.get(place) if state.places else None
        if known is None and self.shadow is not None and self.shadow.places:
            known = self.shadow.places.get(place)
            before = self.shadow.learnt.get(place) if self.shadow.learnt else None
            mask = mask or before
        if mask is None and known is not None and not isinstance(known[0], State):
            mask = tuple(a != b for a, b in zip(ints, known[0], strict=True))
            if not any(mask):
                mask = None
        elif mask is not None and known is not None:
            mask = tuple(
                m or a != b for m, a, b in zip(mask, ints, known[0], strict=True)
            )
        if mask is not None:
            learnt_key = self._blank(key, numbers, mask)
            dynamic = {n[2] for n, m in zip(numbers, mask, strict=True) if m}
            static = {n[2] for n in numbers} - dynamic
            values_now = [v for i, v in enumerate(values) if i not in static]
            try:
                found = self._step(
                    learnt_key,
                    op,
                    self._with_holes(template, numbers, mask),
                    operands,
                    values_now,
                    (place, ints),
                )
            except Exception:
                # The operator needs this integer to be static.
                pass
            else:
                if state.learnt is None:
                    state.learnt = {}
                state.learnt[place] = mask
                return found
        return self._step(key, op, template, operands, floats, (place, ints))

    @staticmethod
    def _blank(
        key: tuple[Any, ...],
        numbers: Sequence[tuple[int, int | None, int]],
        mask: Sequence[bool],
    ) -> tuple[Any, ...]:
        """The key with the masked integers taken out."""
        blank = list(key)
        for (part, inner, _), dynamic in zip(numbers, mask, strict=True):
            if dynamic:
                at = part + 2
                if inner is None:
                    blank[at] = INT_HOLE
                else:
                    piece = list(blank[at])
                    piece[inner] = INT_HOLE
                    blank[at] = tuple(piece)
        return tuple(blank)

    @staticmethod
    def _with_holes(
        template: Sequence[Any],
        numbers: Sequence[tuple[int, int | None, int]],
        mask: Sequence[bool],
    ) -> list[Any]:
        holed = list(template)
        for (part, inner, _), dynamic in zip(numbers, mask, strict=True):
            if dynamic:
                if inner is None:
                    holed[part] = INT_HOLE
                else:
                    piece = list(holed[part])
                    piece[inner] = INT_HOLE
                    holed[part] = tuple(piece)
        return holed

    def event(
        self,
        call: Any,
        tensors: Sequence[TensorBase],
        values: Sequence[float] = (),
        of: int | None = None,
    ) -> State:
        """Records a call that no user writes: a gradient, a write through a view."""
        slots = [self.slot_of(t) for t in tensors]
        if self.volatile:
            self._forget_volatile()
        key = (call, self.mode, *slots)
        found = self.state.next.get(key)
        if found is None:
            operands = [(s, t._meta) for s, t in zip(slots, tensors, strict=True)]
            found = self.extend(key, call, operands, len(values), None)
            found.of = of
        self.advance(found, values)
        return found

    def python(
        self, call: PythonCall, inputs: Sequence[TensorBase], outs: Sequence[TensorBase]
    ) -> State:
        """Records that `outs` were made of `inputs` by Python code with a backward."""
        tensors = [*inputs, *outs]
        slots = [self.slot_of(t) for t in tensors]
        key = (call, self.mode, *slots)
        found = self.state.next.get(key)
        if found is None:
            operands = [(s, t._meta) for s, t in zip(slots, tensors, strict=True)]
            found = self.extend(key, call, operands, 0, None)
        self.state = found
        return found

    def advance(self, state: State, values: Sequence[Any] = ()) -> None:
        """Steps to a state that exists, filling in its runtime scalars."""
        at = state.scalar
        for value in values:
            self.scalars[at] = value
            at += 1
        self.state = state

    def extend(
        self,
        key: Any,
        call: Any,
        operands: Sequence[tuple[int, Meta]],
        n_scalars: int,
        place: tuple[Any, tuple[Any, ...]] | None,
    ) -> State:
        """Adds the state of an event that was never recorded here."""
        metas, wrt, view = self.infer(call, [meta for _, meta in operands])
        state = self._add(
            key,
            CALL,
            place,
            call=call,
            operands=tuple(slot for slot, _ in operands),
            given=tuple(meta for _, meta in operands),
            metas=metas,
            scalars=n_scalars,
            wrt=wrt,
        )
        state.view = state.alias = view
        if call.write:
            state.write = operands[0][0]
        return state

    def _add(
        self,
        key: Any,
        kind: int,
        place: tuple[Any, tuple[Any, ...]] | None,
        **fields: Any,
    ) -> State:
        parent = self.state
        state = State(parent, kind, key, line=caller(), **fields)
        self._follow(parent, key, place, state)
        while len(self.scalars) < state.n_scalars:
            self.scalars.append(0.0)
        parent.next[key] = state
        state.top.size += 1
        self.states += 1
        if self.states > STATE_BOUND:
            self.prune()
        return state

    def _follow(
        self,
        parent: State,
        key: Any,
        place: tuple[Any, tuple[Any, ...]] | None,
        state: State,
    ) -> None:
        """Keeps the shadow: the earlier recording that this one runs parallel to."""
        if parent.next and self.diverged is None:
            self.diverged = parent, state
        where, ints = place if place is not None else (None, ())
        if where is None and state.kind == INPUT:
            where = INPUT
        shadow: State | None = None
        if where is not None and parent.places and where in parent.places:
            shadow = parent.places[where][1]
        elif self.shadow is not None:
            shadow = self.shadow.next.get(key)
            if shadow is None and where is not None and self.shadow.places:
                found = self.shadow.places.get(where)
                shadow = found[1] if found else None
        self.shadow = shadow
        if where is not None:
            if parent.places is None:
                parent.places = {}
            parent.places[where] = ints, state

    def prune(self) -> None:
        """Forgets the branches not used for longest (bounded memory)."""
        running = self.state.top
        tops = sorted(self.root.next.values(), key=lambda top: top.touched)
        dropped: set[int] = set()
        for top in tops:
            if self.states <= STATE_BOUND // 2:
                break
            if top is not running:
                del self.root.next[top.key]
                self.states -= top.size
                dropped.add(id(top))
        self.root.places = None
        CACHE.forget(dropped)

    # -- inference -----------------------------------------------------------------

    def infer(
        self, call: Any, metas: Sequence[Meta]
    ) -> tuple[tuple[Meta, ...], tuple[int, ...], bool]:
        """Metas of the results, which operands get gradients, whether a view."""
        op: Op | None = call.op
        device = self.device_of(op, metas)
        if op is not None and op.typecheck is not None:
            op.typecheck(*call.arguments(metas, call.placeholders()))
        if call.write and op is not None and op.promote is not None:
            check_result(call.promoted(metas), metas[0].dtype)
        avals = call.infer(tuple(m.aval for m in metas))
        wrt: tuple[int, ...] = ()
        if self.grad and any(m.requires_grad for m in metas):
            wrt = tuple(
                i
                for i, m in enumerate(metas)
                if m.requires_grad and call.differentiable(i)
            )
        if wrt and any(m.inference for m in metas):
            self._refuse_inference(call, metas, wrt)
        if op is not None and op.view is not None:
            return self._view_metas(call, metas, avals, wrt, device)
        if call.write:
            target = metas[0]
            if avals[0][0] != tuple(target.shape):
                raise RuntimeError(
                    f"output with shape {list(target.shape)} doesn't match the "
                    f"broadcast shape {list(avals[0][0])}"
                )
        results = []
        for shape, dtype in avals:
            grad = bool(wrt) and (dtype.is_floating_point or dtype.is_complex)
            strides = None
            offset = 0
            made_here = self.inference
            if call.write:
                strides, offset = metas[0].strides, metas[0].offset
                made_here = metas[0].inference
            elif isinstance(call, PythonCall):
                raw = metas[call.n_inputs + len(results)]
                strides, offset = raw.strides, raw.offset
            elif op is not None and op.layout is not None:
                strides = self._layout(op, shape, metas)
            results.append(
                meta_of(
                    shape, dtype, device, strides, offset, grad, not grad, made_here
                )
            )
        if not any(m.requires_grad for m in results):
            wrt = ()
        return tuple(results), wrt, False

    @staticmethod
    def _refuse_inference(call: Any, metas: Sequence[Meta], wrt: Sequence[int]) -> None:
        """Raises if the backward would need a tensor made in inference mode."""
        if not isinstance(call, Call):
            return
        saved = call.saved(wrt)
        for owner, meta in zip(call.owners, metas, strict=True):
            if meta.inference and owner in saved:
                raise RuntimeError(_INFERENCE_SAVED)

    @staticmethod
    def _layout(op: Op, shape: Any, metas: Sequence[Meta]) -> Any:
        pairs = [(tuple(m.shape), m.strides) for m in metas]
        if op.layout == "preserve":
            return elementwise_strides(tuple(shape), pairs)
        return op.layout(tuple(shape), pairs)  # type: ignore[operator]

    def _view_metas(
        self,
        call: Call,
        metas: Sequence[Meta],
        avals: Any,
        wrt: tuple[int, ...],
        device: Any,
    ) -> tuple[tuple[Meta, ...], tuple[int, ...], bool]:
        base = metas[0]
        assert call.op.view is not None
        args = call.arguments([None] * len(metas), [0] * call.n_scalars)[1:]
        geometry = call.op.view.geometry(
            tuple(base.shape), base.strides, base.offset, *args
        )
        if geometry is None:
            results = tuple(
                meta_of(s, d, device, None, 0, bool(wrt), not wrt, self.inference)
                for s, d in avals
            )
            return results, wrt, False
        if isinstance(geometry, tuple):
            geometry = [geometry]
        results = []
        for (shape, strides, offset), (inferred, dtype) in zip(
            geometry, avals, strict=True
        ):
            assert tuple(shape) == tuple(inferred), (call, shape, inferred)
            grad = bool(wrt) and (dtype.is_floating_point or dtype.is_complex)
            results.append(
                meta_of(
                    shape,
                    dtype,
                    device,
                    tuple(strides),
                    offset,
                    grad,
                    not grad,
                    base.inference,
                )
            )
        return tuple(results), wrt, True

    def device_of(self, op: Op | None, metas: Sequence[Meta]) -> Any:
        """The one device of the operands (0-dim CPU tensors go anywhere)."""
        device = None
        for meta in metas:
            if device is None or (device.type == "cpu" and not device_dim):
                device, device_dim = meta.device, len(meta.shape)
            elif meta.device != device and (
                meta.shape or meta.device.type != "cpu"
            ):
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at "
                    f"least two devices, {device} and {meta.device}!"
                )
        if device is None:
            device = get_default_device()
        return device

    # -- results -------------------------------------------------------------------

    def result(self, state: State, k: int = 0) -> TensorBase:
        """A new tensor on the k-th result of the event just recorded."""
        tensor = _new(tensor_class[0])
        tensor._slot = state.slot + k
        tensor._meta = state.metas[k]
        tensor._array = None
        self.live.append(weakref.ref(tensor))
        return tensor

    def at(self, slot: int, meta: Meta) -> TensorBase:
        """A new tensor on a slot that is known already."""
        tensor = _new(tensor_class[0])
        tensor._slot = slot
        tensor._meta = meta
        tensor._array = None
        self.live.append(weakref.ref(tensor))
        return tensor

    def results(self, state: State) -> list[TensorBase]:
        return [self.result(state, k) for k in range(len(state.metas))]

    def owns(self, slot: int) -> bool:
        """Whether a slot is one of this recorder's."""
        return slot >> _SLOT_BITS == self.id

    def array_of(self, tensor: TensorBase) -> Any:
        """The array of a tensor without a storage; runs what it takes."""
        if tensor._array is None:
            slot = tensor._slot if tensor._raw < 0 else tensor._raw
            if slot >> _SLOT_BITS == self.id:
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
            if storage.slot >> _SLOT_BITS == self.id:
                self.flush()
            else:
                return self._foreign_array(storage)
        return storage.array

    # -- tensors in the recording --------------------------------------------------

    def slot_of(self, tensor: TensorBase) -> int:
        """The slot of a tensor; one that is not in the recording enters it."""
        slot = tensor._slot
        if slot >= 0:
            if slot >> _SLOT_BITS == self.id:
                return slot
            return self._foreign(tensor)
        if tensor._storage is None:
            return self._enter(tensor)
        slot = self._derive(tensor, tensor._storage)
        self.live.append(weakref.ref(tensor))
        return slot

    def _foreign(self, tensor: TensorBase) -> int:
        """A tensor whose slot belongs to another thread's recording.

        Its owner may be recording at this moment, so that recording is only read.
        """
        if tensor._array is not None and tensor._storage is None:
            return self._enter(tensor)
        return self.slot_of(self._foreign_piece(tensor))

    def _foreign_piece(self, tensor: TensorBase) -> TensorBase:
        owner = recorders[tensor._slot >> _SLOT_BITS]
        with owner.lock:
            slot = tensor._slot
            if slot < 0 or slot >> _SLOT_BITS == self.id:
                return tensor
            key = owner.recording.seq, slot
            piece = self.foreign.get(key)
            if piece is None:
                piece = self.foreign[key] = self._snapshot(owner, tensor, slot)
            return piece

    def _snapshot(self, owner: Recorder, tensor: TensorBase, slot: int) -> TensorBase:
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
            twin.hooked.update(recording.hooked)
            twin.python.update(recording.python)
            owner._close(twin, state, values, saved)
            piece._hist = twin, slot
        elif meta.leaf and meta.requires_grad:
            self.recording.entered[self._enter(piece)] = tensor
        return piece

    def _enter(self, tensor: TensorBase) -> int:
        meta = tensor._meta
        if tensor._array is None and tensor._raw >= 0:
            slot = tensor._slot = self._role(tensor, None, self._own_raw(tensor))
            self.live.append(weakref.ref(tensor))
            return slot
        array = tensor._array
        if array is None:
            # Another thread took the tensor into its recording just now.
            return self.slot_of(tensor)
        hist = tensor._hist if meta.requires_grad and not meta.leaf else None
        key = (INPUT, meta) if hist is None else (INPUT, meta, Recording)
        slot = self._input(key, meta, array)
        if tensor._array is array:
            tensor._slot = slot
        self.recording.entered[slot] = tensor
        if hist is not None:
            self.recording.hists[slot] = hist
        if self.trace is not None:
            self.trace.append(tensor)
        return slot

    def _input(self, key: Any, meta: Meta, array: Any) -> int:
        found = self.state.next.get(key)
        if found is None:
            found = self._add(key, INPUT, None, metas=(meta,))
        position = found.n_inputs - 1
        inputs = self.inputs
        if position < len(inputs):
            del inputs[position:]
        inputs.append(array)
        self.state = found
        return found.slot

    def identity(self, source: int, meta: Meta, *note: Any) -> int:
        """A new autograd identity for a value: same data, other role."""
        key = (IDENTITY, source, meta, *note)
        found = self.state.next.get(key)
        if found is None:
            found = self._add(key, IDENTITY, None, operands=(source,), metas=(meta,))
        self.state = found
        return found.slot

    def renamed(self, tensor: TensorBase) -> TensorBase:
        """Another tensor with the same value and no history."""
        meta = tensor._meta.replace(requires_grad=False, leaf=True)
        twin = _new(tensor_class[0])
        twin._slot = self.identity(self.slot_of(tensor), meta)
        twin._meta = meta
        twin._array = None
        self.live.append(weakref.ref(twin))
        return twin

    def _foreign_array(self, holder: Storage | TensorBase) -> Any:
        """As `_foreign`, for a base value or one written without history."""

        def look() -> tuple[int, Any]:
            if isinstance(holder, Storage):
                return holder.slot, holder.array
            return holder._raw, holder._array

        slot, array = look()
        if array is not None or slot < 0:
            return array
        owner = recorders[slot >> _SLOT_BITS]
        with owner.lock:
            slot, array = look()
            if array is None and slot >> _SLOT_BITS == owner.id:
                state, recording = owner.state, owner.recording
                return values_of(owner, state, recording, [slot], set())[0][slot]
            return array

    def raw(self, storage: Storage) -> int:
        """The slot of a storage's base value."""
        slot = storage.slot
        if slot < 0:
            slot = self._input(
                (INPUT, storage.meta, Storage), storage.meta, storage.array
            )
            storage.slot = slot
            storage.tracked = False
            if self.trace is not None:
                self.trace.append(storage)
        elif slot >> _SLOT_BITS != self.id:
            array = self._foreign_array(storage)
            return self._input((INPUT, storage.meta, Storage), storage.meta, array)
        self.storages[id(storage)] = storage
        return slot

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
                    tensor._slot = self._input((INPUT, meta, Storage), meta, piece)
                    return tensor._slot
            shared.refresh(storage)
        base = tensor._base
        if base is not None and meta.requires_grad:
            # A differentiable view: the history goes through its base.
            source, done = base, len(base._path)
        else:
            source, done = None, 0
        if len(tensor._path) == done and source is None:
            tensor._slot = self._role(tensor, storage, self.raw(storage))
            return tensor._slot
        if source is None:
            piece = _new(TensorBase)
            piece._meta = storage.meta
            piece._array = None
            raw = self.raw(storage)
            piece._slot = (
                self.identity(raw, storage.meta) if storage.tracked else raw
            )
        else:
            self.slot_of(source)
            piece = source
        state = None
        grad, self.grad = self.grad, source is not None
        self.set_mode()
        try:
            for op, args, k in tensor._path[done:]:
                state = self.call(op, [piece, *args])
                piece = self.result(state, k)
        finally:
            self.grad = grad
            self.set_mode()
        slot = piece._slot
        if source is None and meta.requires_grad:
            slot = self._role(tensor, storage, slot)
        elif state is not None and piece._meta is not meta:
            tensor._meta = meta.replace(
                requires_grad=piece._meta.requires_grad, leaf=piece._meta.leaf
            )
        tensor._slot = slot
        if tensor._hooks is not None and source is not None:
            tensor._hooks.derived(self, tensor)
        return slot

    def _own_raw(self, tensor: TensorBase) -> int:
        raw = tensor._raw
        if raw >> _SLOT_BITS == self.id:
            return raw
        meta = tensor._meta.replace(requires_grad=False, leaf=True)
        return self._input((INPUT, meta, Storage), meta, self._foreign_array(tensor))

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
        self.recording.entered[slot] = tensor
        self.recording.hists[slot] = tensor._hist
        return slot

    def mark(self, *what: Any) -> None:
        """An event without a value: something that later look-ups depend on."""
        key = (MARK, *what)
        found = self.state.next.get(key)
        if found is None:
            found = self._add(key, MARK, None)
        self.state = found

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

    # -- writes --------------------------------------------------------------------

    def storage_of(self, tensor: TensorBase) -> Storage:
        """The tensor's storage, made now if it had its memory to itself."""
        storage = tensor._storage
        if storage is None:
            storage = Storage(tensor)
            tensor._storage = storage
            if storage.slot >= 0:
                self.storages[id(storage)] = storage
        return storage

    def link(
        self, view: TensorBase, base: TensorBase, op: Op, args: Any, k: int = 0
    ) -> None:
        """Makes a new tensor a view of the one it was made from."""
        storage = base._storage
        if storage is None:
            storage = self.storage_of(base)
        storage.add(view)
        assert op.view is not None
        if op.view.detached:
            view._path = base._path
            return
        view._base = base if base._base is None else base._base
        view._path = (*base._path, (op, args, k))
        if self.inference and not base._meta.inference:
            view._view_note = "inference"
        elif not self.grad:
            view._view_note = "no_grad"
        elif op.results != "tensor":
            view._view_note = "multi"

    def check_writable(self, tensor: TensorBase) -> None:
        """Raises where PyTorch forbids an in-place operator on this tensor."""
        meta = tensor._meta
        if meta.inference and not self.inference:
            raise RuntimeError(_INFERENCE_WRITTEN)
        base = tensor._base
        if self.grad:
            note = tensor._view_note
            if note is not None and (
                meta.requires_grad or (base is not None and base._meta.requires_grad)
            ):
                raise RuntimeError(view_error(tensor))
            if meta.requires_grad and meta.leaf:
                raise RuntimeError(
                    "a leaf Variable that requires grad is being used in an in-place "
                    "operation."
                )
            if (
                base is not None
                and base._meta.requires_grad
                and base._meta.leaf
            ):
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an "
                    "in-place operation."
                )
        if any(s > 1 and st == 0 for s, st in zip(meta.shape, meta.strides)):
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor "
                "refers to a single memory location. Please clone() the tensor before "
                "performing the operation."
            )

    def write(self, tensor: TensorBase, new: TensorBase) -> None:
        """Replaces a tensor's value by `new` (same shape and dtype), in place.

        Tracked by autograd where `new` requires grad or grad mode is on and the tensor
        has history; an untracked write leaves the history as it was.
        """
        meta = tensor._meta
        if tensor._view_note is not None and self.grad and new._meta.requires_grad:
            raise RuntimeError(view_error(tensor))
        untracked = not self.grad and meta.requires_grad
        if tensor._storage is None:
            slot = self.slot_of(new)
            old = tensor._slot if tensor._raw < 0 else tensor._raw
            if self.owns(old) and self.state.write != old:
                self._overwritten(old, slot)
            self.place(tensor, slot, new._meta)
            return
        storage = self.storage_of(tensor)
        tracked = not untracked and (new._meta.requires_grad or meta.requires_grad)
        tracked = tracked and (tensor._base is not None or not tensor._path)
        base = tensor if tensor._base is None else tensor._base
        steps = tensor._path[len(base._path) if tracked else 0 :]
        if steps:
            if tracked:
                self.slot_of(base)
                whole = base
            else:
                whole = self._raw_tensor(storage)
            written = self._write_back(whole, steps, new)
            if tracked and base._path:
                written = self._write_back(
                    self._raw_tensor(storage), base._path, written
                )
        else:
            written = new
        self._store(storage, tensor, base, written, tracked)
        if storage.shared is not None:
            self.volatile.append(tensor)
            self._forget_volatile()
            if self.trace is None:
                self.flush()
                storage.shared.store(storage)
            else:
                self.unstored.append(storage)

    def place(self, tensor: TensorBase, slot: int, meta: Meta) -> None:
        """Gives a tensor that has its memory to itself a new value, in place."""
        # No call between the assignments: another thread sees all of them or none.
        if not self.grad and tensor._meta.requires_grad:
            # Untracked: the history stays, on a new identity when it is used next.
            if not tensor._meta.leaf and tensor._slot >= 0:
                tensor._hist = self.recording, tensor._slot
            tensor._slot = -1
            tensor._raw = slot
            tensor._array = None
            tensor._versions += 1
            self.raws.append(tensor)
        else:
            tensor._slot = slot
            tensor._raw = -1
            tensor._meta = meta
            tensor._hist = None
            tensor._array = None
            tensor._versions += 1
            tensor._node = None
            self.live.append(weakref.ref(tensor))

    def mutate(self, op: Op, args: Sequence[Any], targets: Sequence[TensorBase]) -> None:
        """Records an operator whose results are the new values of `targets`.

        The operator declares `mutates=`: the parameters whose operands, in order, its
        results replace. This is how one event updates all parameters of an optimizer.
        """
        self.make_room()
        state = self.call(op, args)
        slot = state.slot
        for target, meta in zip(targets, state.metas, strict=True):
            if target._storage is None:
                self.place(target, slot, meta)
            else:
                self.write(target, self.at(slot, meta))
            slot += 1

    def _overwritten(self, old: int, new: int) -> None:
        """Notes in the path that a value took the place of another."""
        key = (MARK, "write", old, new)
        found = self.state.next.get(key)
        if found is None:
            found = self._add(key, MARK, None, operands=(old, new))
            found.write = old
        self.state = found

    def _raw_tensor(self, storage: Storage) -> TensorBase:
        piece = _new(TensorBase)
        piece._meta = storage.meta
        piece._array = None
        raw = self.raw(storage)
        piece._slot = self.identity(raw, storage.meta) if storage.tracked else raw
        return piece

    def _write_back(
        self, whole: TensorBase, steps: Sequence[Any], new: TensorBase
    ) -> TensorBase:
        """The base with a piece replaced, through every step of a view path."""
        pieces = [whole]
        for op, args, k in steps[:-1]:
            pieces.append(self.result(self.call(op, [pieces[-1], *args]), k))
        for (op, args, k), piece in zip(reversed(steps), reversed(pieces), strict=True):
            new = self.result(self.call(write_op(op), [piece, new, *args, k]))
        return new

    def _store(
        self,
        storage: Storage,
        writer: TensorBase,
        base: TensorBase,
        new: TensorBase,
        tracked: bool,
    ) -> None:
        """Puts a new base value into a storage; every tensor on it becomes stale."""
        slot = self.slot_of(new)
        overwritten = storage.slot
        aliases = storage.tensors()
        for alias in aliases:
            meta = alias._meta
            if (
                meta.requires_grad
                and not meta.leaf
                and alias._base is None
                and alias._slot >= 0
            ):
                # History stays; only the data changed.
                alias._hist = (self.recording, alias._slot)
            alias._slot = -1
        # Marked in the path, so that backward knows whose values were overwritten.
        if writer._own_version is not None:
            writer._own_version += 1
        else:
            storage.version += 1
            if self.owns(overwritten):
                self._overwritten(overwritten, slot)
        storage.slot = slot
        storage.array = None
        storage.tracked = new._meta.requires_grad
        self.storages[id(storage)] = storage
        if tracked and not base._path:
            grad = new._meta.requires_grad
            base._slot = slot
            base._meta = base._meta.replace(requires_grad=grad, leaf=not grad)
            base._hist = None
            base._node = None
            self.live.append(weakref.ref(base))
            if grad:
                for alias in aliases:
                    if alias._base is base and alias._view_note != "no_grad":
                        alias._meta = alias._meta.replace(
                            requires_grad=True, leaf=False
                        )
                        alias._node = None

    # -- flush ---------------------------------------------------------------------

    def flush(self) -> None:
        """Runs what was recorded; every live tensor gets its array."""
        with self.lock:
            if self.state is not self.root:
                flush(self)

    def commit(
        self,
        state: State,
        recording: Recording,
        alive: Alive,
        placed: Sequence[tuple[TensorBase, int]],
        values: dict[int, Any],
        saved: dict[int, frozenset[int]],
        history: bool,
    ) -> None:
        """Hands the arrays out and starts the next recording."""
        if history:
            self._close(recording, state, values, saved)
            for tensor, slot in alive.histories:
                tensor._hist = recording, slot
        # Another thread may have written to a shared tensor while the program ran.
        for tensor, slot in alive.tensors:
            if tensor._slot == slot:
                tensor._array = values[slot]
        for storage, slot in alive.storages:
            if storage.slot == slot:
                storage.array = values[slot]
        for tensor, slot in alive.raws:
            if tensor._raw == slot:
                tensor._raw = -1
                tensor._array = values[slot]
        mine = self.id
        for tensor, slot in placed:
            if tensor._slot == slot:
                tensor._slot = -1
        for tensor in recording.entered.values():
            if tensor._slot >> _SLOT_BITS == mine:
                tensor._slot = -1
        for storage in self.storages.values():
            if storage.slot >> _SLOT_BITS == mine:
                storage.slot = -1
                storage.tracked = False
        if self.foreign:
            self.foreign = {}
        state.top.touched = self.flushes
        self.state = self.root
        self.inputs = []
        self.live = []
        self.raws = []
        self.storages = {}
        self.recording = Recording(next_sequence())
        self.shadow = None
        self.diverged = None
        self.flushes += 1

    def _close(
        self,
        recording: Recording,
        state: State,
        values: dict[int, Any],
        saved: dict[int, frozenset[int]],
    ) -> None:
        """Keeps what a later backward through this recording needs."""
        recording.state = state
        recording.scalars = self.scalars[: state.n_scalars]
        recording.savers = saved
        recording.saved = {slot: values[slot] for slot in saved}
        recording.versions = versions_of(self, state, recording, tuple(saved))

    def line(self) -> tuple[str, int] | None:
        return caller()

    def why(self) -> str:
        """Why this recording needs a program of its own, for `explain()`."""
        if self.diverged is None:
            return "first recording"
        parent, made = self.diverged
        return describe_divergence(parent, made)

    def push_report(self, sites: list[Any], report: Any) -> None:
        self.reports.append((sites, report))
        if len(self.reports) > 64:
            self.raise_failed_checks()

    def raise_failed_checks(self) -> None:
        """Raises the first data-dependent error of the programs run so far."""
        while self.reports:
            sites, report = self.reports.pop(0)
            for site, (bad, value) in zip(sites, np.asarray(report), strict=True):
                if bad:
                    self.reports.clear()
                    raise site.exception(int(value))


recorders: list[Recorder] = []
_idle: list[Recorder] = []
_making = threading.Lock()


class _Lease:
    """Gives a thread's recorder back when the thread ends."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __del__(self) -> None:
        if _idle is not None:
            _idle.append(self.recorder)


class Local(threading.local):
    """`local.rec`: the recorder of the running thread."""

    rec: Recorder

    def __init__(self) -> None:
        with _making:
            if _idle:
                rec = _idle.pop()
            else:
                rec = Recorder(len(recorders))
                recorders.append(rec)
        rec.grad, rec.inference = True, False
        rec.set_mode()
        self.rec = rec
        self._lease = _Lease(rec)


local = Local()


def refresh_modes() -> None:
    """To be called when a global default changed."""
    for recorder in recorders:
        recorder.set_mode()


def frozen_call(op: Op, args: Sequence[Any]) -> Call:
    """The call of a view operator with all its integers static."""
    template: list[Any] = [HOLE]
    for param, arg in zip(op.params[1:], args, strict=True):
        if param.role == INDICES:
            template.append(tuple(Number(v) for v in arg))
        elif isinstance(arg, int) and param.role == INDEX:
            template.append(Number(arg))
        else:
            template.append(arg)
    frozen, default = tuple(template), dtypes.get_default_dtype()
    return intern_call(
        (op, frozen, default), lambda: Call(op, frozen, default, False)
    )


def vjp_call(
    inner: Any,
    wrt: tuple[int, ...],
    cts: tuple[bool, ...],
    metas: Sequence[Meta],
    needs: tuple[int, ...],
) -> VjpCall:
    """The interned gradient call of `inner` for operands of these metas."""
    absent = tuple(
        None if i in needs else (tuple(m.shape), m.dtype) for i, m in enumerate(metas)
    )
    return intern_call(
        ("vjp", inner, wrt, cts, absent), lambda: VjpCall(inner, wrt, cts, absent)
    )




def versions_of(
    rec: Recorder, state: State, recording: Recording, saved: Sequence[int]
) -> dict[int, tuple[Any, int]]:
    """Saved slot -> (who holds that value's memory, its version), at closing.

    A slot that was overwritten before the closing has no holder: (None, count).
    """
    if not saved:
        return {}
    written = Overwritten(state)
    holders: dict[int, Any] = {}
    for tensor in recording.entered.values():
        if tensor._slot >= 0:
            holders[written.root(tensor._slot)] = tensor
    for ref in rec.live:
        tensor = ref()
        if tensor is not None and tensor._slot >= 0:
            holders[written.root(tensor._slot)] = tensor
    found: dict[int, tuple[Any, int]] = {}
    for slot in saved:
        count = written.count(slot)
        if count:
            found[slot] = None, count
            continue
        tensor = holders.get(written.root(slot))
        if tensor is not None:
            holder = tensor._storage or tensor
            version = holder.version if tensor._storage else holder._versions
            found[slot] = weakref.ref(holder), version
    return found


class Overwritten:
    """Which values of a path were overwritten in place, and how often."""

    def __init__(self, state: State) -> None:
        self._root: dict[int, int] = {}
        self._next: dict[int, int] = {}
        for event in state.path():
            if event.alias and event.operands:
                source = self.root(event.operands[0])
                for slot in range(event.slot, event.n_slots):
                    self._root[slot] = source
            for old, new in event.mutated():
                self._next[self.root(old)] = self.root(new)
            if event.write is not None:
                new = event.operands[1] if event.kind == MARK else event.slot
                self._next[self.root(event.write)] = self.root(new)

    def root(self, slot: int) -> int:
        return self._root.get(slot, slot)

    def last(self, slot: int) -> int:
        """The value that this value's memory holds at the end of the path."""
        at = self.root(slot)
        while at in self._next:
            at = self._next[at]
        return slot if at == self.root(slot) else at

    def count(self, slot: int) -> int:
        """How many writes the memory of this value has seen since it was made."""
        at, count = self.root(slot), 0
        while at in self._next:
            at = self._next[at]
            count += 1
        return count


def describe_divergence(parent: State, made: State) -> str:
    """The first event that differed, and what differed in it."""
    where = f"{made.line[0]}:{made.line[1]}" if made.line else "?"
    others = [s for s in parent.next.values() if s is not made]
    if not others:
        return f"{where}: first recording"
    other = max(others, key=lambda state: state.top.touched)
    if made.kind == INPUT and other.kind == INPUT:
        new, old = made.metas[0], other.metas[0]
        for what in ("shape", "dtype", "device", "requires_grad", "strides"):
            a, b = getattr(old, what), getattr(new, what)
            if a != b:
                if what == "shape":
                    a, b = tuple(a), tuple(b)
                return f"{where}: input's {what} {a} became {b}"
        return f"{where}: input with another history"
    if made.call is not None and other.call is not None:
        if made.call.op is other.call.op and made.call.op is not None:
            if made.operands != other.operands:
                return f"{where}: {made.call.op.public} has other operands"
            return f"{where}: {other.call!r} became {made.call!r}"
        return f"{where}: {other.call!r} became {made.call!r}"
    return f"{where}: {other!r} became {made!r}"
