"""Repeated parts of a recording, to be compiled once and called many times.

XLA inlines functions before it optimizes, and its time grows faster than the program:
an unrolled recurrence of a hundred steps takes it a minute. What a loop of the script
recorded again and again (a step of a recurrence, a block of a network, their
gradients) becomes one function that stays a function: an *outline*. Repetitions that
differ in static integers (the place of a time step) take these as arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torchshim._core.batching import seen_by
from torchshim._core.integers import generalized, integers, opened
from torchshim._core.stacks import LEAST
from torchshim._core.state import State

# Shorter runs compile quickly as they are; fewer repeats are not worth a function.
_LEAST_EVENTS = 32
_LEAST_REPEATS = 4
_LONGEST_PERIOD = 512
# Element-wise chains: XLA makes one fast kernel of short ones, never ends with long.
_LONG_CHAIN = 512
# Events that have to be alike for two places to be taken for the same.
_WINDOW = 6


# An operand: (True, event, result) in an outline, or (False, number of an argument).
Reference = tuple[Any, ...]


@dataclass(slots=True)
class Outline:
    """Events that stand for all their repetitions."""

    events: list[State]
    # Their calls, with what differs between repetitions as runtime scalars.
    calls: list[Any]
    operands: list[tuple[int, ...]]
    # Slots among those operands that come from outside, in the order of arguments.
    arguments: tuple[int, ...]
    # (event, result) that anything outside of a repetition uses.
    results: list[tuple[int, int]]
    # The jitted function, and (check, event) for those met while it was traced.
    function: Any = None
    checks: list[tuple[Any, int]] = field(default_factory=list)


@dataclass(slots=True)
class Repetition:
    """One repetition: its outline, its events, and its arguments' slots."""

    outline: Outline
    events: list[State]
    arguments: tuple[int, ...]

    @property
    def length(self) -> int:
        """How many events it stands for."""
        return len(self.events)


@dataclass(slots=True)
class Loop:
    """Repetitions one right after the other, and what each argument is to them."""

    outline: Outline
    places: list[Repetition]
    # Arguments: number of the result that is handed on to the next iteration;
    # "same" for all; or "each" iteration's own.
    roles: list[int | str]
    # Pieces of one tensor, all taken at once.
    rows: bool
    # Numbers of the results of which more than the last iteration's is used later.
    kept: list[int]

    @property
    def length(self) -> int:
        """How many events it stands for."""
        return sum(place.length for place in self.places)


def find(
    events: Sequence[State],
    operands: Sequence[tuple[int, ...]],
    outputs: set[int],
) -> dict[int, Repetition | Loop]:
    """Position of the first event -> what begins there, for all that is worth it.

    `events` are calls; `operands` their operands' slots, aliases resolved.
    """
    if len(events) < _LEAST_EVENTS:
        return {}
    last_use = _last_uses(operands, outputs)
    places: dict[int, Repetition | Loop] = {}
    taken: set[int] = set()
    # First what is alike but for integers; of the rest, what is alike in them, too:
    # not all of them can be runtime scalars.
    for calls in [opened(e.call) for e in events], [e.call for e in events]:
        tokens = _tokens(calls, events, taken)
        for group in _groups(tokens, events, operands):
            found = _placed(group, events, operands, last_use)
            places.update(found)
            for first, place in found.items():
                taken.update(range(first, first + place.length))
    return places


# Repetitions of one function: (first event, end, slots of the arguments).
Group = list[tuple[int, int, tuple[int, ...]]]


def _groups(
    tokens: Sequence[int],
    events: Sequence[State],
    operands: Sequence[tuple[int, ...]],
) -> list[Group]:
    groups: dict[Any, Group] = {}
    for start, period, count in _runs(tokens):
        light = not any(_heavy(e.call) for e in events[start : start + period])
        rows = period == 1 and count >= LEAST and _picks(events[start].call)
        least = _LONG_CHAIN if light else _LEAST_EVENTS
        if period * count < least and not rows:
            continue
        for i in range(start, start + period * count, period):
            shape, arguments = _canonical(tokens, events, operands, i, i + period)
            groups.setdefault(shape, []).append((i, i + period, arguments))
    return [group for group in groups.values() if len(group) >= _LEAST_REPEATS]


def _placed(
    group: Group,
    events: Sequence[State],
    operands: Sequence[tuple[int, ...]],
    last_use: dict[int, int],
) -> dict[int, Repetition | Loop]:
    """Loops of repetitions right after one another, and the others each alone."""
    calls = _common_calls(group, events)
    if calls is None:
        return {}
    places: dict[int, Repetition | Loop] = {}
    first, end, arguments = group[0]
    outline = Outline(
        list(events[first:end]),
        calls,
        list(operands[first:end]),
        arguments,
        _used_outside(events, last_use, group),
    )
    length, row = end - first, [group[0]]
    for place in [*group[1:], (-1, -1, ())]:
        if place[0] != row[-1][1]:
            made = [Repetition(outline, list(events[a:b]), c) for a, b, c in row]
            loop = _loop(outline, made, last_use, row[-1][1])
            if loop is not None:
                places[row[0][0]] = loop
            else:
                at = row[0][0]
                places.update((at + length * n, p) for n, p in enumerate(made))
            row = []
        row.append(place)
    return places


def _common_calls(group: Group, events: Sequence[State]) -> list[Any] | None:
    """One call for each event of all repetitions; None where integers are static."""
    calls: list[Any] = []
    first, end, _ = group[0]
    for k in range(end - first):
        event = events[first + k]
        numbers = [integers(events[place[0] + k].call) for place in group]
        mask = [len(set(each)) > 1 for each in zip(*numbers, strict=True)]
        given = tuple((seen_by(event.call, m), m.dtype) for m in event.given)
        call = generalized(event.call, mask, given)
        if call is None:
            return None
        calls.append(call)
    return calls


def _loop(
    outline: Outline, places: list[Repetition], last_use: dict[int, int], end: int
) -> Loop | None:
    """The repetitions as a loop, if there are enough, and each needs of the others
    only what the one before it hands on."""
    if len(places) < LEAST:
        return None
    first = places[0]
    results = [
        {p.events[k].slot + r: n for n, (k, r) in enumerate(outline.results)}
        for p in places
    ]
    inside = {s for p in places for e in p.events for s in range(e.slot, e.n_slots)}
    metas = {
        slot: meta
        for event, slots in zip(outline.events, outline.operands, strict=True)
        for slot, meta in zip(slots, event.given, strict=True)
    }
    roles: list[int | str] = []
    for a, slot in enumerate(first.arguments):
        given = [p.arguments[a] for p in places]
        if all(s == slot for s in given):
            roles.append("same")
            continue
        number = results[0].get(given[1])
        if number is None:
            if not inside.isdisjoint(given):
                return None
            roles.append("each")
            continue
        handed = [made.get(s) for made, s in zip(results, given[1:], strict=False)]
        if any(n != number for n in handed):
            return None
        k, r = outline.results[number]
        before, after = metas[outline.arguments[a]], outline.events[k].metas[r]
        if (before.shape, before.dtype, before.batch) != (
            after.shape,
            after.dtype,
            after.batch,
        ):
            return None
        roles.append(number)
    kept = [
        n
        for n, (k, r) in enumerate(outline.results)
        if n not in roles
        or any(last_use.get(p.events[k].slot + r, -1) >= end for p in places[:-1])
    ]
    picks = len(outline.events) == 1 and _picks(outline.events[0].call)
    rows = picks and set(roles) == {"same"}
    return Loop(outline, places, roles, rows, kept)


def _tokens(
    calls: Sequence[Any], events: Sequence[State], taken: set[int]
) -> list[int]:
    """A number for each event; equal ones compute the same of their operands."""
    numbers: dict[Any, int] = {}
    return [
        -1 - k
        if k in taken
        else numbers.setdefault(
            (
                id(call),
                tuple((tuple(m.shape), m.dtype, m.batch) for m in event.given),
            ),
            len(numbers),
        )
        for k, (call, event) in enumerate(zip(calls, events, strict=True))
    ]


def _runs(tokens: Sequence[int]) -> list[tuple[int, int, int]]:
    """(start, period, repetitions) of periodic parts, none overlapping another."""
    n = len(tokens)
    last: dict[tuple[int, ...], int] = {}
    distance: list[int] = []
    for i in range(n):
        window = tuple(tokens[i : i + _WINDOW])
        distance.append(i - last.get(window, i))
        last[window] = i
    found: list[tuple[int, int, int]] = []
    i = free = 0
    while i < n:
        period = distance[i]
        if not 0 < period <= _LONGEST_PERIOD:
            i += 1
            continue
        j = i
        while j < n and distance[j] == period:
            j += 1
        start = max(i - period, free)
        stop = j
        while stop < n and tokens[stop] == tokens[stop - period]:
            stop += 1
        count = (stop - start) // period
        if count >= _LEAST_REPEATS:
            found.append((start, period, count))
            free = start + count * period
        i = max(j, i + 1)
    return found


def _heavy(call: Any) -> bool:
    """Whether a call is more than element-wise: XLA fuses long chains of those well."""
    while hasattr(call, "inner"):
        call = call.inner
    op = call.op
    return op is not None and op.layout != "preserve" and op.view is None


def _picks(call: Any) -> bool:
    """Whether a call takes a piece of a tensor, at the place that integers tell."""
    return call.op is not None and call.op.view is not None and bool(integers(call))


def _canonical(
    tokens: Sequence[int],
    events: Sequence[State],
    operands: Sequence[tuple[int, ...]],
    start: int,
    stop: int,
) -> tuple[Any, tuple[int, ...]]:
    """What makes two repetitions the same function, and the arguments' slots."""
    made: dict[int, Reference] = {}
    depths: dict[int, int] = {}
    arguments: dict[int, int] = {}
    shape: list[Any] = []
    for k in range(start, stop):
        event = events[k]
        references = tuple(
            made.get(slot) or (False, arguments.setdefault(slot, len(arguments)))
            for slot in operands[k]
        )
        forward = None if event.gradient_of is None else depths.get(event.gradient_of)
        shape.append((tokens[k], references, forward))
        depths[event.depth] = k - start
        for slot in range(event.slot, event.n_slots):
            made[slot] = True, k - start, slot - event.slot
    return tuple(shape), tuple(arguments)


def _last_uses(
    operands: Sequence[tuple[int, ...]], outputs: set[int]
) -> dict[int, int]:
    """Slot -> position of the last event that uses it; for outputs the end."""
    last = {slot: k for k, slots in enumerate(operands) for slot in slots}
    return last | dict.fromkeys(outputs, len(operands))


def _used_outside(
    events: Sequence[State],
    last_use: dict[int, int],
    group: Group,
) -> list[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for start, stop, _ in group:
        for k in range(start, stop):
            for slot in range(events[k].slot, events[k].n_slots):
                if last_use.get(slot, -1) >= stop:
                    found.add((k - start, slot - events[k].slot))
    return sorted(found)
