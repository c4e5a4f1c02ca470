"""What a node keeps for its backward: `_saved_*` and `_raw_saved_*`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from torchshim._core.call import Call
from torchshim._core.declared import DERIVED, UNNAMED
from torchshim._core.gradients import plan_of
from torchshim._core.meta import Meta
from torchshim._core.naming import (
    WRAPPED,
    keeps_transpose,
    name_in_node,
)
from torchshim._core.node import AccumulateGrad, Node
from torchshim._core.op import (
    ARRAYS,
    OPT_ARRAYS,
    STATIC,
)
from torchshim._core.record import local
from torchshim._core.saved import SECOND_BACKWARD, was_detached
from torchshim._core.template import HOLE, Number, ScalarHole
from torchshim._core.walk import Walk
from torchshim._derived import fns
from torchshim._functions._node_arguments import as_kept, kept_arguments
from torchshim._functions._node_rules import MISSING, Given, ends_others, value_of
from torchshim._tensor import Tensor, on_cpu


class _Kept:
    """Where the node of an operator keeps a value."""

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        self._name = name

    @property
    def freed(self) -> bool:
        return self._node._event.depth in self._node._recording.freed

    @property
    def transposed(self) -> bool:
        return keeps_transpose(self._node._event.call, self._name)

    def _key(self) -> Any:
        """What the value is known by among those that hooks keep of the node's."""
        if self._name in DERIVED:
            return "result", result_number(self._name)
        return self._node._event.call.owners.index(self._name)

    @property
    def packed(self) -> Any:
        event = self._node._event
        return self._node._recording.packed.get(event.depth, {}).get(self._key())

    @packed.setter
    def packed(self, packed: Any) -> None:
        event = self._node._event
        table = self._node._recording.packed.setdefault(event.depth, {})
        table[self._key()] = packed
        local.rec.mark("packed", event.slot)

    def unpack(self) -> Any:
        return saved_value(self._node, self._name)


class _KeptPiece(_Kept):
    """Where it keeps one of a sequence of values."""

    def __init__(self, node: Node, name: str, number: int) -> None:
        super().__init__(node, name)
        self._number = number

    def _key(self) -> Any:
        entry, number = _entry_of(self._node, self._name), self._number
        if entry[number] is not HOLE:
            return None  # no tensor was given there
        return super()._key() + sum(each is HOLE for each in entry[:number])

    def unpack(self) -> Any:
        return saved_value(self._node, self._name)[self._number]


class SavedTensor:
    """A value that a node keeps for its backward, as `_raw_saved_*` shows it."""

    __module__ = "torch._C._autograd"

    # Makes what a pair of hooks keeps of a tensor; `autograd.saving` puts it here.
    packed: Any = None
    # `freed`, `packed` (by a pair of hooks) and `unpack()`, which gives the value.
    _place: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "Trying to create a SavedTensor object from Python is forbidden."
        )

    @classmethod
    def of(cls, place: Any) -> SavedTensor:
        """What is kept at a place."""
        self = cls.__new__(cls)
        self._place = place
        return self

    def register_hooks(self, *hooks: Any, **named: Any) -> None:
        """Keeps what the first hook makes of the value; the second undoes it.

        Raises RuntimeError if there are hooks already, and after the value was freed.
        """
        if named or len(hooks) != 2 or not all(callable(hook) for hook in hooks):
            given = ", ".join(repr(each) for each in (self, *hooks))
            if named:
                pairs = ", ".join(f"{name}={value!r}" for name, value in named.items())
                given += f"; kwargs: {pairs}"
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following "
                "argument types are supported:\n    1. (self: "
                "torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: "
                f"collections.abc.Callable) -> None\n\nInvoked with: {given}"
            )
        pack_hook, unpack_hook = hooks
        if self._place.freed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. "
                "Saved intermediate values of the graph are freed when you call "
                ".backward() or autograd.grad(). Specify retain_graph=True if you need "
                "to backward through the graph a second time or if you need to access "
                "saved variables after calling backward."
            )
        if self._place.packed is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already "
                "been set. Hint: only one pair of hooks is allowed at a time."
            )
        value = self._place.unpack()
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        pair, turned = (pack_hook, unpack_hook), self._place.transposed
        self._place.packed = SavedTensor.packed(*pair, value.detach(), turned)

    def unpack(self) -> Any:
        """The value, as the node's backward gets it."""
        return self._place.unpack()

    @property
    def data(self) -> Any:
        """What is kept: the value, or what a hook made of it; None once it is freed."""
        if self._place.freed:
            return None
        packed = self._place.packed
        return self._place.unpack() if packed is None else packed.value

    @property
    def unpack_hook(self) -> Any:
        """The hook that gives the value back, if any."""
        packed = self._place.packed
        return None if packed is None else packed.unpacker

    def __repr__(self) -> str:
        return f"<torch._C._autograd.SavedTensor object at {hex(id(self))}>"


def saved_names(node: Node) -> dict[str, str]:
    """PyTorch's name of each saved value -> the operator's own name for it."""
    # The node of a leaf stands for no event.
    call = None if isinstance(node, AccumulateGrad) else node._event.call
    if not isinstance(call, Call) or ends_others(type(node).__name__, call.op):
        return {}
    names: dict[str, str] = {}
    every = call.op.saves
    flat = (
        [n for group in every.values() for n in group]
        if isinstance(every, dict)
        else list(every)
    )
    kind = type(node).__name__
    for name in flat:
        if name not in UNNAMED and name not in _ABSENT.get(kind, ()):
            names.setdefault(name_in_node(kind, name), name)
    return names


# What the nodes of an operator's forms for numbers do not have: what others save.
_ABSENT = {
    "FmodBackward0": ("input", "other"),
    "LerpBackward0": ("input", "end"),
    "PowBackward0": ("result",),
}


def _is_number(node: Node, name: str) -> bool:
    """Whether what an operator saves by a name is a number here, and no tensor."""
    call = node._event.call
    if call.op.name.rstrip("_") in WRAPPED:  # PyTorch's node keeps a tensor of it
        return False
    entries = zip(call.op.params, call.template, strict=True)
    return any(
        param.name == name and isinstance(entry, (Number, ScalarHole))
        for param, entry in entries
    )


def result_number(name: str) -> int:
    """Which of an operator's results is meant by a name among what it saves."""
    return 0 if name == "result" else int(name[-1])


def saved_value(node: Node, name: str) -> Any:
    """A value that PyTorch keeps for a node's backward; None if it was not needed."""
    event, call = node._event, node._event.call
    needed = name in call.saved(event.wrt)
    if name in DERIVED:
        return _saved_result(node, result_number(name)) if needed else None
    at = 0
    for param, entry in zip(call.op.params, call.template, strict=True):
        several = param.role in (ARRAYS, OPT_ARRAYS)
        if param.name == name:
            if entry is HOLE:
                if not needed:
                    return None
                value = _saved_operand(node, at)
                return value.t() if keeps_transpose(call, name) else value
            if not needed and param.role != STATIC:
                return None
            if several:
                return _saved_operands(node, at, entry)
            return _saved_argument(node, param.name, entry)
        if entry is HOLE:
            at += 1
        elif several:
            at += sum(e is HOLE for e in entry)
    return None


def _check_kept(node: Node) -> None:
    """Raises where a backward has used up what a node saved."""
    event = node._event
    if event.depth in node._recording.freed and event.call.saved(event.wrt):
        raise RuntimeError(SECOND_BACKWARD)


def _saved_result(node: Node, k: int) -> Any:
    """The k-th result of the operator, which PyTorch keeps."""
    _check_kept(node)
    recording, event = node._recording, node._event
    packed = recording.packed.get(event.depth, {})
    # Not the tensor itself: PyTorch's node would keep the one that keeps it.
    own = value_at(recording, event, event.slot + k)
    kept = ("result", k) in packed
    value = packed["result", k].unpack() if kept else own.detach()
    return as_saved(value, own) if own.requires_grad else value


def _saved_operand(node: Node, at: int) -> Any:
    """The tensor at a place among the operands, as saved-tensor hooks give it back."""
    _check_kept(node)
    recording, event = node._recording, node._event
    packed = recording.packed.get(event.depth, {})
    slot = event.operands[at]
    if was_detached(recording, slot):
        return value_at(recording, event, slot).detach()
    if at not in packed:
        walk = Walk(local.rec, True, False, False)
        walk.check_versions(recording, plan_of(event, event.call, event.wrt))
        return value_at(recording, event, slot)
    if slot not in recording.entered or slot in recording.hists:
        return packed[at].for_backward(recording, event, at, True)
    value = packed[at].unpack_value()
    wanted = recording.entered[slot].requires_grad
    if value.requires_grad is not wanted:
        value = value.detach().requires_grad_(wanted)
    return value


def _saved_operands(node: Node, at: int, entry: Any) -> tuple[Any, ...]:
    """A sequence of tensors, the first of which is at a place among the operands."""
    places = itertools.count(at)
    return tuple(
        _saved_operand(node, next(places)) if each is HOLE else None for each in entry
    )


def _entry_of(node: Node, name: str) -> Any:
    """The entry of a parameter in the template of a node's call."""
    call = node._event.call
    for param, entry in zip(call.op.params, call.template, strict=True):
        if param.name == name:
            return entry
    return None


def _raw(node: Node, name: str) -> Any:
    """What `_raw_saved_*` gives: where a value is kept, or each of a sequence."""
    entry = None if name in DERIVED else _entry_of(node, name)
    if not isinstance(entry, tuple):
        return SavedTensor.of(_Kept(node, name))
    pieces = [_KeptPiece(node, name, k) for k in range(len(entry))]
    return tuple([SavedTensor.of(piece) for piece in pieces])


def _saved_argument(node: Node, name: str, entry: Any) -> Any:
    """An argument that is no tensor; PyTorch keeps some numbers as tensors."""
    if isinstance(entry, ScalarHole):
        value = _number(node, name)
    else:
        value = entry.value if isinstance(entry, Number) else entry
    is_number = isinstance(value, (bool, int, float, complex))
    if is_number and node._event.call.op.name.rstrip("_") in WRAPPED:
        _check_kept(node)
        return on_cpu(np.array(value))
    return value


def with_history(recording: Any, slot: int, meta: Any) -> Any:
    """A tensor with the history of a value, whatever became of the value itself."""
    rec = local.rec
    if recording is rec.recording:
        return rec.tensor_on(slot, meta)
    leaf = recording.entered.get(slot)
    if leaf is not None and slot not in recording.hists:
        return leaf
    piece = object.__new__(Tensor)
    piece._slot = -1
    piece._tmeta = meta.replace(leaf=False)
    piece._array = np.zeros(meta.array_shape, meta.dtype.np)
    piece._hist = recording, slot
    return piece


def as_saved(value: Any, source: Any) -> Any:
    """A value with the history of another, in any grad mode."""
    rec = local.rec
    grad = rec.grad
    rec.set_grad(True)
    try:
        return fns._with_history_of(value, source)
    finally:
        rec.set_grad(grad)


def value_at(recording: Any, event: Any, slot: int) -> Any:
    """A value of the graph as a tensor with its history."""
    rec = local.rec
    leaf = recording.entered.get(slot)
    if leaf is not None and slot not in recording.hists:
        return leaf
    source = recording.event(slot, rec.state)
    meta = source.metas[slot - source.slot]
    if recording.state is None:
        living = _living(slot)
        return rec.tensor_on(slot, meta) if living is None else living
    array = recording.saved.get(slot)
    if array is None:
        walk = Walk(rec, True, False, False)
        operands = [walk.operand(recording, s) for s in event.operands]
        with rec.lock:
            grad = rec.grad
            rec.set_grad(False)
            try:
                state = rec.event(
                    event.call, operands, walk.scalars_of(recording, event)
                )
            finally:
                rec.set_grad(grad)
        found = rec.result(state, slot - event.slot)
        if meta.requires_grad:
            found = as_saved(found, with_history(recording, slot, meta))
        return found
    tensor = object.__new__(Tensor)
    tensor._slot = -1
    tensor._tmeta = meta
    tensor._array = array
    if meta.requires_grad:
        tensor._hist = recording, slot
    return tensor


def _living(slot: int) -> Any:
    """The tensor that shows a slot of the running recording, if it is alive."""
    rec = local.rec
    entered = rec.recording.entered.get(slot)
    for tensor in (entered, *(ref() for ref in rec.live)):
        if isinstance(tensor, Tensor) and tensor._slot == slot:
            return tensor
    return None


def _number(node: Node, name: str) -> Any:
    """The runtime scalar that was given for a parameter."""
    event, call = node._event, node._event.call
    table = node._recording.scalars if node._recording.state else local.rec.scalars
    holes = [
        param.name
        for param, entry in zip(call.op.params, call.template, strict=True)
        if isinstance(entry, ScalarHole)
    ]
    return table[event.scalar + holes.index(name)]


def _argument(node: Node, name: str) -> Any:
    """What PyTorch's node keeps by a name that is no tensor; `MISSING`: nothing."""
    event, call, kind = node._event, node._event.call, type(node).__name__
    form = kept_arguments(kind).get(name)
    if form is None or not isinstance(call, Call):
        return MISSING
    params = call.op.params
    scalars = Walk(local.rec, True, False, False).scalars_of(node._recording, event)
    values = call.arguments(event.given, scalars)
    given = {param.name: value for param, value in zip(params, values, strict=True)}
    for param, entry in zip(params, call.template, strict=True):
        if isinstance(entry, ScalarHole):  # as it was given, 2 and not 2.0
            given[param.name] = _number(node, param.name)
    named = {name_in_node(kind, each): value for each, value in given.items()}
    found = value_of(Given(kind, call.op, given, named, event.metas), name)
    if found is MISSING or isinstance(found, Meta):
        return MISSING
    return as_kept(kind, form, found)


def _getattr(self: Node, name: str) -> Any:
    raw = name.startswith("_raw_saved_")
    if raw or name.startswith("_saved_"):
        own = saved_names(self).get(name.removeprefix("_raw").removeprefix("_saved_"))
        if own is not None:
            return _raw(self, own) if raw else saved_value(self, own)
        found = _argument(self, name.removeprefix("_saved_"))
        if found is not MISSING:
            return found
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _dir(self: Node) -> list[str]:
    names = saved_names(self)
    tensors = [n for n, own in names.items() if not _is_number(self, own)]
    saved = [f"_raw_saved_{name}" for name in tensors]
    kept = [n for n in kept_arguments(type(self).__name__) if n not in names]
    found = [n for n in kept if _argument(self, n) is not MISSING]
    saved += [f"_saved_{name}" for name in (*names, *found)]
    return sorted([*object.__dir__(self), *saved])


Node.__getattr__ = _getattr  # type: ignore[attr-defined]
Node.__dir__ = _dir
