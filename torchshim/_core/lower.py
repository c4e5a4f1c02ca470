"""From a recording to a JAX function: only the events that the outputs depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

try:
    from jax.experimental.xla_metadata import set_xla_metadata
except ImportError:  # experimental: without it, programs only compile more slowly
    set_xla_metadata = None

from torchshim._core import checks, outline
from torchshim._core.call import ScalarHole, VjpCall
from torchshim._core.state import CALL, IDENTITY, INPUT, State


def reachable(events: Sequence[State], outputs: Sequence[int]) -> list[State]:
    """The events that the output slots depend on, and those that carry checks."""
    wanted = set(outputs)
    kept: list[State] = []
    for event in reversed(events):
        if any(
            slot in wanted for slot in range(event.slot, event.n_slots)
        ) or has_checks(event):
            kept.append(event)
            wanted.update(event.operands)
    kept.reverse()
    return kept


def has_checks(event: State) -> bool:
    op = getattr(event.call, "op", None)
    if op is None or op.checks is None:
        return False
    return not event.metas or event.metas[0].device.type != "meta"


class Lowered:
    """A JAX function of (runtime scalars, inputs) and what to pass to it."""

    __slots__ = ("fn", "inputs", "n_events", "sites", "size")

    def __init__(self, state: State, outputs: Sequence[int]) -> None:
        events = reachable(state.path(), outputs)
        self.n_events = len(events)
        # Positions (in the recording) of the inputs that are used.
        self.inputs = tuple(e.n_inputs - 1 for e in events if e.kind == INPUT)
        self.sites: list[checks.CheckSite] = []
        self.fn = self._function(events, tuple(outputs))

    def _function(
        self, events: list[State], outputs: tuple[int, ...]
    ) -> Callable[..., Any]:
        slots = [e.slot for e in events if e.kind == INPUT]
        same: dict[int, int] = {}
        for event in events:
            if event.kind == IDENTITY:
                source = event.operands[0]
                same[event.slot] = same.get(source, source)
        calls = [e for e in events if e.kind == CALL]
        operands = [tuple(same.get(s, s) for s in e.operands) for e in calls]
        outputs = tuple(same.get(s, s) for s in outputs)
        places = outline.find(calls, operands, set(outputs))
        single = [True] * len(calls)
        for k, place in places.items():
            single[k : k + place.length] = [False] * place.length
        alone = {e.depth for e, s in zip(calls, single, strict=True) if s}
        # Operators that XLA sees, those of an outline once.
        outlines = {id(p.outline): p.outline for p in places.values()}
        self.size = len(alone) + sum(len(o.events) for o in outlines.values())
        wanted = wanted_pulls([e for e in calls if e.depth in alone])

        def run(scalars: Any, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
            found: list[Found] = []
            env = Values(zip(slots, inputs, strict=True))
            evaluation = Evaluation(env, wanted, found)
            k = 0
            while k < len(calls):
                place = places.get(k)
                if place is None:
                    event = calls[k]
                    values = runtime_scalars(event, scalars)
                    evaluation.step(event, operands[k], values)
                    k += 1
                else:
                    if isinstance(place, outline.Loop):
                        run_loop(place, env, scalars, found)
                    else:
                        call_outline(place, env, scalars, found)
                    k += place.length
            self.sites[:] = [
                checks.CheckSite(c.error, c.text, e.call.op.public, e.line)
                for c, e in found
            ]
            report = checks.pack([c for c, _ in found]) if found else None
            return [env[s] for s in outputs], report

        return run


Found = tuple[checks.Check, State]


def wanted_pulls(events: Sequence[State]) -> dict[int, tuple[int, ...]]:
    """Depth of a call -> operands whose gradients are among the events."""
    depths = {event.depth for event in events}
    wanted: dict[int, tuple[int, ...]] = {}
    for event in events:
        if event.of in depths:
            before = wanted.get(event.of, ())
            wanted[event.of] = tuple(sorted({*before, *event.call.wrt}))
    return wanted


class Evaluation:
    """Events computed one after the other, on arrays or tracers."""

    def __init__(
        self,
        env: Values,
        wanted: dict[int, tuple[int, ...]],
        found: list[Found],
    ) -> None:
        self.env = env
        self.wanted = wanted
        self.found = found
        # Pull-backs of calls whose gradient is in the same program.
        self.pulls: dict[int, tuple[tuple[int, ...], Any]] = {}

    def step(self, event: State, slots: Sequence[int], values: Sequence[Any]) -> None:
        operands = [self.env[s] for s in slots]
        call = event.call
        if has_checks(event):
            self.found += [(check, event) for check in call.check(operands, values)]
        if event.of is not None and event.of in self.pulls:
            assert isinstance(call, VjpCall)
            wrt, pull = self.pulls[event.of]
            grads = dict(zip(wrt, pull(call.cotangents(operands)), strict=True))
            outs: Sequence[Any] = [grads[i] for i in call.wrt]
        elif event.depth in self.wanted:
            wrt = self.wanted[event.depth]
            outs, pull = call.linearize(operands, values, wrt)
            self.pulls[event.depth] = wrt, pull
        else:
            outs = call.apply(operands, values)
        self.env.update(zip(range(event.slot, event.n_slots), outs, strict=True))


def call_outline(
    place: outline.Place, env: Values, scalars: Any, found: list[Found]
) -> None:
    """Calls the function of a repeated part, and puts its results into `env`."""
    shared = place.outline
    if shared.function is None:
        shared.function = jax.jit(partial(evaluate_outline, shared))
    arguments = [env[s] for s in place.arguments]
    values = [runtime_scalars(event, scalars) for event in place.events]
    with not_inlined():
        results, reports = shared.function(arguments, values)
    for (k, r), result in zip(shared.results, results, strict=True):
        env[place.events[k].slot + r] = result
    for (check, k), (bad, value) in zip(shared.checks, reports, strict=True):
        found.append((replace(check, bad=bad, value=value), place.events[k]))


class Values(dict[int, Any]):
    """Slot -> value; what a loop made is taken out of its stack when it is used."""

    def __getitem__(self, slot: int) -> Any:
        value = super().__getitem__(slot)
        return value.stack[value.n] if isinstance(value, Turn) else value


@dataclass(slots=True)
class Turn:
    """A result of the n-th turn of a loop."""

    stack: Any
    n: int


def stacked(env: Values, slots: Sequence[int]) -> Any:
    """The values of slots as one array; the stack of another loop, if they are one."""
    values = [env.get(slot) for slot in slots]
    first, second = values[:2]
    if isinstance(first, Turn) and isinstance(second, Turn):
        step = second.n - first.n
        turns = range(first.n, first.n + step * len(slots), step) if step else ()
        if abs(step) == 1 and all(
            isinstance(v, Turn) and v.stack is first.stack and v.n == n
            for v, n in zip(values, turns, strict=True)
        ):
            low, high = min(turns), max(turns) + 1
            part = first.stack[low:high]
            return part if step > 0 else part[::-1]
    return jnp.stack([env[slot] for slot in slots])


def run_loop(loop: outline.Loop, env: Values, scalars: Any, found: list[Found]) -> None:
    """Repetitions as one `lax.scan`; results that are used elsewhere are stacked."""
    shared, places, roles = loop.outline, loop.places, loop.roles
    first = places[0]
    same = {a: env[s] for a, s in enumerate(first.arguments) if roles[a] == "same"}
    handed = {a: role for a, role in enumerate(roles) if isinstance(role, int)}
    own = [a for a, role in enumerate(roles) if role == "each"]
    each = [stacked(env, [p.arguments[a] for p in places]) for a in own]
    turns = [[runtime_scalars(e, scalars) for e in p.events] for p in places]
    values = jax.tree.map(lambda *v: jnp.stack(v), *turns)

    def turn(carried: Any, given: Any) -> tuple[Any, Any]:
        mine = [*same.items()]
        mine += zip(handed, carried, strict=True)
        mine += zip(own, given[0], strict=True)
        arguments = [value for _, value in sorted(mine, key=lambda item: item[0])]
        results, reports = evaluate_outline(shared, arguments, given[1])
        return [results[n] for n in handed.values()], (results, reports)

    start = [env[first.arguments[a]] for a in handed]
    _, (results, reports) = jax.lax.scan(
        turn, start, (each, values), length=len(places)
    )
    for n, place in enumerate(places):
        for (k, r), result in zip(shared.results, results, strict=True):
            env[place.events[k].slot + r] = Turn(result, n)
        for (check, k), (bad, value) in zip(shared.checks, reports, strict=True):
            found.append((replace(check, bad=bad[n], value=value[n]), place.events[k]))


def evaluate_outline(
    shared: outline.Outline, arguments: Sequence[Any], values: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The body of an outline: its results, and what its checks found."""
    env = Values(zip(shared.arguments, arguments, strict=True))
    found: list[Found] = []
    evaluation = Evaluation(env, wanted_pulls(shared.events), found)
    for event, slots, given in zip(shared.events, shared.operands, values, strict=True):
        evaluation.step(event, slots, given)
    number = {event.depth: k for k, event in enumerate(shared.events)}
    shared.checks = [
        (replace(check, bad=None, value=None), number[event.depth])
        for check, event in found
    ]
    results = [env[shared.events[k].slot + r] for k, r in shared.results]
    return results, [(check.bad, check.value) for check, _ in found]


def not_inlined() -> Any:
    """XLA's wish list for a call: to stay one. On the CPU, where it was measured."""
    if set_xla_metadata is None or jax.default_backend() != "cpu":
        return nullcontext()
    return set_xla_metadata(inlineable="false")


def runtime_scalars(event: State, vector: Any) -> list[Any]:
    """The runtime scalars of an event, out of the program's host vector."""
    values: list[Any] = []
    at = event.scalar
    for entry in event.call.template:
        entries = entry if isinstance(entry, tuple) else (entry,)
        for hole in entries:
            if isinstance(hole, ScalarHole):
                value = vector[at]
                values.append(value.astype("int64") if hole.integer else value)
                at += 1
    return values
