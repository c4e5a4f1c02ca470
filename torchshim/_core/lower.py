"""From a recording to a JAX function: only the events that the outputs depend on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

try:
    from jax.experimental.xla_metadata import set_xla_metadata
except ImportError:  # experimental: without it, programs only compile more slowly
    set_xla_metadata = None

from torchshim._core import checks, outline
from torchshim._core.avals import evaluated
from torchshim._core.call import VjpCall
from torchshim._core.convolutions import in_fast_layout, in_windows
from torchshim._core.dtypes import dtype as DType
from torchshim._core.meta import Meta
from torchshim._core.placement import place_of, platform
from torchshim._core.stacks import StackItem, Values, on_stack, stacked
from torchshim._core.state import CALL, IDENTITY, INPUT, State
from torchshim._core.template import ScalarHole


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
    call = event.call
    if call is None:
        return False
    op = call.op
    if not (call.checked if op is None else op.is_checked(event.given)):
        return False
    return not event.metas or event.metas[0].device.type != "meta"


def called(call: Any) -> str:
    """The name of a call in errors of checks."""
    if call.op is not None:
        return call.op.public
    return f"the gradient of {call.inner.op.public}"


def elements_of(metas: Sequence[Meta]) -> int:
    return sum(math.prod(meta.array_shape) for meta in metas)


def convolved_by(events: Sequence[State], calls: Sequence[Any]) -> set[DType]:
    """The dtypes in which events, computed as `calls`, have convolutions."""
    pairs = zip(events, calls, strict=True)
    return {m.dtype for event, call in pairs if call.convolves for m in event.metas}


class Lowered:
    """A JAX function of (runtime scalars, inputs) and what to pass to it."""

    __slots__ = (
        "_places",
        "calls",
        "inputs",
        "n_events",
        "operands",
        "outputs",
        "place",
        "sites",
        "slots",
    )

    def __init__(
        self,
        calls: Sequence[State],
        operands: Sequence[tuple[int, ...]],
        inputs: Mapping[int, int],
        outputs: Sequence[int],
        place: Any,
    ) -> None:
        # What is to be computed, of which slots.
        self.calls = calls
        self.operands = operands
        self.outputs = tuple(outputs)
        # The inputs that are used: slot -> position in what the function is given.
        self.inputs = tuple(inputs.values())
        self.slots = tuple(inputs)
        self.n_events = len(calls) + len(inputs)
        # The device that it runs on, unless that is JAX's default one.
        self.place = place
        self.sites: list[checks.CheckSite] = []
        # What is repeated: looked for when it is asked for, as some never are.
        self._places: dict[int, outline.Repetition | outline.Loop] | None = None

    @property
    def rank(self) -> int:
        """The largest number of dimensions."""
        metas = [meta for e in self.calls for meta in (*e.given, *e.metas)]
        return max((len(m.batch) + len(m.shape) for m in metas), default=0)

    @property
    def elements(self) -> int:
        """How much work it is: the elements that operators read or write."""
        return sum(max(elements_of(e.given), elements_of(e.metas)) for e in self.calls)

    @property
    def convolved(self) -> set[DType]:
        """The dtypes of convolutions."""
        return convolved_by(self.calls, [e.call for e in self.calls])

    @property
    def size(self) -> int:
        """How many operators XLA sees; those of an outline count once."""
        places = self._repetitions()
        outlines = {id(p.outline): p.outline for p in places.values()}
        single = len(self.calls) - sum(p.length for p in places.values())
        return single + sum(len(o.events) for o in outlines.values())

    def _repetitions(self) -> dict[int, outline.Repetition | outline.Loop]:
        if self._places is None:
            outputs = set(self.outputs)
            self._places = outline.find(self.calls, self.operands, outputs)
        return self._places

    @classmethod
    def of(cls, state: State, outputs: Sequence[int]) -> Lowered:
        """The recording that ends at `state`; inputs have their positions in it."""
        events = reachable(state.path(), outputs)
        same: dict[int, int] = {}
        for event in events:
            if event.kind == IDENTITY:
                source = event.operands[0]
                same[event.slot] = same.get(source, source)
        calls = [e for e in events if e.kind == CALL]
        return cls(
            calls,
            # Identities are resolved.
            [tuple(same.get(s, s) for s in e.operands) for e in calls],
            {e.slot: e.n_inputs - 1 for e in events if e.kind == INPUT},
            [same.get(s, s) for s in outputs],
            place_of(state.device),
        )

    @property
    def fn(self) -> Callable[..., Any]:
        """The function, made anew."""
        slots, calls, operands = self.slots, self.calls, self.operands
        outputs, places = self.outputs, self._repetitions()
        single = [True] * len(calls)
        for k, place in places.items():
            single[k : k + place.length] = [False] * place.length
        wanted = wanted_pulls([e for e, s in zip(calls, single, strict=True) if s])

        def run(scalars: Any, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
            found: list[Found] = []
            env = Values(zip(slots, inputs, strict=True))
            evaluation = Evaluation(env, wanted, found)
            k = 0
            while k < len(calls):
                place = places.get(k)
                if place is None:
                    event = calls[k]
                    values = runtime_scalars(event, event.call, scalars)
                    evaluation.step(event, event.call, operands[k], values)
                    k += 1
                else:
                    if isinstance(place, outline.Loop):
                        run_loop(place, env, scalars, found)
                    else:
                        call_outline(place, env, scalars, found)
                    k += place.length
            self.sites[:] = [
                checks.CheckSite(c.error, c.text, called(e.call), e.line)
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
        if event.gradient_of in depths:
            before = wanted.get(event.gradient_of, ())
            wanted[event.gradient_of] = tuple(sorted({*before, *event.call.wrt}))
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

    def step(
        self, event: State, call: Any, slots: Sequence[int], values: Sequence[Any]
    ) -> None:
        """Computes an event as `call`: its own, or that of all repetitions."""
        made = range(event.slot, event.n_slots)
        found = on_stack(event, call, self.env, slots)
        if found is not None:
            self.env.update(zip(made, found, strict=True))
            return
        outs: Sequence[Any]
        operands = [self.env[s] for s in slots]
        if has_checks(event):
            self.found += [(check, event) for check in call.check(operands, values)]
        if event.gradient_of is not None and event.gradient_of in self.pulls:
            assert isinstance(call, VjpCall)
            wrt, pull = self.pulls[event.gradient_of]
            grads = dict(zip(wrt, pull(call.cotangents(operands)), strict=True))
            outs = [grads[i] for i in call.wrt]
        elif event.depth in self.wanted:
            wrt = self.wanted[event.depth]
            outs, pull = call.linearize(operands, values, wrt)
            if call.convolves:
                # XLA drops the first results, which nothing uses.
                outs, pull = applied(call, operands, values), in_windows(pull)
            self.pulls[event.depth] = wrt, pull
        else:
            outs = applied(call, operands, values)
        self.env.update(zip(made, outs, strict=True))


def applied(call: Any, operands: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
    """What a call gives, in the form in which it is compiled."""
    if call.convolves:
        return in_windows(call.apply)(operands, values)
    return evaluated(call, operands, values)


def call_outline(
    place: outline.Repetition, env: Values, scalars: Any, found: list[Found]
) -> None:
    """Calls the function of a repeated part, and puts its results into `env`."""
    shared = place.outline
    if shared.function is None:
        shared.function = jax.jit(in_fast_layout(partial(evaluate_outline, shared)))
    arguments = [env[s] for s in place.arguments]
    values = [
        runtime_scalars(event, call, scalars)
        for event, call in zip(place.events, shared.calls, strict=True)
    ]
    with not_inlined():
        results, reports = shared.function(arguments, values)
    for (k, r), result in zip(shared.results, results, strict=True):
        env[place.events[k].slot + r] = result
    for (check, k), (bad, value) in zip(shared.checks, reports, strict=True):
        found.append((replace(check, bad=bad, value=value), place.events[k]))


def run_loop(loop: outline.Loop, env: Values, scalars: Any, found: list[Found]) -> None:
    """Repetitions as one `lax.scan`; results that are used elsewhere are stacked."""
    shared, places, roles = loop.outline, loop.places, loop.roles
    first = places[0]
    same = {a: env[s] for a, s in enumerate(first.arguments) if roles[a] == "same"}
    handed = {a: role for a, role in enumerate(roles) if isinstance(role, int)}
    own = [a for a, role in enumerate(roles) if role == "each"]
    each = [stacked(env, [p.arguments[a] for p in places]) for a in own]
    values = [
        [per_iteration(holes, scalars) for holes in zip(*each_filled, strict=True)]
        for call, *events in zip(shared.calls, *(p.events for p in places), strict=True)
        for each_filled in [[filled(event, call) for event in events]]
    ]

    def body(carried: Any, given: Any) -> tuple[Any, Any]:
        mine = [*same.items()]
        mine += zip(handed, carried, strict=True)
        mine += zip(own, given[0], strict=True)
        arguments = [value for _, value in sorted(mine, key=lambda item: item[0])]
        results, reports = evaluate_outline(shared, arguments, given[1])
        kept = [results[n] for n in loop.kept]
        return [results[n] for n in handed.values()], (kept, reports)

    last: Sequence[Any] = [env[first.arguments[a]] for a in handed]
    if loop.rows:
        kept, reports = jax.vmap(lambda given: body((), given)[1])((each, values))
    else:
        last, (kept, reports) = jax.lax.scan(
            in_fast_layout(body), last, (each, values), length=len(places)
        )
    for n, value in zip(handed.values(), last, strict=True):
        k, r = shared.results[n]
        env[places[-1].events[k].slot + r] = value
    for n, place in enumerate(places):
        for number, stack in zip(loop.kept, kept, strict=True):
            k, r = shared.results[number]
            env[place.events[k].slot + r] = StackItem(stack, n)
        for (check, k), (bad, value) in zip(shared.checks, reports, strict=True):
            found.append((replace(check, bad=bad[n], value=value[n]), place.events[k]))


def evaluate_outline(
    shared: outline.Outline, arguments: Sequence[Any], values: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The body of an outline: its results, and what its checks found."""
    env = Values(zip(shared.arguments, arguments, strict=True))
    found: list[Found] = []
    evaluation = Evaluation(env, wanted_pulls(shared.events), found)
    for event, call, slots, given in zip(
        shared.events, shared.calls, shared.operands, values, strict=True
    ):
        evaluation.step(event, call, slots, given)
    number = {event.depth: k for k, event in enumerate(shared.events)}
    shared.checks = [
        (replace(check, bad=None, value=None), number[event.depth])
        for check, event in found
    ]
    results = [env[shared.events[k].slot + r] for k, r in shared.results]
    return results, [(check.bad, check.value) for check, _ in found]


def not_inlined() -> Any:
    """Asks XLA not to inline a call. On the CPU only, where it was measured."""
    if set_xla_metadata is None or platform() != "cpu":
        return nullcontext()
    return set_xla_metadata(inlineable="false")


@dataclass(frozen=True, slots=True)
class HostScalar:
    """Where a runtime scalar stands in the program's host vector."""

    at: int
    integer: bool

    def read(self, vector: Any) -> Any:
        value = vector[self.at]
        return value.astype("int64") if self.integer else value


def filled(event: State, call: Any) -> list[HostScalar | int]:
    """What fills the holes of `call`, which is the event's, or that of repetitions."""
    found: list[HostScalar | int] = []
    at = event.scalar
    for entry, own in zip(call.template, event.call.template, strict=True):
        pairs = zip(entry, own, strict=True) if isinstance(entry, tuple) else None
        for hole, mine in pairs or [(entry, own)]:
            if isinstance(mine, ScalarHole):
                found.append(HostScalar(at, mine.integer))
                at += 1
            elif isinstance(hole, ScalarHole):
                found.append(mine.value)
    return found


def runtime_scalars(event: State, call: Any, vector: Any) -> list[Any]:
    """The runtime scalars of an event, out of the program's host vector."""
    return read(filled(event, call), vector)


def read(values: Sequence[HostScalar | int], vector: Any) -> list[Any]:
    """What fills holes, out of the program's host vector."""
    return [
        value.read(vector) if isinstance(value, HostScalar) else np.int64(value)
        for value in values
    ]


def per_iteration(values: Sequence[HostScalar | int], vector: Any) -> Any:
    """One runtime scalar for each iteration of a loop, as an array."""
    known = np.array([isinstance(value, int) for value in values])
    constants = np.array([v if isinstance(v, int) else 0 for v in values])
    if known.all():
        return constants
    places = [0 if isinstance(v, int) else v.at for v in values]
    found = vector[np.array(places)]
    if known.any() or any(not isinstance(v, int) and v.integer for v in values):
        found = found.astype("int64")
    return jnp.where(known, constants, found) if known.any() else found
