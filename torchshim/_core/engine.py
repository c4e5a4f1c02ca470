"""Backward: a walk from the roots to the leaves, or a look-up of what one recorded.

The whole walk is remembered as a jump edge: the next time it is one look-up and one
assignment for each leaf. Where Python code is called on the way, the edge is a chain of
pieces, from each call to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core import follow
from torchshim._core.call import Levels
from torchshim._core.graph import Place
from torchshim._core.jumps import FUNCTION, HOOKS, Capture, Jump, Pause
from torchshim._core.leaf_facts import hook_kinds
from torchshim._core.record import Recorder, local
from torchshim._core.state import Recording, State
from torchshim._core.storage import TensorBase
from torchshim._core.threads import in_fresh_thread
from torchshim._core.versions import written_elsewhere
from torchshim._core.walk import Walk, walking, watcher

# What `_tensor` provides: operators are above this layer.
ones_like: list[Callable[[Any], Any]] = []
# How many walks one thread has within one another; further ones take another thread.
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
    # Whether a jump edge can say all of this walk.
    repeatable = rec.lays_out_grads and not (
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
            repeatable = False
    given = tuple([rec.slot_of(c) for c in cotangents])
    asked = None  # the slots of the targets
    if targets is not None:
        # No event of the recording tells of a leaf's hooks, nor of an earlier node.
        repeatable = repeatable and all(
            isinstance(t, TensorBase) and not hook_kinds(t) and t._node_since is None
            for t in targets
        )
        if repeatable:
            asked = tuple([rec.slot_of(t) for t in targets])
    if rec.volatile:
        rec.forget_volatile()
    start = rec.state
    kind = retain, accumulate, outside
    key = rec.bits, tuple([p[1] for p in places]), given, kind, asked
    # Under `create_graph` saved-tensor hooks see what gradients need.
    repeatable = repeatable and (not create or rec.mode == rec.bits)
    owners = [rec.recording]
    jump = None
    if repeatable and rec.trace is None:
        held = {} if asked is None else dict(zip(given, cotangents, strict=True))
        jump, results = follow.start(rec, key, owners, held)
        if jump is not None and jump.pause is None:
            return results
    walk = Walk(rec, retain, create, accumulate, outside, start, places)
    n_results = 0
    if jump is None and repeatable and rec.trace is None:
        walk.capture = Capture(rec, start)
    if targets is not None:
        walk.aim(targets, asked)
        n_results = len(targets)
    if jump is None:
        return _walk(walk, key, cotangents, n_results)
    return _repeat(walk, key, cotangents, n_results, start, jump, owners)


def _walk(walk: Walk, key: Any, cotangents: Sequence[Any], n_results: int) -> list[Any]:
    """Walks event by event; hooks may walk within it."""
    rec, stack = walk.rec, walking.stack
    outer, modes = rec.trace, rec.enter_node()
    try:
        rec.trace = []
        stack.append(walk)
        try:
            walk.begin(cotangents)
        except BaseException:
            _end_early(walk)
            raise
        return _end(walk, key, n_results, outer)
    finally:
        rec.trace = outer
        rec.leave_node(modes)
        if walk in stack:
            stack.remove(walk)
        if rec.unstored and outer is None:
            rec.store_shared()


def _end(walk: Walk, key: Any, n_results: int, outer: Any) -> list[Any]:
    """What is left to do once all events were visited; gives the results."""
    walk.settle()
    walk.deliver()
    results = [walk.results.get(i) for i in range(n_results)]
    walk.remember(key, results)
    if outer is None:
        walk.rec.loops.note_walk(walk.rec.flushes)
    _call_back(walk)
    return results


def _end_early(walk: Walk) -> None:
    """After an error: what came before the node that raised stays done."""
    walk.settle()
    walk.catch_up()
    walk.keep_whole()
    walk.deliver()


def _call_back(walk: Walk) -> None:
    """Calls what was to be called at the end, which may ask for more."""
    for callback in walk.at_end or ():
        walk.calling(None, callback)


def _repeat(
    walk: Walk,
    key: Any,
    cotangents: Sequence[Any],
    n_results: int,
    start: State,
    jump: Jump,
    owners: list[Recording],
) -> list[Any]:
    """As `_walk`, from the first piece of a jump edge on, which was followed already.

    It is one function for its speed: every call of Python code in a backward pays for
    what is called here. Where something is not as it was then, it walks on.
    """
    rec, stack = walk.rec, walking.stack
    outer, bits, before = rec.trace, rec.bits, rec.thread_before
    # The gradients that are somewhere in the walk, by their slots.
    held: dict[Any, Any] = {cotangents[0]._slot: cotangents[0]}
    if len(cotangents) > 1:
        held = {c._slot: c for c in cotangents}
    results: list[Any] | None = []
    piece = jump
    try:
        rec.trace, rec.thread_before = [], None
        stack.append(walk)
        try:
            while (pause := piece.pause) is not None:
                if pause.single is None:
                    held, given = _gradients(rec, pause, held)
                else:
                    slot, meta = pause.single
                    grad = held.get(slot)
                    if grad is None:
                        grad = rec.tensor_on(slot, meta)
                    held, given = {slot: grad}, [grad]
                recording = rec.recording
                owner, event = owners[pause.owner], pause.event
                walk.current = owner, event.slot
                try:
                    # (As `Replay.run_python`; these come by the hundred.)
                    if pause.code is HOOKS:
                        found = [owner.hooked[event.slot].run(given[0])]
                    elif pause.code is FUNCTION:
                        found = owner.python[event.depth]._run_backward(
                            walk, owner, event, given, pause.wrt
                        )
                    else:
                        found = walk.run_python(
                            pause.code, owner, event, pause.wrt, given
                        )
                except BaseException:
                    rec.restore_thread(bits)
                    walk.raised_at(pause, owners, held)
                    raise
                if rec.bits != bits or rec.thread_before is not None:
                    rec.restore_thread(bits)
                after = None
                if rec.recording is not recording:
                    after = walk.held_after_read(pause, owners[0], held, found)
                elif rec.state is pause.after and pause.read is None:
                    after = held
                    if len(found) != 1 or (grad := found[0]) is None:
                        after = _gave(pause, found, held)
                    elif grad._slot == pause.gave:
                        held[pause.gave] = grad
                    elif held.get(pause.gave) is not grad:
                        after = None
                results, piece = None, pause.next
                assert piece is not None
                if after is not None:
                    results = follow.follow(rec, piece, owners, after)
                if results is None or after is None:
                    follow.forget(start, key, jump)
                    walk.go_on_from(pause, owners, held, given, found)
                    break
                held = after
        except BaseException:
            _end_early(walk)
            raise
        if results is None:
            return _end(walk, key, n_results, outer)
        if walk.at_end is not None:
            _call_back(walk)
        return results
    finally:
        rec.trace = outer
        if rec.bits != bits or rec.thread_before is not None:
            rec.restore_thread(bits)
        rec.thread_before = before
        if walk in stack:
            stack.remove(walk)
        if rec.unstored and outer is None:
            rec.store_shared()


def _gradients(
    rec: Recorder, pause: Pause, known: dict[Any, Any]
) -> tuple[dict[Any, Any], list[Any]]:
    """The gradients that are held where Python code is called, and what it gets.

    What nobody holds would be lost where the code reads something.
    """
    held: dict[Any, Any] = {}
    for slot, meta in pause.values:
        if slot not in held:
            value = known.get(slot)
            held[slot] = rec.tensor_on(slot, meta) if value is None else value
    return held, [None if each is None else held[each[0]] for each in pause.given]


def _gave(pause: Pause, found: list[Any], held: dict[Any, Any]) -> Any:
    """The gradients held with those that Python code gave; None: it gave others."""
    for slot, grad in zip(pause.found or (), found, strict=True):
        if grad is None:
            if slot is not None:
                return None
        elif grad._slot == slot:
            held[slot] = grad
        elif held.get(slot) is not grad:
            return None
    return held
