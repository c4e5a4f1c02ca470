"""Hooks on what is kept for backward: the pair in force in each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchshim._core.record import Recorder, local
from torchshim._core.storage import TensorBase
from torchshim._tensor import Tensor

Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        # The message that `disable_saved_tensors_hooks` was given.
        self.disabled: str | None = None


_stack = _Stack()


def current() -> Pair | None:
    """The innermost pair of hooks."""
    return _stack.pairs[-1] if _stack.pairs else None


def push(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
    """Puts a pair in force: from now on every operator takes the slow path."""
    if _stack.disabled is not None:
        raise RuntimeError(_stack.disabled)
    _stack.pairs.append((pack, unpack))
    local.rec.__class__ = SavingRecorder


def pop() -> None:
    """Takes the innermost pair away."""
    _stack.pairs.pop()
    if not _stack.pairs:
        rec = local.rec
        rec.__class__ = Recorder
        rec.made = None  # type: ignore[attr-defined]
        rec.set_mode()


def disable(message: str | None) -> None:
    """Forbids hooks, with this message; None allows them again."""
    if message is not None and _stack.pairs:
        raise RuntimeError(message)
    _stack.disabled = message


def disabled() -> str | None:
    """The message of the error that hooks meet now."""
    return _stack.disabled


class Packed:
    """What a pack hook made of one value, and the hook that undoes it."""

    __slots__ = ("unpacker", "value")

    def __init__(self, pair: Pair, tensor: Any) -> None:
        self.unpacker = pair[1]
        rec = local.rec
        version = tensor._version
        grad, rec.grad = rec.grad, False
        rec.set_mode()
        try:
            self.value = pair[0](tensor)
        finally:
            rec.grad = grad
            rec.set_mode()
        if tensor._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors "
                "provided as input to pack hook cannot be modified by in-place "
                "operations as this can lead to unexpected side-effects. Please open "
                "an issue if you need to perform in-place operations on the input to a "
                "pack hook."
            )

    def unpack(self) -> Any:
        tensor = self.unpacker(self.value)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got "
                f"result of type {type(tensor).__name__}"
            )
        return tensor


class SavingRecorder(Recorder):
    """A recorder while saved-tensor hooks are in force."""

    made: Any = None

    @property
    def mode(self) -> Any:  # type: ignore[override]
        # A key part that no key has: hot paths miss.
        return object() if self.grad and not self.inference else self.bits

    @mode.setter
    def mode(self, value: Any) -> None:
        pass

    def call(self, op: Any, args: Sequence[Any]) -> Any:
        state = super().call(op, args)
        pair = current()
        if pair is None or not state.wrt or not self.grad:
            return state
        names = state.call.saved(state.wrt)
        if not names:
            return state
        # The hooks may read values, which ends the recording: make the results first.
        recording = self.recording
        self.mark("packed", state.slot)
        outs = [
            super(SavingRecorder, self).result(state, k)
            for k in range(len(state.metas))
        ]
        tensors = list(_operands(args))
        packed: dict[Any, Packed] = {}
        for name in names:
            if name == "result":
                for k, out in enumerate(outs):
                    packed["result", k] = Packed(pair, out)
                continue
            for i, owner in enumerate(state.call.owners):
                if owner == name:
                    packed[i] = Packed(pair, tensors[i])
        recording.packed[state.depth] = packed
        self.made = state, outs
        return state

    def result(self, state: Any, k: int = 0) -> Any:
        if self.made is not None and self.made[0] is state:
            return self.made[1][k]
        return super().result(state, k)


def _operands(args: Sequence[Any]) -> Iterator[Any]:
    for arg in args:
        if isinstance(arg, TensorBase):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from (a for a in arg if isinstance(a, TensorBase))
