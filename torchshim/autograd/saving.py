"""Hooks on what is kept for backward: the pair in force in each thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from torchshim._core.call import VjpCall
from torchshim._core.callers import caller
from torchshim._core.declared import DERIVED
from torchshim._core.naming import in_order, keeps_transpose
from torchshim._core.record import Recorder, local
from torchshim._core.storage import TensorBase
from torchshim._core.threads import by_node, keep
from torchshim._derived import fns
from torchshim._functions._arguments import check_gradient
from torchshim._functions.func_reverse import without_saved_hooks
from torchshim._functions.query import of_all_examples
from torchshim._functions.saved_values import SavedTensor, as_saved, with_history
from torchshim._tensor import Tensor


class Pair(NamedTuple):
    """A pair of hooks in force."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]
    # Packs the operands of what PyTorch differentiates by its result: gradients here
    # are functions of the operands. Without it they are kept as they are.
    pack_operand: Callable[[Any], Any] | None = None


# Gets an operator's state and arguments with its results; may give other results.
Observer = Callable[[Any, Sequence[Any], list[Any]], "list[Any] | None"]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        # The message that `disable_saved_tensors_hooks` was given.
        self.disabled: str | None = None
        # What looks at every operator, the innermost last.
        self.observers: list[Observer] = []


_stack = keep(_Stack())


def current() -> Pair | None:
    """The innermost pair of hooks."""
    return _stack.pairs[-1] if _stack.pairs else None


def push(
    pack: Callable[[Any], Any],
    unpack: Callable[[Any], Any],
    pack_operand: Callable[[Any], Any] | None = None,
) -> None:
    """Puts a pair in force: from now on every operator takes the slow path."""
    if _stack.disabled is not None:
        raise RuntimeError(_stack.disabled)
    local.rec.about_to_change()
    _stack.pairs.append(Pair(pack, unpack, pack_operand))
    _follow()


def push_checked(pack: Any, unpack: Any) -> None:
    """As `push`; TypeError for what cannot be called."""
    if not (callable(pack) and callable(unpack)):
        raise TypeError(
            "_push_saved_tensors_default_hooks(): incompatible function arguments. "
            "The following argument types are supported:\n    1. (arg0: "
            "collections.abc.Callable, arg1: collections.abc.Callable) -> "
            f"None\n\nInvoked with: {pack!r}, {unpack!r}"
        )
    push(pack, unpack)


def pop() -> None:
    """Takes the innermost pair away; RuntimeError if there is none."""
    if not _stack.pairs:
        raise RuntimeError(
            "is_initialized && !tls.stack.empty() INTERNAL ASSERT FAILED at "
            '"/__w/pytorch/pytorch/aten/src/ATen/SavedTensorHooks.cpp":69, please '
            "report a bug to PyTorch. "
        )
    local.rec.about_to_change()
    _stack.pairs.pop()
    _follow()


def _pairs() -> list[Pair]:
    return list(_stack.pairs)


def _set_pairs(pairs: list[Pair]) -> None:
    _stack.pairs = list(pairs)
    _follow()


by_node.append((_pairs, _set_pairs))


def _follow() -> None:
    """Sends operators past the hot path while hooks or observers are in force."""
    rec = local.rec
    if _stack.pairs or _stack.observers:
        rec.__class__ = SavingRecorder
    else:
        rec.__class__ = Recorder
        rec.made = None
        rec.set_mode()


def disable(message: str | None) -> None:
    """Forbids hooks, with this message; None allows them again."""
    if message is not None and _stack.pairs:
        raise RuntimeError(message)
    _stack.disabled = message


def disabled() -> str | None:
    """The message of the error that hooks meet now."""
    return _stack.disabled


@contextlib.contextmanager
def forbidden(message: str) -> Iterator[None]:
    """Forbids hooks within the block, with this message."""
    before = _stack.disabled
    disable(message)
    try:
        yield
    finally:
        disable(before)


without_saved_hooks.append(forbidden)


class Packed:
    """What a pack hook made of one value, and the hook that undoes it."""

    __slots__ = ("transposed", "unpacker", "value")

    def __init__(
        self, pair: Pair, tensor: Any, hidden: bool = False, transposed: bool = False
    ) -> None:
        """`transposed`: the tensor is the value's transpose (`keeps_transpose`)."""
        self.unpacker, self.transposed = pair.unpack, transposed
        pack = pair.pack_operand if hidden and pair.pack_operand else pair.pack
        rec = local.rec
        version = tensor._version
        grad = rec.grad
        rec.set_grad(False)
        try:
            self.value = pack(tensor)
        finally:
            rec.set_grad(grad)
        if tensor._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors "
                "provided as input to pack hook cannot be modified by in-place "
                "operations as this can lead to unexpected side-effects. Please open "
                "an issue if you need to perform in-place operations on the input to a "
                "pack hook."
            )

    def unpack(self) -> Any:
        """The tensor that was packed."""
        tensor = self.unpacker(self.value)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got "
                f"result of type {type(tensor).__name__}"
            )
        return tensor

    def unpack_value(self) -> Any:
        """The value of which the tensor was packed."""
        tensor = self.unpack()
        return tensor.t() if self.transposed else tensor

    def for_backward(self, recording: Any, event: Any, i: Any, create: bool) -> Any:
        """The tensor for the gradient of an event, of which it is operand `i`.

        Or a result; None if it is that very one. Under `create_graph` it has the
        history of the value that was packed.
        """
        tensor = self.unpack_value()
        if isinstance(i, int):
            slot = event.operands[i]
            source = recording.events(recording.state or local.rec.state)[slot]
            wanted = source.metas[slot - source.slot].requires_grad
            check_gradient(tensor._tmeta.dtype, wanted)
        else:
            slot, source = event.slot + i[1], event
            if recording is local.rec.recording and tensor._slot == slot:
                return None
        meta = source.metas[slot - source.slot]
        if tensor._tmeta.shape != meta.shape:
            raise RuntimeError(
                f"the unpack hook gave a tensor of shape {list(tensor._tmeta.shape)} "
                f"in the place of one of shape {list(meta.shape)}"
            )
        if tensor._tmeta.batch != meta.batch:
            tensor = _at_levels(tensor, meta.batch)
        if not create:
            return tensor
        if not meta.requires_grad:
            return tensor.detach() if tensor.requires_grad else tensor
        return as_saved(tensor, with_history(recording, slot, meta))


def _at_levels(tensor: Tensor, batch: Any) -> Tensor:
    """A value computed anew within a `vmap`, as of the level that it was first in."""
    if [size for _, size in tensor._tmeta.batch] != [size for _, size in batch]:
        return tensor
    tensor = of_all_examples(tensor)
    for number, _ in batch:
        tensor = fns._vmap_enter(tensor, 0, number)
    return tensor


SavedTensor.packed = lambda pack, unpack, tensor, transposed: Packed(
    Pair(pack, unpack), tensor, transposed=transposed
)


class SavingRecorder(Recorder):
    """A recorder while saved-tensor hooks are in force."""

    # (state, results) of the event that was just recorded, until they are handed out.
    made: tuple[Any, list[Any]] | None = None

    @property
    def mode(self) -> Any:
        # A key part that no key has: hot paths miss.
        seen = self.grad and not self.inference
        return object() if seen or _stack.observers else self.bits

    @mode.setter
    def mode(self, value: Any) -> None:
        pass

    def call_entering(self, op: Any, args: Sequence[Any]) -> Any:
        return self.call(op, args)

    def call(self, op: Any, args: Sequence[Any]) -> Any:
        self.made = None  # left by an event that raised
        state = super().call(op, args)
        if _stack.observers:
            self._observe(state, args)
        if state.wrt and self.grad and current() is not None:
            names = in_order(state, state.call.saved(state.wrt))
            if names:
                self._pack(state, names, list(_operands(args)))
        return state

    def event(
        self,
        call: Any,
        tensors: Sequence[TensorBase],
        values: Sequence[float] = (),
        gradient_of: int | None = None,
        within: int = 0,
    ) -> Any:
        self.made = None
        state = super().event(call, tensors, values, gradient_of, within)
        if isinstance(call, VjpCall) and state.wrt and self.grad:
            if current() is not None and call.needs(state.wrt):
                self._pack(state, (), [self._shown(t) for t in tensors])
        return state

    def _shown(self, value: TensorBase) -> Tensor:
        """A value that a backward walk took from the graph as users know it."""
        if isinstance(value, Tensor):
            return value
        known = self.recording.entered.get(value._slot)
        shown: Any = self.tensor_on(value._slot, value._tmeta)
        return known if isinstance(known, Tensor) else shown

    def _pack(self, state: Any, names: Sequence[str], tensors: Sequence[Any]) -> None:
        """Shows the hooks what an event's gradient needs.

        What it saves by these names; all that it is computed from, if it is one itself.
        """
        pair, call = current(), state.call
        assert pair is not None
        if state.write in state.operands:
            # What is about to be overwritten.
            at = state.operands.index(state.write)
            tensors = [*tensors[:at], fns.clone(tensors[at]), *tensors[at + 1 :]]
        # The hooks may read values, which ends the recording: make the results first.
        recording = self.recording
        self.mark("packed", state.slot)
        outs = [self.result(state, k) for k in range(len(state.metas))]
        packed: dict[Any, Packed] = {}
        if not names:
            for i in call.needs(state.wrt):
                packed[i] = Packed(pair, tensors[i])
        elif pair.pack_operand is not None and not DERIVED.isdisjoint(names):
            for i in call.needs(state.wrt):
                if call.owners[i] not in names:
                    packed[i] = Packed(pair, tensors[i], hidden=True)
        for name in names:
            if name == "result":
                for k, out in enumerate(outs):
                    packed["result", k] = Packed(pair, out)
                continue
            if name in ("result0", "result1"):
                k = int(name[-1])
                packed["result", k] = Packed(pair, outs[k])
                continue
            for i, owner in enumerate(call.owners):
                if owner == name:
                    turned = keeps_transpose(call, name)
                    kept = tensors[i].t() if turned else tensors[i]
                    packed[i] = Packed(pair, kept, transposed=turned)
        recording.packed[state.depth] = packed
        self.made = state, outs

    def _observe(self, state: Any, args: Sequence[Any]) -> None:
        outs = [self.result(state, k) for k in range(len(state.metas))]
        self.made = state, outs
        for observer in _stack.observers[::-1]:
            given = observer(state, args, outs)
            if given is not None:
                self.made = state, list(given)
                break

    def result(self, state: Any, k: int = 0) -> Any:
        if self.made is not None and self.made[0] is state:
            outs = self.made[1]
            found, outs[k] = outs[k], None
            if not any(out is not None for out in outs):
                self.made = None  # the same event may come next
            if found is not None:
                return found
        return super().result(state, k)


def _operands(args: Sequence[Any]) -> Iterator[Any]:
    for arg in args:
        if isinstance(arg, TensorBase):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from (a for a in arg if isinstance(a, TensorBase))


class Ran(NamedTuple):
    """An operator that ran, and the line of the program that called it."""

    text: str
    line: tuple[str, int] | None


@contextlib.contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Within it `observer` sees every operator."""
    _stack.observers.append(observer)
    _follow()
    try:
        yield
    finally:
        _stack.observers.remove(observer)
        _follow()


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Within it no observer sees operators, and nothing is packed."""
    observers, pairs = _stack.observers, _stack.pairs
    _stack.observers, _stack.pairs = [], []
    made = local.rec.made
    try:
        yield
    finally:
        _stack.observers, _stack.pairs = observers, pairs
        local.rec.made = made


def logging(log: list[Ran]) -> contextlib.AbstractContextManager[None]:
    """Within it `log` holds the operators that ran."""
    log.clear()

    def note(state: Any, args: Sequence[Any], outs: list[Any]) -> None:
        name = state.call.op.public
        given = ", ".join(_shown(a) for a in args)
        made = ", ".join(_shown(o) for o in outs)
        log.append(Ran(f"{made} = {name}({given})", caller()))

    return observing(note)


def _shown(value: Any) -> str:
    if isinstance(value, TensorBase):
        meta = value._tmeta
        return f"{meta.dtype.name}{list(meta.shape)}"
    return repr(value)
