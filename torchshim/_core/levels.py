"""The levels of function transforms: `vmap`, `grad` and forward mode, nested.

Each level has a number that no other level has of which anything in the running
recording is alive, so that what was recorded within one is never mistaken for part of
another.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torchshim._core.call import AnyCall, Levels, intern_call
from torchshim._core.forward import DualStep
from torchshim._core.linearize import Outputs
from torchshim._core.meta import Meta, contiguous_strides
from torchshim._core.op import Op
from torchshim._core.state import CALL, IDENTITY, INPUT, Recording, State
from torchshim._core.storage import (
    Storage,
    TensorBase,
    dense,
    placement,
    repeats,
    tensor_class,
    version_of,
    writes_of,
)
from torchshim._core.write import WRITTEN_LEAF, WRITTEN_VIEW, Writing

VMAP, GRAD, JVP = "vmap", "grad", "jvp"
# `forward_ad.dual_level`: forward mode, but no transform of a function.
DUAL = "dual"
FORWARD = (JVP, DUAL)
CAPTURED = (
    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to "
    "call in-place operation (aten::{}) that would mutate a captured Tensor. This is "
    "not supported; please rewrite the function being transformed to explicitly accept "
    "the mutated Tensor(s) as inputs."
)
_ATTEMPTED = (
    "You are attempting to call Tensor.{0}() {1}inside of a function being transformed "
    "by a functorch transform. This is unsupported, please attempt to use the "
    "functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call {0}() "
    "outside of a function being transformed instead."
)
_PERHAPS = {
    "requires_grad_": "(or perhaps using torch.autograd.functional.* APIs) ",
    "retain_grad": "",
}
# What PyTorch calls writes that have other names here.
_WRITES = {
    "copy": "copy_",
    "put_piece": "copy_",
    "put_mask": "index_put_",
    "put_tensors": "index_put_",
    "scatter_value": "scatter_.value",
    "scatter_set": "scatter_.src",
    "div.mode": "div_.Tensor_mode",
    "atan2": "atan2_",
}
# Those that have a form for numbers and one for tensors.
_OF_BOTH = frozenset(
    "copysign eq fill fmod ge gt le lerp lt masked_fill ne pow remainder".split()
)
# Writes that PyTorch's kernels make, unseen by transforms.
_UNSEEN = frozenset({"update_mean_", "update_var_", "update_mean", "update_var"})
# Numbers of levels between those of one recording and of another.
_RANGE = 512
_new = object.__new__


@dataclass(slots=True)
class Level:
    """One transform in progress."""

    number: int
    kind: str
    # How many transforms it is nested in, itself included: what PyTorch prints.
    depth: int
    size: int = 0
    randomness: str = "error"
    # Grad mode, and which levels differentiated, around it.
    outer_grad: bool = True
    outer_tracking: int = 1
    # Levels of `vmap` around it.
    outside: Levels = ()
    # Where it began: the recording's number, and how many events that had.
    recording: int = 0
    events: int = 0
    # `vmap`: its arguments within it, what they are views of, the dimension mapped.
    given: list[tuple[TensorBase, TensorBase, int]] = field(default_factory=list)
    # `vmap`: id of an argument within it, and the dimension mapped -> what was given,
    # what it is within it, the version of that if it is a copy.
    arguments: dict[tuple[int, int], tuple[Any, Any, int | None]] = field(
        default_factory=dict
    )
    # `vmap`: what was given, whose shape changed within it, and how.
    reshaped: list[tuple[TensorBase, str, tuple[Any, ...]]] = field(
        default_factory=list
    )
    # Forward mode: what holds tangents of this level.
    cells: list[dict[int, Any]] = field(default_factory=list)
    # `grad`: arguments that the function is differentiated by, within it and as given.
    started: list[tuple[Any, Any]] = field(default_factory=list)
    # `grad` and forward mode: arguments that the function is not differentiated by.
    lent: list[TensorBase] = field(default_factory=list)
    # `vmap`: not one of `torch.func`'s, so that custom functions do not see it.
    plain: bool = False


class StartCall(AnyCall):
    """A value as the level `starts` differentiates it: the same, with a history."""

    __slots__ = ("starts",)

    op: Any = None
    write = False
    template: tuple[Any, ...] = ()
    n_arrays = 1
    grad_name = "AliasBackward0"

    def __init__(self, starts: int) -> None:
        self.starts = starts
        self._inferred = {}

    def __repr__(self) -> str:
        return f"start[{self.starts}]"

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        return tuple(arrays)

    def saved(self, wrt: Sequence[int]) -> tuple[str, ...]:
        return ()

    def needs(self, wrt: Sequence[int]) -> tuple[int, ...]:
        return ()

    def differentiable(self, i: int) -> bool:
        return True


def _name_of_write(op: Op, args: Sequence[Any]) -> str:
    """What PyTorch calls an operator in place, with its overload."""
    name = op.name.strip("_")
    if name in _WRITES:
        return _WRITES[name]
    form = "Tensor" if isinstance(args[-1], TensorBase) else "Scalar"
    overload = ""
    if name in _OF_BOTH:
        overload = f".{form}"
    elif name == "index_fill":
        overload = f".int_{form}"
    elif name == "clamp" and any(isinstance(a, TensorBase) for a in args[1:]):
        overload = ".Tensor"
    elif any(p.name == "other" for p in op.params) and "logical" not in name:
        overload = ".Tensor"
    return f"{name}_{overload}"


def _without(meta: Meta, number: int) -> Meta:
    """What is left of a value once a level that differentiates is over."""
    left = meta.levels & ~(1 << number)
    # Numbers of levels begin at 1: bit 0 alone is autograd itself.
    return meta.replace(
        requires_grad=bool(left), leaf=not left, levels=0 if left == 1 else left
    )


class Transforming(Writing):
    """Opens and closes levels, and knows which values belong to them."""

    grad: bool
    tracking: int
    # The levels in progress, the innermost last.
    levels: list[Level]
    # The number given last, and the one before the first of this recording; how many
    # graphs of levels that have ended may be used again.
    last_level: int
    level_base: int
    held_levels: int
    # A list of tensors that may be pending, and how many of them belong to no level.
    without_levels: tuple[list[weakref.ref[TensorBase]], int]
    # Whether what is written is `out=`, which transforms don't see in PyTorch either.
    into_out: bool
    # Recordings that were closed with levels in their graphs, and what these begin at.
    level_graphs: weakref.WeakKeyDictionary[Recording, int]
    # Tangents of base values that are in no recording.
    base_tangents: weakref.WeakKeyDictionary[Storage, dict[int, Any]]

    def open_level(self, kind: str, size: int = 0, randomness: str = "error") -> Level:
        """Begins a transform."""
        if not self.levels and self.last_level > self.level_base:
            self._reuse_numbers()
        self.last_level += 1
        level = Level(
            self.last_level,
            kind,
            sum(n.kind != DUAL for n in self.levels) + 1,
            size,
            randomness,
            self.grad,
            self.tracking,
            tuple(n.number for n in self.levels if n.kind == VMAP),
            self.recording.seq,
            self.state.depth,
        )
        if kind == GRAD:
            around = self.tracking if self.grad else 0
            self.tracking = around | 1 << level.number
            self.grad = True
        self.levels.append(level)
        self.set_mode()
        return level

    def _reuse_numbers(self) -> None:
        """Lets levels have the numbers of earlier ones, if nothing alive is of these.

        So transforms in a loop are the same events in each iteration, though nothing
        is read between them. What has a history may have one of the earlier levels.
        """
        recording = self.recording
        if self.held_levels or self.stale or recording.nodes or recording.duals:
            return
        live = self.live
        checked, count = self.without_levels
        for ref in live[count if checked is live else 0 :]:
            tensor = ref()
            if tensor is not None:
                meta = tensor._tmeta
                if meta.batch or (meta.requires_grad and not meta.leaf):
                    return
        self.without_levels = live, len(live)
        self.last_level = self.level_base

    def restart_levels(self, graph: Recording | None) -> None:
        """Lets the next recording use the level numbers of this one again.

        Not if a `graph` with levels outlives it, as a backward through that may be
        mapped itself: then the next recording gets numbers that no such graph has.
        """
        if graph is not None and self.last_level > self.level_base:
            self.level_graphs[graph] = self.level_base
            held = {n for kept, n in self.level_graphs.items() if not kept.freed}
            free = (n for n in itertools.count(0, _RANGE) if n not in held)
            self.level_base = next(free)
        self.last_level = self.level_base

    def lend(self, level: Level, tensors: Iterable[TensorBase]) -> None:
        """Lets the function that a level transforms write to these arguments."""
        for tensor in tensors:
            tensor._levels = (*tensor._levels, level)
            level.lent.append(tensor)

    def close_level(self, level: Level) -> None:
        """Ends a transform and those within it that were left open."""
        over: list[Level] = []
        while self.levels:
            ended = self.levels.pop()
            over.append(ended)
            for cell in ended.cells:
                cell.pop(ended.number, None)
            if ended.kind == GRAD:
                self.grad, self.tracking = ended.outer_grad, ended.outer_tracking
            if ended is level:
                break
        if not any(n.kind in FORWARD for n in self.levels):
            self.recording.duals.clear()
        self.set_mode()
        for ended in over:
            self._take_back(ended)

    def transforming(self) -> bool:
        """Whether a function is being transformed."""
        return any(level.kind != DUAL and not level.plain for level in self.levels)

    def refuse_in_transform(self, name: str) -> None:
        """Raises for a method that PyTorch forbids within a transform."""
        if self.levels and self.transforming():
            raise RuntimeError(_ATTEMPTED.format(name, _PERHAPS[name]))

    # -- captured tensors --------------------------------------------------------------

    def levels_around(self, event: State) -> tuple[Level, ...]:
        """The levels in progress that an event of this recording is part of."""
        seq = self.recording.seq
        return tuple(
            n for n in self.levels if n.recording != seq or n.events < event.depth
        )

    def made_in(self, tensor: TensorBase) -> tuple[Level, ...]:
        """The levels in progress within which a tensor's memory was made."""
        storage = tensor._storage
        slot = tensor._slot if storage is None else storage.slot
        if slot >= 0 and not self.owns(slot):
            return tuple(self.levels)  # made by another thread: not known
        known = [tensor, tensor._view_of]
        found: list[Level] = []
        while slot >= 0:
            event = self.state.maker(slot)
            if event is None or event.kind == INPUT:
                known.append(self.recording.entered.get(slot))
                break
            if event.kind != IDENTITY:
                found += self.levels_around(event)
                break
            slot = event.operands[0]
        for each in known:
            if each is not None:
                found += each._levels
        return tuple(found)

    def check_captured(
        self, tensor: TensorBase, op: Op | str, args: Sequence[Any] = ()
    ) -> None:
        """Raises for a write to a tensor from outside a function being differentiated.

        `op`: the operator that writes, or its name in PyTorch's error.
        """
        if self.into_out or (not isinstance(op, str) and op.name in _UNSEEN):
            return
        inside = {id(n) for n in self.made_in(tensor)}
        if any(n.kind in (GRAD, JVP) and id(n) not in inside for n in self.levels):
            name = op if isinstance(op, str) else _name_of_write(op, args)
            raise RuntimeError(CAPTURED.format(name))
        base = tensor if tensor._view_of is None else tensor._view_of
        if self.grad and any(n.kind == GRAD for n in self.levels):
            if self.starts_level(base):
                raise RuntimeError(WRITTEN_LEAF if base is tensor else WRITTEN_VIEW)

    def note_levels(self, placed: Iterable[tuple[TensorBase, int]]) -> None:
        """Notes within which levels the tensors were made that a flush hands out."""
        for tensor, slot in placed:
            self._note_levels((tensor,), slot)
        for storage in self.storages.values():
            self._note_levels(storage.tensors(), storage.slot)

    def _note_levels(self, tensors: Sequence[TensorBase], slot: int) -> None:
        event = self.state.maker(slot) if self.owns(slot) else None
        if event is not None and event.kind == CALL:
            found = self.levels_around(event)
            known = {id(n) for n in found}
            for tensor in tensors:
                more = [n for n in tensor._levels if id(n) not in known]
                tensor._levels = (*found, *more)

    # -- reverse mode ------------------------------------------------------------------

    def start(self, tensor: TensorBase, level: Level) -> TensorBase:
        """The tensor with a history that begins at `level`, which differentiates it."""
        number = level.number
        call = intern_call(("start", number), lambda: StartCall(number))
        return self.result(self.event(call, [tensor]))

    def starts_level(self, tensor: TensorBase) -> bool:
        """Whether the history of a tensor begins at a level in progress."""
        slot = self.slot_of(tensor)
        return bool(getattr(self.recording.events(self.state)[slot].call, "starts", 0))

    def without_level(self, tensor: TensorBase, number: int) -> TensorBase:
        """The tensor without the history that a level of `grad`, now over, gave it."""
        slot = self.slot_of(tensor)
        meta = tensor._tmeta
        if not meta.levels >> number & 1:
            return tensor
        changed = _without(meta, number)
        gaps = 0 not in meta.shape and not dense(placement(tensor))
        if gaps and tensor._view_of is None:
            # The argument itself, which was a view: the copy has no gaps.
            strides = contiguous_strides(meta.shape)
            changed = changed.replace(strides=strides, offset=0)
        found = self.tensor_on(self.identity(slot, changed), changed)
        if gaps and tensor._view_of is not None:
            # It is part of what its base becomes: memory of its own has no gaps.
            whole = self.without_level(tensor._view_of, number)
            self.join(found, whole)
            found._view_of, found._path = whole, tensor._path
            found._versions = version_of(found)
        if slot in self.recording.duals:
            tangents = self.recording.duals[slot].items()
            left = {n: self.without_level(t, number) for n, t in tangents}
            self.set_tangents(found._slot, left)
        return found

    def detach_in_forward(self, tensor: TensorBase) -> bool:
        """Detaches in place if the innermost transform is one of forward mode.

        As in PyTorch, the tensor loses the tangent of that level, and nothing else.
        """
        level = self.levels[-1]
        if level.kind != JVP:
            return False
        slot = self.slot_of(tensor)
        before = self.recording.duals.get(slot, {})
        kept = {n: t for n, t in before.items() if n != level.number}
        self.set_tangents(slot, kept)
        tensor._tangents = kept
        return True

    def _take_back(self, level: Level) -> None:
        """Has the tensors that were lent to a level leave it."""
        for tensor in level.lent:
            tensor._levels = tuple(n for n in tensor._levels if n is not level)
            base = tensor if tensor._view_of is None else tensor._view_of
            # (What was lost by an error within the level has left it already.)
            if base._lost is None and base._tmeta.levels >> level.number & 1:
                self._leave_level(base, level.number)

    def _leave_level(self, base: TensorBase, number: int) -> None:
        """Has a tensor that was written to within a level, and its views, leave it.

        Their history of other levels, or of autograd itself, goes on.
        """
        changed = _without(base._tmeta, number)
        slot = self.identity(self.slot_of(base), changed)
        base._slot, base._tmeta = slot, changed
        base._hist = base._node = None
        self.live.append(weakref.ref(base))
        for view in () if base._storage is None else base._storage.tensors():
            if view._view_of is base and view._tmeta.levels >> number & 1:
                view._slot = -1
                view._tmeta = _without(view._tmeta, number)
                view._hist = view._node = None

    # -- forward mode ------------------------------------------------------------------

    def set_tangents(self, slot: int, tangents: dict[int, TensorBase]) -> None:
        """Gives a value tangents, for as long as their levels go on."""
        self.recording.duals[slot] = tangents
        self._end_with_levels(tangents)

    def bring_tangents(self, tensor: TensorBase, tangents: dict[int, Any]) -> None:
        """Gives tangents to a tensor that is in no recording."""
        tensor._tangents, tensor._tangent_version = tangents, writes_of(tensor)
        self._end_with_levels(tangents)

    def _end_with_levels(self, tangents: dict[int, Any]) -> None:
        for each in self.levels:
            if each.number in tangents:
                each.cells.append(tangents)

    def set_tangent(self, slot: int, level: int, tangent: TensorBase) -> None:
        """Gives a value a tangent of a level."""
        known = self.recording.duals.get(slot, {})
        self.set_tangents(slot, {**known, level: tangent})

    def give_tangent(self, tensor: TensorBase, level: int, tangent: Any) -> None:
        """Gives the value of a tensor another tangent of a level."""
        self.set_tangent(self.slot_of(tensor), level, tangent)
        step = tensor._path[-1] if tensor._path else None
        if isinstance(step, DualStep) and step.begins(level):
            self._begin(step, level, tangent)

    def begin_tangents(self, view: TensorBase, level: Level, tangent: Any) -> None:
        """Has a new view of a whole tensor begin with a tangent of its own, or none.

        Writes through the view change that tangent, in place if possible.
        """
        *before, last = view._path
        step = DualStep.of(last, level.number, {})
        view._path = (*before, step)
        if tangent is not None:
            self._begin(step, level.number, tangent)
        self._step_behind(step, view)

    def _begin(self, step: DualStep, number: int, tangent: Any) -> None:
        for each in self.levels:
            if each.number == number:
                step.tangents[number] = tangent
                each.cells.append(step.tangents)

    def write_tangents(self) -> None:
        """Changes the tangents behind the steps that something was written through."""
        crossed, self.crossed = self.crossed, []
        for step, written in crossed:
            for number in {*step.tangents, *filter(step.begins, written)}:
                tangent, held = written.get(number), step.tangents.get(number)
                if held is None or not self._write_tangent(held, tangent):
                    self._begin(step, number, tangent)

    def _write_tangent(self, held: TensorBase, tangent: TensorBase | None) -> bool:
        """Writes to a tangent in place, as PyTorch does; False if that cannot be."""
        meta = held._tmeta
        if tangent is None:
            tangent = _new(tensor_class[0])
            tangent._tmeta, tangent._slot = meta.plain, -1
            tangent._array = np.zeros(meta.array_shape, meta.dtype.np)
        elif tangent._slot >= 0 and tangent._slot == self.slot_of(held):
            return True  # what was written is behind another such step
        got, storage = tangent._tmeta, held._storage
        if (
            (got.batch, got.dtype) != (meta.batch, meta.dtype)
            or repeats(meta.shape, meta.strides)
            or (storage is not None and storage.shared is not None)
        ):
            return False
        self.check_history(held, (tangent,))
        self.write(held, tangent)
        return True

    def tangent_of(self, tensor: TensorBase, level: int) -> Any:
        """The tangent of a tensor at a level, if it has one."""
        slot = self.slot_of(tensor)
        return self.recording.duals.get(slot, {}).get(level)

    def keep_tangents(self, placed: Sequence[tuple[TensorBase, int]]) -> None:
        """Keeps the tangents of what outlives the running recording."""
        duals = self.recording.duals
        for tensor, slot in placed:
            if slot in duals or tensor._tangents:
                tensor._tangents = duals.get(slot)
                tensor._tangent_version = writes_of(tensor)
        for storage in self.storages.values():
            if storage.slot in duals:
                tangents = self.base_tangents[storage] = duals[storage.slot]
                for tensor in storage.tensors():
                    # One that shows all of the memory may take the value back.
                    if not tensor._path and tensor._view_of is None:
                        tensor._tangents = tangents
                        tensor._tangent_version = writes_of(tensor)
