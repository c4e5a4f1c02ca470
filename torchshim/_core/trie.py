"""The trie of a recorder: steps from state to state, and adds the states that are new.

Recording an event that no user wrote (a gradient, a write through a view) is here, too.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from torchshim._core import host_memory
from torchshim._core.batching import alone, batched
from torchshim._core.call import PythonCall
from torchshim._core.callers import caller
from torchshim._core.dependence import sources_of
from torchshim._core.forward import jvp_call
from torchshim._core.infer import Inference
from torchshim._core.meta import Meta
from torchshim._core.program import CACHE, forget_traces
from torchshim._core.state import (
    CALL,
    IDENTITY,
    INPUT,
    MARK,
    Recording,
    State,
)
from torchshim._core.storage import (
    TensorBase,
    tensor_class,
)

# States kept in one recorder's trie before the oldest branches are dropped.
STATE_BOUND = 50_000
# All recorders, by number.
recorders: list[Any] = []
# Of an event with static numbers that may vary: its key without them, and the numbers.
Met = tuple[Any, tuple[Any, ...]]
_new = object.__new__


class Trie(Inference):
    """The place of a recorder in its trie, and how it moves on.

    `Recorder.__init__` says what the fields are, those of the classes above this one,
    too.
    """

    root: State
    state: State
    states: int
    bits: int
    flushes: int
    scalars: list[Any]
    inputs: list[Any]
    live: list[weakref.ref[TensorBase]]
    volatile: list[TensorBase]
    shadow: State | None
    diverged: tuple[State, State] | None
    recording: Recording
    forward: bool

    def slot_of(self, tensor: TensorBase) -> int:
        raise NotImplementedError

    def set_mode(self) -> None:
        raise NotImplementedError

    def set_tangents(self, slot: int, tangents: dict[int, TensorBase]) -> None:
        raise NotImplementedError

    def set_tangent(self, slot: int, level: int, tangent: TensorBase) -> None:
        raise NotImplementedError

    def make_room(self, meta: Meta | None = None) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def forget_volatile(self) -> None:
        for tensor in self.volatile:
            tensor._slot = -1
        self.volatile.clear()

    def event(
        self,
        call: Any,
        tensors: Sequence[TensorBase],
        values: Sequence[float] = (),
        gradient_of: int | None = None,
        within: int = 0,
    ) -> State:
        """Records a call that is no user's: a gradient, a write through a view.

        `gradient_of`: see `State.gradient_of`. Of a tangent's gradient `within` is the
        level of that tangent: there, as further in, it has none itself.
        """
        slots = [self.slot_of(t) for t in tensors]
        if self.volatile:
            self.forget_volatile()
        # (Equal calls of equal operands may differ in their runtime scalars, and so do
        # their gradients.)
        key = (call, self.bits, gradient_of, *slots)
        found = self.state.next.get(key)
        if found is None:
            operands = [(s, t._tmeta) for s, t in zip(slots, tensors, strict=True)]
            found = self.extend(key, call, operands, len(values), None)
            found.gradient_of = gradient_of if found.call is call else None
        self.advance(found, values)
        if self.forward and self.recording.duals:
            metas = [t._tmeta for t in tensors]
            self.push_forward(found, list(zip(slots, metas, strict=True)), within)
        return found

    def push_forward(
        self, state: State, operands: Sequence[tuple[int, Meta]], depth: int = 0
    ) -> None:
        """Forward mode: gives the results of an event tangents, where operands have.

        The innermost level first: what it makes of the operands and their tangents is
        a call like any other, which has tangents of the levels around it.
        """
        duals = self.recording.duals
        found_levels = {n for s, _ in operands for n in duals.get(s, ())}
        level = max((n for n in found_levels if not depth or n < depth), default=0)
        if not level or isinstance(state.call, PythonCall):
            return
        call = alone(state.call)
        along = tuple(
            i
            for i, (s, _) in enumerate(operands)
            if level in duals.get(s, ()) and call.differentiable(i)
        )
        metas = [meta for _, meta in operands]
        sources = sources_of(call, metas)
        if sources is not None:  # (in PyTorch the others' tangents are not there)
            along = tuple([i for i in along if any(i in of for of in sources)])
        if not along:
            return self.push_forward(state, operands, level)
        scalars = self.scalars[state.scalar : state.n_scalars]
        tangents = [duals[operands[i][0]][level] for i in along]
        given = [*operands, *((self.slot_of(t), t._tmeta) for t in tangents)]
        made = jvp_call(call, along, len(operands))
        key = (made, self.bits, *(slot for slot, _ in given))
        found = self.state.next.get(key)
        if found is None:
            found = self.extend(key, made, given, len(scalars), None)
        self.advance(found, scalars)
        self.recording.tangent_levels[found.depth] = level
        for k, meta in enumerate(state.metas):
            if sources is not None and sources[k].isdisjoint(along):
                continue
            if meta.dtype.is_floating_point or meta.dtype.is_complex:
                self.set_tangent(state.slot + k, level, self.result(found, k))
        self.push_forward(found, given, level)
        self.push_forward(state, operands, level)

    def python_event(
        self,
        call: PythonCall,
        slots: Sequence[int],
        metas: Sequence[Meta],
        outs: Sequence[TensorBase],
    ) -> State:
        """Records that Python code with a backward made `outs` of values in `slots`."""
        key = (call, self.bits, *slots, *map(self.slot_of, outs))
        found = self.state.next.get(key)
        if found is None:
            given = [*metas, *[t._tmeta for t in outs]]
            operands = list(zip(key[2:], given, strict=True))
            found = self.extend(key, call, operands, 0, None)
        self.state = found
        return found

    def advance(self, state: State, values: Sequence[Any] = ()) -> None:
        """Steps to a known state, and fills in its runtime scalars."""
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
        met: Met | None,
    ) -> State:
        """Adds the state of an event that is new here."""
        given = [meta for _, meta in operands]
        metas, wrt, view = self.infer(call, given)
        state = self._add(
            key,
            CALL,
            met,
            call=batched(call, given),
            operands=tuple(slot for slot, _ in operands),
            given=tuple(given),
            metas=metas,
            scalars=n_scalars,
            wrt=wrt,
        )
        state.view = state.alias = view
        if state.device is None and metas:
            where = given[0].device if call.moves else self.device_of(call, given)
            state.device = None if where.type == "meta" else where
        if call.write:
            state.write = operands[0][0]
        state.written |= state.write is not None or bool(state.mutated())
        return state

    def _add(
        self,
        key: Any,
        kind: int,
        met: Met | None,
        **fields: Any,
    ) -> State:
        parent = self.state
        state = State(parent, kind, key, line=caller(), **fields)
        self._follow(parent, key, met, state)
        while len(self.scalars) < state.n_scalars:
            self.scalars.append(0.0)
        parent.next[key] = state
        state.top.size += 1
        self.states += 1
        if self.states > STATE_BOUND:
            self.prune(state)
        return state

    def _follow(
        self,
        parent: State,
        key: Any,
        met: Met | None,
        state: State,
    ) -> None:
        """Notes the numbers met, and follows the shadow.

        That is the earlier recording that this one runs parallel to, but for numbers.
        """
        if parent.next and self.diverged is None:
            self.diverged = parent, state
        where, numbers = met if met is not None else (None, ())
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
            parent.places[where] = numbers, state

    def prune(self, running: State) -> None:
        """Drops what leads to no program that was used lately.

        `running`: where the running recording stands, which is kept.
        """
        kept = {id(state): state for state in (self.root, *running.path())}
        for key in CACHE.latest():
            path: list[State] = []
            state: State | None = key[0]
            while state is not None and id(state) not in kept:
                path.append(state)
                state = state.parent
            if state is None:
                continue  # another thread's
            if len(kept) + len(path) > STATE_BOUND // 2:
                break
            kept.update((id(each), each) for each in path)
        for state in kept.values():
            state.size = 0
            state.keep_only(kept)
        # (Jump edges may have led to branches that had been dropped before.)
        self.states, left = 0, [*self.root.next.values()]
        while left:
            state = left.pop()
            left += state.next.values()
            state.top.size += 1
            self.states += 1
        self.shadow = None
        CACHE.forget(self.root, kept)
        forget_traces()
        host_memory.trim()

    def mark(self, *what: Any) -> None:
        """Records an event without a value, on which later look-ups depend."""
        key = (MARK, *what)
        found = self.state.next.get(key)
        if found is None:
            found = self._add(key, MARK, None)
        self.state = found

    def identity(self, source: int, meta: Meta, *note: Any) -> int:
        """Records a new autograd identity of a value: the same data in another role."""
        key = (IDENTITY, source, meta, *note)
        found = self.state.next.get(key)
        if found is None:
            found = self._add(key, IDENTITY, None, operands=(source,), metas=(meta,))
        self.state = found
        duals = self.recording.duals
        if source in duals:
            duals[found.slot] = duals[source]
        return found.slot

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

    def result(self, state: State, k: int = 0) -> TensorBase:
        """A new tensor on the k-th result of the event just recorded."""
        tensor = _new(tensor_class[0])
        tensor._slot = state.slot + k
        tensor._tmeta = state.metas[k]
        tensor._array = None
        self.live.append(weakref.ref(tensor))
        return tensor

    def tensor_on(
        self, slot: int, meta: Meta, cls: type[TensorBase] | None = None
    ) -> TensorBase:
        """A new tensor on a known slot.

        With `TensorBase` as its class it only keeps the value: users never write to it.
        """
        tensor = _new(cls or tensor_class[0])
        tensor._slot = slot
        tensor._tmeta = meta
        tensor._array = None
        self.live.append(weakref.ref(tensor))
        return tensor

    def results(self, state: State) -> list[TensorBase]:
        return [self.result(state, k) for k in range(len(state.metas))]
