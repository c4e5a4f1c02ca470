"""Flush: a recording becomes a program, and its results become arrays."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from torchshim._core import program
from torchshim._core.call import VjpCall
from torchshim._core.lower import has_checks
from torchshim._core.no_data import NoData, absent_of
from torchshim._core.program import CACHE, Compiled, Program
from torchshim._core.state import CALL, IDENTITY, INPUT, Recording, State
from torchshim._core.storage import Storage, TensorBase, value_lock


@dataclass(slots=True)
class Alive:
    """What outlives a recording: where the results of its program go."""

    tensors: list[tuple[TensorBase, int]]  # carry their value themselves, pending
    storages: list[tuple[Storage, int]]  # pending base values
    raws: list[tuple[TensorBase, int]]  # written without history, pending
    histories: list[tuple[TensorBase, int]]  # have autograd history


def find_alive(rec: Any) -> tuple[Alive, list[tuple[TensorBase, int]]]:
    """Follows the weak references; also gives the tensors that have a value already."""
    alive = Alive([], [], [], [])
    placed: list[tuple[TensorBase, int]] = []
    seen: set[int] = set()
    first, last = rec.first_slot, rec.state.n_slots
    for tensor in [tensor for ref in rec.live if (tensor := ref()) is not None]:
        # Another thread may have taken the tensor into its own recording.
        if not first <= (slot := tensor._slot) < last or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        place = tensor, slot
        if tensor._array is None and tensor._storage is None:
            alive.tensors.append(place)
        else:
            placed.append(place)
        meta = tensor._meta
        if meta.requires_grad and not meta.leaf:
            alive.histories.append(place)
    for storage in rec.storages.values():
        if first <= (slot := storage.slot) < last and storage.array is None:
            if storage.tensors():
                alive.storages.append((storage, slot))
    for tensor in rec.raws:
        if first <= (slot := tensor._raw) < last:
            alive.raws.append((tensor, slot))
    for tensor in [tensor for ref in rec.stale if (tensor := ref()) is not None]:
        hist = tensor._hist
        if hist is not None and hist[0] is rec.recording and id(tensor) not in seen:
            seen.add(id(tensor))
            alive.histories.append((tensor, hist[1]))
    return alive, placed


# What saved-tensor hooks keep instead: (depth of an event, its operands).
Packed = frozenset[tuple[int, frozenset[int]]]


def savers_of(
    state: State, roots: set[int], freed: set[int], packed: Packed
) -> dict[int, frozenset[int]]:
    """Slots whose values a later backward from `roots` needs.

    Each with the depths of the events whose gradients need it.
    """
    elsewhere = dict(packed)
    reached = set(roots)
    needed: dict[int, set[int]] = {}
    for event in reversed(state.path()):
        if not any(s in reached for s in range(event.slot, event.n_slots)):
            continue
        if event.kind == IDENTITY:
            if event.metas[0].requires_grad and not event.metas[0].leaf:
                reached.add(event.operands[0])
            # The mark of an identity with history in this recording.
            for part in event.key[3:]:
                if isinstance(part, int):
                    reached.add(part)
        elif event.kind == CALL and event.wrt:
            reached.update(event.operands[i] for i in event.wrt)
            if event.depth not in freed:
                hooked = elsewhere.get(event.depth, ())
                for i in event.call.needs(event.wrt):
                    if i not in hooked:
                        needed.setdefault(event.operands[i], set()).add(event.depth)
    return {slot: frozenset(depths) for slot, depths in sorted(needed.items())}


def flush(rec: Any) -> None:
    """Runs the recording of `rec`.

    An interrupt leaves the recording as it is, or comes after all values are handed
    out: what was donated would be lost otherwise.
    """
    state: State = rec.state
    recording: Recording = rec.recording
    alive, placed = find_alive(rec)
    held = list(recording.nodes.values()) if recording.nodes else ()
    roots = {slot for _, slot in alive.histories}
    roots.update(slot for node in held for slot in node.slots())
    saved: dict[int, frozenset[int]] = {}
    if roots:
        saved = _plan(state, roots, recording)
    slots = {slot for _, slot in alive.tensors}
    if alive.storages:
        slots.update(slot for _, slot in alive.storages)
    slots.update([slot for _, slot in alive.raws])
    slots.update(saved)
    run = _prepared(rec, state, tuple(sorted(slots)), saved.keys())

    def finish() -> None:
        values = run.values()
        with value_lock:
            rec.commit(state, recording, alive, placed, values, saved, bool(roots))
        run.report(rec)

    if run.program is not None and run.program.entry is not None:
        with _held_back():
            _carry_out(run, finish)
    else:
        _carry_out(run, finish)


def _carry_out(run: Run, finish: Callable[[], None]) -> None:
    try:
        run.start()
        finish()
    except BaseException:
        if not run.result:
            raise
        while True:
            try:
                finish()
                break
            except KeyboardInterrupt:
                pass
        raise


@contextmanager
def _held_back() -> Generator[None, None, None]:
    """Ctrl-C waits. The first run of a program goes through Python code of JAX's."""
    handler = signal.getsignal(signal.SIGINT)
    here = threading.current_thread() is threading.main_thread()
    if not here or not callable(handler):
        yield
        return
    caught: list[Any] = []
    signal.signal(signal.SIGINT, lambda *args: caught.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if caught:
            handler(*caught[0])


def values_of(
    rec: Any, state: State, recording: Recording, slots: list[int], roots: set[int]
) -> tuple[dict[int, Any], dict[int, frozenset[int]]]:
    """Values of a recording that goes on, and what a backward from `roots` needs."""
    saved = _plan(state, roots, recording) if roots else {}
    wanted = tuple(sorted({*slots, *saved}))
    run = _prepared(rec, state, wanted, None)
    run.start()
    run.report(rec)
    return run.values(), saved


def _plan(
    state: State, roots: set[int], recording: Recording
) -> dict[int, frozenset[int]]:
    freed, packed = recording.freed, Packed()
    if recording.packed:
        packed = frozenset(
            (depth, frozenset(i for i in values if isinstance(i, int)))
            for depth, values in recording.packed.items()
        )
    key = frozenset(roots), frozenset(freed), packed
    return state.kept(key, lambda: savers_of(state, roots, freed, packed))


class Run:
    """One run of a program; none where all that is asked for is there already."""

    __slots__ = ("inputs", "program", "result", "scalars", "unchanged")

    def __init__(
        self,
        unchanged: dict[int, Any],
        program: Program | None = None,
        scalars: Any = None,
        inputs: Any = None,
    ) -> None:
        # Slot -> array of the inputs that are asked for as they came.
        self.unchanged = unchanged
        self.program = program
        self.scalars = scalars
        self.inputs = inputs
        # What the program gave, from the moment that it ran.
        self.result: list[Any] = []

    def start(self) -> None:
        if self.program is not None:
            self.program(self.scalars, self.inputs, self.result)

    def values(self) -> dict[int, Any]:
        """Slot -> array for every slot asked for."""
        if self.program is None:
            return self.unchanged
        found = dict(zip(self.program.outputs, self.result[0][0], strict=True))
        if self.unchanged:
            found.update(self.unchanged)
        return found

    def report(self, rec: Any) -> None:
        """Keeps what the checks found."""
        if self.program is not None and self.result[0][1] is not None:
            rec.note_report(list(self.program.lowered.sites), self.result[0][1])


def _prepared(
    rec: Any, state: State, slots: tuple[int, ...], saved: Set[int] | None
) -> Run:
    """What gives the arrays of the slots; `saved` None: nothing is donated."""
    inputs: list[Any] = rec.inputs
    table = state.kept("inputs", lambda: _inputs_of(state))
    unchanged = [slot for slot in slots if slot in table.inputs]
    values = {slot: inputs[table.inputs[slot]] for slot in unchanged}
    outputs = slots
    if table.absent:
        values.update({s: table.absent[s] for s in slots if s in table.absent})
    if values:
        outputs = tuple([slot for slot in slots if slot not in values])
    if not outputs and not table.checked:
        return Run(values)
    donated: tuple[int, ...] = ()
    if saved is not None:
        held = {table.inputs[s] for s in saved if s in table.inputs}
        donated = _donations(inputs, held)
    key = (state, outputs, donated)
    compiled = CACHE.get(key)
    if compiled is None:
        compiled, entry = _compile(rec, state, outputs, donated, inputs)
        CACHE.add(key, compiled, entry)
    vector = np.array(rec.scalars[: state.n_scalars], np.float64)
    return Run(values, compiled, vector, inputs)


@dataclass(slots=True)
class InputTable:
    """Which slots of a recording are inputs as they came in."""

    inputs: dict[int, int]
    # Slots of values on the device "meta".
    absent: dict[int, NoData]
    checked: bool


def _inputs_of(state: State) -> InputTable:
    slots: dict[int, int] = {}
    absent: dict[int, NoData] = {}
    checked = False
    for event in state.path():
        absent.update(absent_of(event))
        if event.kind == INPUT:
            slots[event.slot] = event.n_inputs - 1
        elif event.kind == IDENTITY and event.operands[0] in slots:
            slots[event.slot] = slots[event.operands[0]]
        checked = checked or has_checks(event)
    return InputTable(slots, absent, checked)


def _donations(inputs: list[Any], held: set[int]) -> tuple[int, ...]:
    """Positions of inputs whose array nothing but the recording holds."""
    chosen: list[int] = []
    for position in range(len(inputs)):
        array = inputs[position]
        if array.__class__ is NoData:
            continue
        if position not in held and program.nobody_else_holds(array, 2):
            if array.__class__ is np.ndarray:
                # What was made on the host is donated like what a program made, so
                # that the first step of a loop runs the same program as the others.
                with jax.enable_x64(True):
                    inputs[position] = jax.device_put(array.copy())
            chosen.append(position)
    return tuple(chosen)


def _compile(
    rec: Any,
    state: State,
    outputs: tuple[int, ...],
    donated: tuple[int, ...],
    inputs: list[Any],
) -> tuple[Program, Compiled]:
    # XLA warns of donated inputs that no output can reuse: donate only the others.
    avals: list[Any] = []
    metas: dict[int, Any] = {}
    for event in state.path():
        for k, meta in enumerate(event.metas):
            metas[event.slot + k] = meta
    for slot in outputs:
        meta = metas[slot]
        avals.append((meta.array_shape, meta.dtype.np))
    candidates = [
        (p, (tuple(inputs[p].shape), np.dtype(inputs[p].dtype))) for p in donated
    ]
    usable = program.matched_donations(candidates, avals)
    compiled = Program(state, outputs, usable, keeps_varying(rec))
    entry = Compiled(
        line=rec.line(),
        events=compiled.lowered.n_events,
        outputs=len(outputs),
        reason=rec.why() or _other_ends(state, outputs, usable),
    )
    return compiled, entry


def keeps_varying(rec: Any) -> bool:
    """Whether the running recording is one of many that differ in a shape."""
    state: State = rec.state
    if state.plans is not None and "varying" in state.plans:
        return True
    if rec.diverged is None or not varies(*rec.diverged):
        return False
    return state.kept("varying", lambda: True)  # it is run in the same parts again


# Variants of one event after which the next are taken for ones that pass.
_VARIANTS = 3


def varies(parent: State, made: State) -> bool:
    """Whether recordings differ at one line again and again, mostly in a shape.

    As those of a loop whose data grow: each of their programs runs once, or rarely.
    """
    if made.kind == INPUT:
        meta = made.metas[0]
        alike = [
            s
            for s in parent.next.values()
            if s.kind == INPUT
            and s.line == made.line
            and s.metas[0].dtype is meta.dtype
            and len(s.metas[0].shape) == len(meta.shape)
            and s.metas[0].shape != meta.shape
        ]
    elif (op := _operator(made)) is not None:
        alike = [
            s
            for s in parent.next.values()
            if _operator(s) is op
            and s.line == made.line
            and s.operands == made.operands
        ]
    else:
        return False
    return len(alike) >= _VARIANTS


def _operator(state: State) -> Any:
    """The operator that was called, or whose gradient it is; None for other events."""
    call = state.call
    while isinstance(call, VjpCall):
        call = call.inner
    return getattr(call, "op", None)


def _other_ends(
    state: State, outputs: tuple[int, ...], donated: tuple[int, ...]
) -> str:
    """Why the same events need another program: other values live on."""
    known = CACHE.ends(state)
    if not known:
        return "first recording"
    before_outputs, before_donated = known[-1]
    if before_outputs != outputs:
        more = len(set(outputs) - set(before_outputs))
        fewer = len(set(before_outputs) - set(outputs))
        return f"same events, {more} more and {fewer} fewer of the values live on"
    return (
        f"same events, {len(donated)} inputs can be donated instead of "
        f"{len(before_donated)}"
    )
