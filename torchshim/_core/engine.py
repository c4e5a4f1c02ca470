"""Backward: a walk from the roots to the leaves, or a look-up of what one recorded.

The whole walk is remembered as a jump edge: the next time it is a look-up and one
assignment a leaf, or, where Python code is called on the way, one such piece from each
call to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core import follow
from torchshim._core.call import Levels
from torchshim._core.graph import Place
from torchshim._core.jumps import Capture, Jump
from torchshim._core.leaf_facts import has_hooks
from torchshim._core.record import Recorder, local
from torchshim._core.state import Recording, State
from torchshim._core.storage import TensorBase
from torchshim._core.threads import in_fresh_thread
from torchshim._core.versions import written_elsewhere
from torchshim._core.walk import Walk, walking, watcher

# What `_tensor` provides: engine code never names an operator twice.
ones_like: list[Callable[[Any], Any]] = []
# How many walks are within one another in one thread, at most.
NESTED = 16


def run_backward(
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool,
    create: bool,
    targets: Sequence[Any] | None,
    accumulate: bool,
    outside: Levels = (),
) -> list[Any]:
    """Walks back from the roots. Returns the gradients of `targets` (None: no path).

    With `accumulate` gradients go to the leaves' `.grad` (all of them, or only those
    among the targets); otherwise nothing is written.
    """
    if len(walking.stack) >= NESTED:
        given = roots, cotangents, retain, create, targets, accumulate, outside
        return in_fresh_thread(lambda: run_backward(*given))
    rec = local.rec
    grad_mode = rec.grad
    try:
        rec.set_grad(create)
        return _run(
            rec, roots, cotangents, retain, create, targets, accumulate, outside
        )
    finally:
        rec.set_grad(grad_mode)


def _run(
    rec: Recorder,
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool,
    create: bool,
    targets: Sequence[Any] | None,
    accumulate: bool,
    outside: Levels,
) -> list[Any]:
    plain = rec.lays_out_grads and not (
        watcher
        or rec.recording.duals
        or rec.recording.moved
        or written_elsewhere(rec.recording)
    )
    places: list[Place] = []
    for root in roots:
        if isinstance(root, TensorBase):
            places.append((rec.recording, rec.slot_of(root)))
        else:
            places.append(root)
            plain = False
    given = tuple([rec.slot_of(c) for c in cotangents])
    asked = None
    if targets is not None:
        # No event of the recording tells of a leaf's hooks, nor of an earlier node.
        plain = plain and all(
            isinstance(t, TensorBase) and not has_hooks(t) and t._node_since is None
            for t in targets
        )
        if plain:
            asked = tuple([rec.slot_of(t) for t in targets])
    if rec.volatile:
        rec._forget_volatile()
    start = rec.state
    kind = retain, accumulate, outside
    key = rec.bits, tuple([p[1] for p in places]), given, kind, asked
    # Under `create_graph` saved-tensor hooks see what gradients need.
    plain = plain and (not create or rec.mode == rec.bits)
    owners = [rec.recording]
    jump = None
    if plain and rec.trace is None:
        held = {} if asked is None else dict(zip(given, cotangents, strict=True))
        jump, results = follow.start(rec, key, owners, held)
        if jump is not None and jump.pause is None:
            return results
    walk = Walk(rec, retain, create, {}, accumulate, outside, start, places)
    if jump is None and plain and rec.trace is None:
        walk.capture = Capture(rec, start)
    if targets is not None:
        walk.aim(targets, asked)
    repeating = None if jump is None else (start, jump, owners)
    return _walk(walk, key, cotangents, len(targets or ()), repeating)


def _walk(
    walk: Walk,
    key: Any,
    cotangents: Sequence[Any],
    n_results: int,
    repeating: tuple[State, Jump, list[Recording]] | None,
) -> list[Any]:
    """Walks, or goes on `repeating` after the first piece; hooks may walk within it."""
    rec = walk.rec
    outer = rec.trace
    modes = rec.enter_node()
    stack = walking.stack
    try:
        rec.trace = []
        stack.append(walk)
        results = _gradients(walk, key, cotangents, repeating, modes)
        if results is None:
            walk.settle()
            walk.deliver()
            results = [walk.results.get(i) for i in range(n_results)]
            walk.remember(key, results)
            if outer is None:
                rec.loops.note_walk(rec.flushes)
        for callback in walk.at_end:
            walk.calling(None, callback)
    finally:
        rec.trace = outer
        rec.leave_node(modes)
        if walk in stack:
            stack.remove(walk)
        if rec.unstored and outer is None:
            rec.store_shared()
    return results


def _gradients(
    walk: Walk,
    key: Any,
    cotangents: Sequence[Any],
    repeating: tuple[State, Jump, list[Recording]] | None,
    modes: tuple[Any, ...],
) -> list[Any] | None:
    """What a repeated walk gave; None if it was walked, and is not settled yet."""
    try:
        if repeating is None:
            walk.begin(cotangents)
            return None
        start, jump, owners = repeating
        results = walk.repeat(jump, owners, cotangents, modes)
        if results is None:
            follow.forget(start, key, jump)
        return results
    except BaseException:
        # What came before the node that raised stays done, as in PyTorch.
        walk.settle()
        walk.catch_up()
        walk.keep_whole()
        walk.deliver()
        raise
