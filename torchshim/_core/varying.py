"""Whether recordings keep differing in the sizes of what they compute.

Each sentence may have another length, each image another number of boxes. Then a
program would run once, or rarely, and recordings are run in other ways (`stepwise`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice, zip_longest
from typing import Any

from torchshim._core.call import VjpCall
from torchshim._core.state import INPUT, State

# So many variants of one event, or of a recording, mean that more are to come.
_VARIANTS = 3
# Sequences of events of which sizes are remembered.
_SEQUENCES = 1024

# Hash of a sequence of events, but for sizes -> those of the sizes it came in, of which
# no more are kept than it takes.
Sequences = OrderedDict[int, set[int]]


def keeps_varying(rec: Any) -> bool:
    """Whether the running recording is one of many that differ in a shape.

    These part from one another at the same line, or in the same operator.
    """
    state: State = rec.state
    if state.memo is not None and "varying" in state.memo:
        return True
    if rec.diverged is None:
        return False
    parent, made = rec.diverged
    # There may be thousands: no more are looked at than it takes.
    alike = [*islice(_alike(parent, made), _VARIANTS)]
    if _has_gradients(state):
        varies = len(alike) == _VARIANTS and len({*map(_sizes, (made, *alike))}) > 1
    else:
        varies = len(alike) == _VARIANTS or any(_is_next(s, made) for s in alike)
    return varies and state.memoized("varying", lambda: True)  # it comes again in parts


def comes_in_sizes(state: State, known: Sequences) -> bool:
    """Whether a new recording has the events of several others, but for sizes.

    It shows here where two sizes vary: few recordings have the first of them in common,
    and so part from one another at the second.
    """
    events = state.path()
    sequence = hash(tuple([(e.kind, e.line, _operator(e), e.operands) for e in events]))
    sizes = known.pop(sequence, set())
    known[sequence] = sizes
    if len(known) > _SEQUENCES:
        known.popitem(last=False)
    if len(sizes) <= _VARIANTS:
        sizes.add(hash(tuple(map(_sizes, events))))
    return len(sizes) > _VARIANTS


def _has_gradients(state: State) -> bool:
    """Whether a recording has, or can have, a part in a gradient."""
    return state.tracks or any(isinstance(e.call, VjpCall) for e in state.path())


def _sizes(state: State) -> tuple[tuple[int, ...], ...]:
    return tuple([meta.shape for meta in state.metas])


def _is_next(before: State, made: State) -> bool:
    """Whether data are longer by one than in a recording before, as texts may be."""
    if before.meta is None or made.meta is None:
        return False
    pairs = zip_longest(before.meta.shape, made.meta.shape, fillvalue=-1)
    return [now - then for then, now in pairs if now != then] == [1]


def _alike(parent: State, made: State) -> Iterable[State]:
    """Events that recordings had there: of the same line, inputs of other shapes."""
    if made.kind == INPUT:
        meta = made.metas[0]
        return (
            s
            for s in parent.next.values()
            if s.kind == INPUT
            and s.line == made.line
            and s.metas[0].dtype is meta.dtype
            and len(s.metas[0].shape) == len(meta.shape)
            and s.metas[0].shape != meta.shape
        )
    if (op := _operator(made)) is None:
        return ()
    return (
        s
        for s in parent.next.values()
        if _operator(s) is op and s.line == made.line and s.operands == made.operands
    )


def _operator(state: State) -> Any:
    """The operator that was called, or whose gradient it is; None for other events."""
    call = state.call
    while isinstance(call, VjpCall):
        call = call.inner
    return getattr(call, "op", None)
