"""Programs that recordings share, whole or in part.

What no gradient depends on often varies where the rest does not: how a batch is
prepared, the targets that another network gives for as many states as go on. Each such
recording is another path in the trie. Its *first* part is what no gradient depends on;
the *rest* is compiled once for all recordings in which it has the same structure.
"""

from __future__ import annotations

import math
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torchshim._core import program
from torchshim._core.call import VjpCall
from torchshim._core.integers import opened
from torchshim._core.interim import Interim
from torchshim._core.lower import Lowered, has_checks
from torchshim._core.meta import Meta
from torchshim._core.placement import platform
from torchshim._core.precision import precision
from torchshim._core.program import Compiled, Copying, Program, Rearranged
from torchshim._core.state import State
from torchshim._core.stepwise import choose, compiled, lock

# After so many first parts before the same rest, further ones are expected. Two have
# other reasons: the first iteration of a loop and all others. Where recordings are
# known to vary, NumPy may compute the whole of them: there it takes more.
_FIRST_PARTS, _FIRST_PARTS_VARYING = 2, 8
# Shorter rests are not worth a program of their own.
_LEAST_REST = 8
# Longer recordings are not looked at: that takes some 10 us an event.
_LONGEST = 2000
# What the first part hands on is an array more than in one program; at most of so many
# bytes.
_HANDED_ON = 64 * 2**20
# A program may serve where other inputs can be donated than it was made for, if those
# that differ have at most so many bytes.
DONATIONS_APART = 1 << 16
# Rests that are remembered.
_STRUCTURES = 1024


@dataclass(slots=True)
class Structure:
    """What a lowered recording computes, however its events came about."""

    # Equal keys: the same function of arguments and scalars.
    key: tuple[Any, ...]
    # Of each argument: its position among the inputs, and its bytes.
    arguments: list[int]
    sizes: list[int]
    # Of each scalar: its place in the host vector.
    scalars: list[int]


def structure_of(lowered: Lowered, root: State) -> Structure:
    """`root`: that of the trie, as threads share no programs."""
    positions = dict(zip(lowered.slots, lowered.inputs, strict=True))
    numbers: dict[int, int] = {}  # slots: arguments below 0, results from 0 on
    depths: dict[int, int] = {}
    given: dict[int, Meta] = {}
    scalars: list[int] = []
    events: list[Any] = []
    made = 0
    for k, (event, slots) in enumerate(
        zip(lowered.calls, lowered.operands, strict=True)
    ):
        for slot, meta in zip(slots, event.given, strict=True):
            if slot not in numbers:
                numbers[slot] = -1 - len(given)
                given[slot] = meta
        events.append(
            (
                event.call,
                tuple([numbers[slot] for slot in slots]),
                tuple([(m.array_shape, m.dtype) for m in event.given]),
                None if event.gradient_of is None else depths.get(event.gradient_of),
                event.line if has_checks(event) else None,
            )
        )
        depths[event.depth] = k
        scalars.extend(range(event.scalar, event.n_scalars))
        for slot in range(event.slot, event.n_slots):
            numbers[slot] = made
            made += 1
    outputs = tuple([numbers[slot] for slot in lowered.outputs])
    return Structure(
        key=(root, platform(), lowered.place, precision.key, outputs, tuple(events)),
        arguments=[positions[slot] for slot in given],
        sizes=[_bytes(meta) for meta in given.values()],
        scalars=scalars,
    )


def _bytes(meta: Meta) -> int:
    return math.prod(meta.array_shape) * meta.dtype.itemsize


@dataclass(slots=True)
class Shared:
    """A program for all recordings of one structure."""

    program: weakref.ref[Program]
    structure: Structure
    # How long the host vector is that it takes.
    n_scalars: int


# Key of a structure -> its programs, for other donations each.
_shared: dict[Any, list[Shared]] = {}
# Hash of a rest's key -> those of the first parts that recordings had before it.
_firsts: OrderedDict[int, set[int]] = OrderedDict()


class Renumbered(Rearranged):
    """A program that was made for another recording with the same structure."""

    __slots__ = ("_inputs", "_length", "_scalars")

    def __init__(
        self, program: Program | Copying, shared: Shared, mine: Structure
    ) -> None:
        self.program = program
        its = shared.structure
        self._inputs = list(zip(its.arguments, mine.arguments, strict=True))
        self._length = max(its.arguments, default=-1) + 1
        places = np.array(its.scalars, int), np.array(mine.scalars, int)
        self._scalars = shared.n_scalars, *places

    def __call__(self, scalars: Any, inputs: Sequence[Any], result: list[Any]) -> None:
        length, to, at = self._scalars
        vector = np.zeros(length)
        vector[to] = scalars[at]
        given: list[Any] = [None] * self._length
        for its, mine in self._inputs:
            given[its] = inputs[mine]
        self.program(vector, given, result)


class Split:
    """A recording as two programs; a flush runs it as `flush.SplitRun`."""

    __slots__ = ("first", "handed_on", "places", "rest")

    def __init__(
        self, first: Any, rest: Program | Renumbered, handed_on: int, places: list[int]
    ) -> None:
        self.first = first
        self.rest = rest
        # How many of the first part's outputs are inputs of the rest.
        self.handed_on = handed_on
        # Of each output: its place among those of the rest and, after them, of the
        # first part.
        self.places = places

    @property
    def entry(self) -> Compiled | None:
        return self.first.entry or self.rest.entry


# What runs a recording: the first three are called as a program is.
Runner = Program | Renumbered | Interim | Split


def make_program(
    state: State,
    outputs: tuple[int, ...],
    donated: Mapping[int, int],
    rare: bool,
    saves: bool,
    entry: Compiled,
) -> Runner:
    """What runs a recording: as `choose` has it, or with programs that are known.

    `donated`: position -> bytes of inputs that a program can overwrite. `saves`:
    whether it keeps what a later backward needs.
    """
    lowered = Lowered.of(state, outputs)
    replaced = program.replaced_inputs(state, outputs)
    order = list(replaced.values())
    if len(lowered.calls) > _LONGEST or not any(map(_is_late, lowered.calls)):
        return choose(lowered, donated, order, rare, saves, entry)
    whole = _Part(lowered, state, donated, order)
    if (known := whole.known()) is not None:
        return known
    if (halves := _halves(lowered, state.n_inputs)) is not None:
        own = dict(zip(outputs, lowered.outputs, strict=True))
        before = {own[slot]: p for slot, p in replaced.items()}
        split = _split(halves, state, donated, before, rare, saves, entry)
        if split is not None:
            return split
    return whole.share(choose(lowered, donated, order, rare, saves, entry))


class _Part:
    """A lowered recording, or a part of one, that may have a program already."""

    def __init__(
        self,
        lowered: Lowered,
        state: State,
        donated: Mapping[int, int],
        replaced: Sequence[int],
    ) -> None:
        root = state.top.parent
        assert root is not None
        self.lowered = lowered
        self.structure = structure_of(lowered, root)
        self.donated = donated
        self.replaced = replaced
        self._n_scalars = state.n_scalars

    def known(self) -> Program | Renumbered | None:
        """A program for this structure that donates what can be donated here.

        Of small arrays it may donate others (`flush._made_for_other_donations`).
        """
        mine = self.structure
        given = {k for k, p in enumerate(mine.arguments) if p in self.donated}
        for shared in _shared.get(mine.key, ()):
            program = shared.program()
            if program is None:
                continue
            its = shared.structure.arguments
            gifts = {k for k, p in enumerate(its) if p in program.inputs[0]}
            if sum(mine.sizes[k] for k in gifts ^ given) <= DONATIONS_APART:
                lost = tuple(its[k] for k in gifts - given)
                run = Copying(program, lost) if lost else program
                return Renumbered(run, shared, mine)
        return None

    def share(self, made: Any) -> Any:
        """Others of this structure may use what was made, if it is a program."""
        if type(made) is Program:
            key = self.structure.key
            shared = Shared(weakref.ref(made), self.structure, self._n_scalars)
            with lock:
                # As many are left as there are programs.
                for known, programs in list(_shared.items()):
                    programs[:] = [s for s in programs if s.program() is not None]
                    if not programs:
                        del _shared[known]
                _shared.setdefault(key, []).append(shared)
        return made


def _is_late(event: State) -> bool:
    """Whether an event has, or can have, a gradient, or is one."""
    return bool(event.wrt) or isinstance(event.call, VjpCall)


@dataclass(slots=True)
class _Halves:
    """The two parts of a recording."""

    first: Lowered
    rest: Lowered
    # How many values the first part hands on. The rest takes them as further inputs.
    handed_on: int
    # Of each output: its place among those of the rest and, after them, of the first.
    places: list[int]


def _halves(lowered: Lowered, n_inputs: int) -> _Halves | None:
    """None if there is no first part.

    Events without operands (zeros) belong to the part that uses them, or to both.
    """
    events = list(zip(lowered.calls, lowered.operands, strict=True))
    late: set[int] = set()
    used: set[int] = set()  # by what is late
    constant: set[int] = set()
    for event, operands in events:
        if _is_late(event) or not late.isdisjoint(operands):
            late.update(_slots(event))
            used.update(operands)
        elif not operands:
            constant.update(_slots(event))
    early = {slot for event, _ in events for slot in _slots(event)} - late
    handed_on = sorted((early & used) - constant)
    kept = sorted((early & {*lowered.outputs}) - {*handed_on})
    rest = [
        (event, operands)
        for event, operands in events
        if event.slot in late
        or (event.slot in constant and not used.isdisjoint(_slots(event)))
    ]
    first: list[_Event] = []
    wanted = {*handed_on, *kept}
    for event, operands in reversed(events):
        if event.slot not in late and (
            not wanted.isdisjoint(_slots(event)) or has_checks(event)
        ):
            first.append((event, operands))
            wanted.update(operands)
    if not first or len(rest) < _LEAST_REST:
        return None
    inputs = dict(zip(lowered.slots, lowered.inputs, strict=True))
    further = {slot: n_inputs + k for k, slot in enumerate(handed_on)}
    outputs = [slot for slot in lowered.outputs if slot not in early]
    places = {slot: k for k, slot in enumerate([*outputs, *handed_on, *kept])}
    return _Halves(
        _part(first[::-1], inputs, [*handed_on, *kept], lowered.place),
        _part(rest, inputs | further, outputs, lowered.place),
        len(handed_on),
        [places[slot] for slot in lowered.outputs],
    )


_Event = tuple[State, tuple[int, ...]]  # with its operands, identities resolved


def _part(
    events: Sequence[_Event],
    inputs: Mapping[int, int],
    outputs: Sequence[int],
    place: Any,
) -> Lowered:
    used = {slot for _, operands in events for slot in operands}
    return Lowered(
        [event for event, _ in events],
        [operands for _, operands in events],
        {slot: position for slot, position in inputs.items() if slot in used},
        outputs,
        place,
    )


def _slots(event: State) -> range:
    return range(event.slot, event.n_slots)


def _split(
    halves: _Halves,
    state: State,
    donated: Mapping[int, int],
    replaced: Mapping[int, int],
    rare: bool,
    saves: bool,
    entry: Compiled,
) -> Split | None:
    """Programs for the two parts, if the rest is known or expected to come again.

    `replaced`: output -> position of the input that it is the new value of.
    """
    metas: dict[int, Meta] = {}
    for event in state.path():
        metas.update(zip(_slots(event), event.metas, strict=True))
    first, rest = halves.first, halves.rest
    if sum(_bytes(metas[slot]) for slot in first.outputs) > _HANDED_ON:
        return None
    # The first part overwrites nothing.
    usable = program.matched_donations(
        [
            (position, _aval(metas[slot]))
            for slot, position in zip(rest.slots, rest.inputs, strict=True)
            if position in donated
        ],
        [_aval(metas[slot]) for slot in rest.outputs],
    )
    gifts = {position: donated[position] for position in usable}
    after = _Part(
        rest, state, gifts, [replaced[s] for s in rest.outputs if s in replaced]
    )
    before = _Part(first, state, {}, ())
    run = after.known()
    if run is None:
        if not _comes_again(before.structure, after.structure, rare):
            return None
        reason = "without what no gradient depends on, which varies"
        told = replace(entry, outputs=len(rest.outputs), reason=reason)
        run = after.share(compiled(rest, gifts, after.replaced, False, told))
    begin = before.known()
    if begin is None:
        told = replace(entry, outputs=len(first.outputs))
        begin = before.share(choose(first, {}, (), True, saves, told))
    return Split(begin, run, halves.handed_on, halves.places)


def _aval(meta: Meta) -> Any:
    return meta.array_shape, meta.dtype.np


def _comes_again(before: Structure, after: Structure, rare: bool) -> bool:
    """Whether several recordings have the same rest behind other first parts.

    Those that differ in integers alone are one: these become runtime scalars.
    """
    *where, events = before.key
    kind = *where, tuple([(opened(call), *event) for call, *event in events])
    with lock:
        firsts = _firsts.pop(hash(after.key), set())
        _firsts[hash(after.key)] = firsts
        firsts.add(hash(kind))
        if len(_firsts) > _STRUCTURES:
            _firsts.popitem(last=False)
        return len(firsts) > (_FIRST_PARTS_VARYING if rare else _FIRST_PARTS)
