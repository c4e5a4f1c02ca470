"""Flush: a recording becomes a program, and its results become arrays."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from torchshim._core import program
from torchshim._core.callers import caller
from torchshim._core.exact import Exact
from torchshim._core.lower import has_checks
from torchshim._core.no_data import NoData, absent_of
from torchshim._core.parts import DONATIONS_APART, Runner, Split, make_program
from torchshim._core.program import CACHE, Compiled, Copying, Program
from torchshim._core.signals import held_back
from torchshim._core.state import CALL, IDENTITY, INPUT, Recording, State, UsedUp
from torchshim._core.storage import Storage, TensorBase, value_lock
from torchshim._core.varying import comes_in_sizes, keeps_varying


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
    pending, histories = alive.tensors, alive.histories
    placed: list[tuple[TensorBase, int]] = []
    first, last = rec.first_slot, rec.state.n_slots
    # What was written to is there several times, which does no harm.
    for ref in rec.live:
        tensor = ref()
        # Another thread may have taken the tensor into its own recording.
        if tensor is None or not first <= (slot := tensor._slot) < last:
            continue
        if tensor._array is None and tensor._storage is None:
            pending.append((tensor, slot))
        else:
            placed.append((tensor, slot))
        meta = tensor._tmeta
        if meta.requires_grad and not meta.leaf:
            histories.append((tensor, slot))
    for storage in rec.storages.values():
        if first <= (slot := storage.slot) < last and storage.array is None:
            if storage.tensors():
                alive.storages.append((storage, slot))
    for tensor in rec.raws:
        if first <= (slot := tensor._raw) < last:
            alive.raws.append((tensor, slot))
    if rec.stale:
        seen = {id(tensor) for tensor, _ in (*pending, *placed)}
        for tensor in [tensor for ref in rec.stale if (tensor := ref()) is not None]:
            hist, storage = tensor._hist, tensor._storage
            if hist is None or hist[0] is not rec.recording or id(tensor) in seen:
                continue
            if tensor._view_of is not None and storage is not None:
                if tensor._hist_version != storage.version:
                    continue  # its node is made anew when it is used
            seen.add(id(tensor))
            histories.append((tensor, hist[1]))
    return alive, placed


def may_fail(rec: Any) -> bool:
    """Whether a check of what was recorded is still to be looked at."""
    return bool(rec.reports) or any(map(has_checks, rec.state.path()))


# What saved-tensor hooks keep instead: (depth of an event, its operands).
Packed = frozenset[tuple[int, frozenset[int]]]


def savers_of(
    state: State, roots: Set[int], freed: Set[UsedUp], packed: Packed
) -> dict[int, frozenset[int]]:
    """Slot of each value that a later backward from `roots` needs -> who needs it.

    That is, the depths of the events whose gradients are computed from it.
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
    roots = [slot for _, slot in alive.histories]
    for node in held:
        roots += node._slots()
    slots = [slot for _, slot in alive.tensors]
    slots += [slot for _, slot in alive.storages]
    slots += [slot for _, slot in alive.raws]
    plan = _plan_of(state, recording, slots, roots)
    run = _prepared(rec, state, plan, True)

    def finish() -> None:
        values = run.values()
        with value_lock:
            rec.commit(state, recording, alive, placed, values, plan.saved, bool(roots))
        run.report(rec)

    if run.program is not None and run.program.entry is not None:
        # Python code of JAX's runs.
        with held_back():
            _carry_out(run, finish)
    else:
        _carry_out(run, finish)


def _carry_out(run: Run, finish: Callable[[], None]) -> None:
    try:
        run.start()
        finish()
    except BaseException:
        if run.program is not None and not run.result:
            raise
        while True:
            try:
                finish()
                break
            except KeyboardInterrupt:
                pass
        raise


def values_of(
    rec: Any, state: State, recording: Recording, slot: int, history: bool
) -> tuple[Any, dict[int, Any], dict[int, frozenset[int]]]:
    """A value of a recording that goes on, and what a backward from it needs."""
    plan = _plan_of(state, recording, [slot], [slot] if history else [])
    run = _prepared(rec, state, plan, False)
    run.start()
    run.report(rec)
    value, *kept = run.values()
    return value, dict(zip(plan.saved, kept, strict=True)), plan.saved


@dataclass(slots=True)
class FlushPlan:
    """What follows from the slots that a flush is asked for: found once for a state."""

    # Slot of what a later backward needs -> depths of the events whose gradients do.
    saved: dict[int, frozenset[int]]
    # Positions of the inputs that are needed then, or have no data: not donated.
    held: frozenset[int]
    # Each slot asked for or saved is one of these: an output of the program (in the
    # program's order), an input (its position) as it came, or a value on "meta".
    computed: tuple[int, ...]
    unchanged: list[int]
    absent: list[NoData]
    # Whether there are data-dependent checks, so that the program has to run.
    checked: bool
    # For each slot asked for, then each one saved: its place in these three lists.
    places: list[int]


def _plan_of(
    state: State, recording: Recording, slots: list[int], roots: list[int]
) -> FlushPlan:
    freed, packed = frozenset[UsedUp](), Packed()
    if roots:
        freed = frozenset(recording.freed)
        if recording.packed:
            packed = frozenset(
                (depth, frozenset(i for i in values if isinstance(i, int)))
                for depth, values in recording.packed.items()
            )
    key = tuple(slots), tuple(roots), freed, packed
    return state.memoized(key, lambda: _make_plan(state, *key))


def _make_plan(
    state: State,
    slots: tuple[int, ...],
    roots: tuple[int, ...],
    freed: frozenset[UsedUp],
    packed: Packed,
) -> FlushPlan:
    saved = savers_of(state, set(roots), freed, packed) if roots else {}
    table: InputTable = state.memoized("inputs", lambda: _inputs_of(state))
    unchanged: dict[int, int] = {}
    absent: dict[int, NoData] = {}
    computed: list[int] = []
    for slot in sorted({*slots, *saved}):
        if slot in table.absent:
            absent[slot] = table.absent[slot]
        elif slot in table.inputs:
            unchanged[slot] = table.inputs[slot]
        else:
            computed.append(slot)
    order = program.ordered(state, computed)
    places = {slot: i for i, slot in enumerate((*order, *unchanged, *absent))}
    return FlushPlan(
        saved=saved,
        held=frozenset(
            position
            for slot, position in table.inputs.items()
            if slot in saved or slot in table.absent
        ),
        computed=order,
        unchanged=list(unchanged.values()),
        absent=list(absent.values()),
        checked=table.checked,
        places=[places[slot] for slot in (*slots, *saved)],
    )


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


class Run:
    """One run of a program, or of none where all that is asked for is there."""

    __slots__ = ("given", "inputs", "places", "program", "result", "scalars")

    def __init__(
        self,
        places: list[int],
        given: list[Any],
        program: Any = None,
        scalars: Any = None,
        inputs: Any = None,
    ) -> None:
        # Where each value is among the program's outputs and, after them, the given.
        self.places = places
        self.given = given
        self.program = program
        self.scalars = scalars
        self.inputs = inputs
        # What the program gave, from the moment that it ran.
        self.result: list[Any] = []

    def start(self) -> None:
        if self.program is not None:
            self.program(self.scalars, self.inputs, self.result)
            self.note_running()

    def note_running(self) -> None:
        outs = self.result[0][0]
        if outs and type(outs[0]) is not np.ndarray:
            _running[0] = outs[0]

    def values(self) -> list[Any]:
        """The array of every slot asked for."""
        arrays = self.given
        if self.program is not None:
            arrays = self.result[0][0] + arrays if arrays else self.result[0][0]
        return [arrays[place] for place in self.places]

    def report(self, rec: Any) -> None:
        """Keeps what the checks found."""
        if self.program is not None and self.result[0][1] is not None:
            rec.note_report(list(self.program.lowered.sites), self.result[0][1])


class SplitRun(Run):
    """One run of a recording in two parts."""

    __slots__ = ("_first", "_split")

    def __init__(
        self, split: Split, places: list[int], given: list[Any], *args: Any
    ) -> None:
        super().__init__(places, given, split, *args)
        self._split = split
        self._first: list[Any] = []

    def start(self) -> None:
        split = self._split
        split.first(self.scalars, self.inputs, self._first)
        handed_on = self._first[0][0][: split.handed_on]
        split.rest(self.scalars, [*self.inputs, *handed_on], self.result)
        self.note_running()

    def values(self) -> list[Any]:
        outs = [*self.result[0][0], *self._first[0][0]]
        arrays = [*[outs[place] for place in self._split.places], *self.given]
        return [arrays[place] for place in self.places]

    def report(self, rec: Any) -> None:
        split = self._split
        for part, found in (split.first, self._first), (split.rest, self.result):
            if found[0][1] is not None:
                rec.note_report(list(part.lowered.sites), found[0][1])


# Something that the program started last gives, until the next is prepared; None
# before the first.
_running: list[Any] = [None]


@atexit.register
def _wait_for_programs() -> None:
    """At the end of the process XLA's threads must not be computing any more.

    What they use is taken away from under them, and the process ends by a signal. A
    program whose results nobody holds is known by `_running` alone.
    """
    latest, _running[0] = _running[0], None
    for array in jax.live_arrays() if latest is not None else ():
        try:
            if not array.is_deleted():
                array.block_until_ready()
        except Exception:
            pass  # an error of what nobody has read


if hasattr(os, "register_at_fork"):
    # A child has none of the threads that compute it.
    os.register_at_fork(after_in_child=lambda: _running.__setitem__(0, None))


def _prepared(rec: Any, state: State, plan: FlushPlan, donates: bool) -> Run:
    """The run that gives the arrays of a plan; it may donate inputs if it `donates`."""
    inputs: list[Any] = rec.inputs
    if _running[0] is not None:
        _running[0] = ()  # (what is held elsewhere, too, is not donated)
    given = [*[inputs[position] for position in plan.unchanged], *plan.absent]
    if not plan.computed and not plan.checked:
        return Run(plan.places, given)
    donated = _donations(inputs, plan.held) if donates else ()
    key = (state, plan.computed, donated)
    compiled = CACHE.get(key)
    if compiled is None:
        compiled = _made_for_other_donations(state, plan.computed, donated, inputs)
        compiled = compiled or _new_program(rec, state, plan, donated, inputs)
        CACHE.add(key, compiled)
    vector = np.array(rec.scalars[: state.n_scalars], np.float64)
    if type(compiled) is Split:
        return SplitRun(compiled, plan.places, given, vector, inputs)
    return Run(plan.places, given, compiled, vector, inputs)


def _references(arrays: list[Any]) -> list[int]:
    return list(map(sys.getrefcount, arrays))


# The count of what a list alone holds.
_ALONE = _references([object()])[0]


def _donations(inputs: list[Any], held: Set[int]) -> tuple[int, ...]:
    """Positions of inputs whose array nothing but the recording holds."""
    counts = _references(inputs)
    alone = [p for p, n in enumerate(counts) if n <= _ALONE and p not in held]
    if any(map(weakref.getweakrefcount, inputs)):
        alone = [p for p in alone if not weakref.getweakrefcount(inputs[p])]
    return tuple(alone)


def _made_for_other_donations(
    state: State, outputs: tuple[int, ...], donated: tuple[int, ...], inputs: list[Any]
) -> Program | Copying | Exact | None:
    """A known program for the same outputs that donates other small arrays.

    Whether an array is held elsewhere, too, often differs between the first iteration
    of a loop and the next. Copying it takes microseconds, another program seconds.
    """
    for key in CACHE.variants_of(state):
        made = CACHE.get((state, *key)) if key[0] == outputs else None
        if type(made) is Exact:
            return made  # it overwrites nothing
        if type(made) is Program:
            lost = set(made.inputs[0]) - set(donated)
            other = lost | (set(donated) - set(key[1]))
            if sum(inputs[p].nbytes for p in other) <= DONATIONS_APART:
                return Copying(made, tuple(lost)) if lost else made
    return None


def _new_program(
    rec: Any,
    state: State,
    plan: FlushPlan,
    donated: tuple[int, ...],
    inputs: list[Any],
) -> Runner:
    outputs = plan.computed
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
    entry = Compiled(
        line=caller(),
        events=0,
        outputs=len(outputs),
        reason=rec.why() or _why_another_program(state, outputs, usable),
    )
    gifts = {p: inputs[p].nbytes for p in usable}
    rare = comes_in_sizes(state, rec.sequences) or keeps_varying(rec)
    return make_program(state, outputs, gifts, rare, bool(plan.saved), entry)


def _why_another_program(
    state: State, outputs: tuple[int, ...], donated: tuple[int, ...]
) -> str:
    """Why the same events need another program: other values live on."""
    known = CACHE.variants_of(state)
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
