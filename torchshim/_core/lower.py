"""From a recording to a JAX function: only the events that the outputs depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core import checks
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

    __slots__ = ("fn", "inputs", "n_events", "sites")

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
        # Pull-backs wanted of forward events in this program: depth -> operands.
        wanted: dict[int, tuple[int, ...]] = {}
        for event in events:
            if event.of is not None:
                before = wanted.get(event.of, ())
                wanted[event.of] = tuple(sorted({*before, *event.call.wrt}))

        def run(scalars: Any, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
            env: dict[int, Any] = {}
            pulls: dict[int, tuple[tuple[int, ...], Any]] = {}
            found: list[checks.Check] = []
            self.sites.clear()
            given = iter(inputs)
            for event in events:
                if event.kind == INPUT:
                    env[event.slot] = next(given)
                    continue
                operands = [env[s] for s in event.operands]
                if event.kind == IDENTITY:
                    env[event.slot] = operands[0]
                    continue
                if event.kind != CALL:
                    continue
                call = event.call
                values = runtime_scalars(event, scalars)
                if has_checks(event):
                    self._check(event, operands, values, found)
                if event.of is not None and event.of in pulls:
                    assert isinstance(call, VjpCall)
                    wrt, pull = pulls[event.of]
                    grads = dict(zip(wrt, pull(call.cotangents(operands)), strict=True))
                    outs: Sequence[Any] = [grads[i] for i in call.wrt]
                elif event.depth in wanted:
                    wrt = wanted[event.depth]
                    outs, pull = call.linearize(operands, values, wrt)
                    pulls[event.depth] = wrt, pull
                else:
                    outs = call.apply(operands, values)
                for slot, out in zip(
                    range(event.slot, event.n_slots), outs, strict=True
                ):
                    env[slot] = out
            report = checks.pack(found) if found else None
            return [env[s] for s in outputs], report

        return run

    def _check(
        self,
        event: State,
        operands: Sequence[Any],
        values: Sequence[Any],
        found: list[checks.Check],
    ) -> None:
        call = event.call
        for check in call.check(operands, values):
            found.append(check)
            self.sites.append(
                checks.CheckSite(check.error, check.text, call.op.public, event.line)
            )


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
