"""The backward walk: from the roots' events back to the leaves, recording gradients.

Events are visited in the order of PyTorch's engine: the latest recorded first, leaves
as soon as they are reached. Every differentiable event becomes one recorded
`vjp[event]`.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

from torchshim._core import follow
from torchshim._core.batching import without
from torchshim._core.call import Levels, PythonCall, VjpCall
from torchshim._core.gradients import (
    GradientPlan,
    alike,
    brought_to,
    cast,
    plan_of,
    reaching,
)
from torchshim._core.graph import Place, origin
from torchshim._core.handlers import error_expected
from torchshim._core.jumps import (
    FUNCTION,
    HOOKS,
    MOVE,
    NODE_BEFORE,
    Capture,
)
from torchshim._core.late import Late, late
from torchshim._core.leaf_facts import OWN_DTYPE, hook_kinds
from torchshim._core.leaves import added
from torchshim._core.naming import flows_of, last_use
from torchshim._core.op import REGISTRY
from torchshim._core.passages import Making, Passages
from torchshim._core.record import Recorder
from torchshim._core.replay import Replay
from torchshim._core.state import IDENTITY, INPUT, Recording, State, UsedUp
from torchshim._core.storage import TensorBase
from torchshim._core.versions import Overwritten

# What `_functions` provides: a sparse gradient of indices, values and a shape; whether
# indices may be beyond that.
sparse_gradient: list[Callable[[Any, Any, tuple[int, ...], bool], Any]] = []
# In anomaly mode: runs the backward of one event and looks at what it gives.
watcher: list[Callable[..., Any]] = []


class Walking(threading.local):
    """The walks in progress in this thread, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[Walk] = []


walking = Walking()


@dataclass(slots=True, eq=False, weakref_slot=True)
class Walk(Passages, Replay, Late):
    """One backward through the graph.

    One that a jump edge repeats, from one call of Python code to the next, asks for
    none of its late fields.
    """

    rec: Recorder
    retain: bool
    create: bool
    accumulate: bool
    # Levels of `vmap` around the `grad` that this is the backward of.
    outside: Levels = ()
    frozen: State | None = None
    roots: Sequence[Place] = ()
    # What is to be called when the walk is over.
    at_end: list[Callable[[], Any]] | None = None
    current: Place | None = None
    # What becomes a jump edge, if anything does.
    capture: Capture | None = late(NoneType)
    # Whether gradients are asked for, and where they arrive if not at leaves.
    narrow: bool = late(bool)
    targets: dict[Place, list[int]] = late(dict)
    # What arrived at the event whose saved values hooks give back at the moment.
    cotangents: Sequence[Any] = late(tuple)
    # Whether Python code was called.
    called: bool = late(bool)
    captured: dict[int, list[int]] = late(dict)
    since: dict[int, tuple[int, int]] = late(dict)
    grads: dict[Place, Any] = late(dict)
    heap: list[Any] = late(list)
    queued: set[Any] = late(set)
    # (number of a recording, depth of an event) -> when the event's turn is, where
    # threads have looked into one another's recordings.
    ranks: dict[tuple[int, int], int] | None = late(NoneType)
    results: dict[int, Any] = late(dict)
    needed: set[Place] | None = late(NoneType)
    tables: dict[int, dict[int, State]] = late(dict)
    # Events whose saved values are used, and let go of at the end but with `retain`.
    freed: list[tuple[Recording, UsedUp]] = late(list)
    leaf_places: dict[tuple[int, bool], set[Place]] | None = late(NoneType)
    reached: set[Place] | None = late(NoneType)
    # Place of a leaf -> how many edges of the graph end there, how many were gone.
    leaf_edges: dict[Place, int] | None = late(NoneType)
    # Results of gradients' events to which an edge led, along which nothing came.
    nothing: set[Place] = late(set)
    arrived: dict[Place, int] = late(dict)
    ready: list[Place] = late(list)
    finishing: bool = late(bool)
    between: bool = late(bool)
    # Place where the walk left a recording -> the one that it went on in, the one left.
    via: dict[tuple[int, int], tuple[Recording, Recording]] = late(dict)
    # (leaf, its place, the gradient that arrived)
    leaf_grads: list[tuple[Any, Place, Any]] = late(list)
    # Runtime scalars that gradient events took over: to, recording, from, how many.
    copied: list[tuple[int, Recording, int, int]] = late(list)
    # Values of closed recordings: id -> tensor, its recording, its slot there.
    taken: dict[int, tuple[Any, Recording, int]] = late(dict)
    given: set[int] = late(set)
    writes: Overwritten | None = late(NoneType)
    # Calls of which gradients were differentiated.
    derivatives: set[Any] = late(set)
    # Whether there are sparse gradients.
    sparse: bool = late(bool)
    varying: bool = late(bool)
    crossed: int = late(int)
    making: Making | None = late(NoneType)
    told: BaseException | None = late(NoneType)

    # -- running ---------------------------------------------------------------------

    def push(self, place: Place, grad: Any) -> None:
        """Adds a gradient for the value at `place` and queues its event."""
        if self.needed is not None and place not in self.needed:
            return
        event = self.event(place)
        recording = place[0]
        if event.kind == INPUT or event.kind == IDENTITY:
            leaf = self.arrive(place)
            hooks = None if leaf is None else leaf._hooks
            if hooks is not None and hooks.grad_dtype is not OWN_DTYPE:
                self.capture = None  # the path does not tell it
                grad = cast(self.rec, grad, hooks.grad_dtype)
        before = self.grads.get(place)
        self.grads[place] = grad if before is None else added(before, grad)
        self.enqueue(recording, event)

    def push_nothing(self, place: Place) -> None:
        """Queues the event of a value that gets no gradient from an edge to it.

        If it gets none at all, Python code behind it is called all the same.
        """
        if self.needed is not None and place not in self.needed:
            return
        event = self.event(place)
        if event.kind == INPUT or event.kind == IDENTITY:
            self.arrive(place)
        elif event.call.__class__ is VjpCall:
            self.nothing.add(place)
        self.enqueue(place[0], event)

    def enqueue(self, recording: Recording, event: State) -> None:
        key = recording.seq, event.depth
        if key not in self.queued:
            self.queued.add(key)
            heapq.heappush(self.heap, self.entry(recording, event))

    def entry(self, recording: Recording, event: State) -> Any:
        """An event in the heap."""
        order = -recording.seq, -event.depth
        if self.ranks is not None:
            last = len(self.ranks)
            order = self.ranks.get((recording.seq, event.depth), last), 0
        return order, id(event), recording, event

    def interleave(self) -> None:
        """Goes on in an order of the graph: recordings refer to one another."""
        self.capture = None
        if self.ranks is None:
            self.ranks = self.ranked()
            self.heap = [self.entry(*queued[2:]) for queued in self.heap]
            heapq.heapify(self.heap)

    def touch(self, root: Place, grad: Any) -> None:
        """Runs the hooks of a single root: PyTorch's engine does so in any case."""
        recording, slot = origin(*root)
        leaf = recording.entered.get(slot)
        if leaf is not None and self.capture is not None:
            self.capture.seen.append((recording, slot, hook_kinds(leaf)))
        if leaf is not None and leaf._hooks is not None:
            self.catch_up()
            self.calling((recording, slot), leaf._hooks.run, grad)
        elif leaf is None:
            event = self.event((recording, slot))
            self.grads[recording, slot] = grad
            self.take_all(recording, event, False)

    def begin(self, cotangents: Sequence[Any]) -> None:
        """Walks from the roots, event by event."""
        self.restrict()
        if self.needed is not None:
            if len(self.roots) == 1 and self.roots[0] not in self.needed:
                self.touch(self.roots[0], cotangents[0])
        for place, ct in zip(self.roots, cotangents, strict=True):
            self.given.add(id(ct))
            self.push(place, ct)
        self.run()

    def run(self) -> None:
        here = self.rec.recording
        if not all(self.rec.owns(slot) for _, slot in self.roots):
            self.interleave()
        while self.heap or self.ready:
            if self.ready:
                self.between = True
                self.finish_ready()
                self.between = False
                continue
            _, _, recording, event = heapq.heappop(self.heap)
            self.queued.discard((recording.seq, event.depth))
            if recording is not here:
                if self.comes_to(here := recording, bool(watcher)):
                    continue
            try:
                if event.kind in (INPUT, IDENTITY):
                    self.pass_through(recording, event)
                else:
                    self.differentiate(recording, event)
            except BaseException as error:
                self.keep_write(recording, event)
                self.tell(error, recording, event)
                raise

    def take(self, recording: Recording, slots: Sequence[int]) -> dict[int, Any]:
        """The whole gradients of some of an event's results, after their hooks."""
        taken = {slot: self.grads.pop((recording, slot), None) for slot in slots}
        hooked = {s: recording.hooked[s] for s in slots if s in recording.hooked}
        if hooked:
            self.catch_up()
        for slot, hooks in hooked.items():
            place = recording, slot
            taken[slot] = self.calling(place, hooks.replace, taken[slot])
        if hooked:  # a hook may have asked to retain another result's
            for slot in slots:
                if (hooks := recording.hooked.get(slot)) is not None:
                    hooks.retain(taken[slot])
        return taken

    def take_only(self, recording: Recording, event: State) -> list[Any]:
        """The whole gradient of an event's one result, after its hooks."""
        grads = [self.grads.pop((recording, event.slot), None)]
        if event.slot in recording.hooked:
            return self.call_python(HOOKS, recording, event, (), grads)
        return grads

    def take_all(self, recording: Recording, event: State, further: bool) -> list[Any]:
        """What arrived for the results of an event, captured and after the hooks.

        As PyTorch's engine: where the walk goes `further`, what is asked for is the
        gradient before the hooks; hooks of a result without a gradient get None where
        another result has one, all in the order of their registration.
        """
        slots = range(event.slot, event.n_slots)
        if len(slots) == 1 and not self.targets:
            return self.take_only(recording, event)
        if further and self.targets:
            given = [self.grads.get((recording, s)) for s in slots]
            self.collect(recording, slots, given)
        order: Sequence[int] = slots
        if len(slots) > 1 and recording.hooked:
            hooked = [s for s in recording.hooked if s in slots]
            order = [*hooked, *(s for s in slots if s not in hooked)]
        taken = self.take(recording, order)
        grads = [taken[slot] for slot in slots]
        if not further and self.targets:
            self.collect(recording, slots, grads)
        return grads

    def pass_through(self, recording: Recording, event: State) -> None:
        self.pass_on(recording, event, self.take_only(recording, event)[0])

    def pass_on(self, recording: Recording, event: State, grad: Any) -> None:
        edges = self.edges(recording, event)
        if edges:
            if grad is None:
                self.making = None
                self.push_nothing(edges[0])
                return
            made = self.as_made(recording, event, edges[0], grad)
            if made is not grad:
                self.making = None
            elif self.making is not None and edges[0][0] is not recording:
                self.making.left.append((event.slot, grad))
            self.push(edges[0], made)
            return
        leaf = recording.entered.get(event.slot)
        if leaf is not None and grad is not None:
            self.reach_leaf(leaf, (recording, event.slot), grad)

    def as_made(
        self, recording: Recording, event: State, place: Place, grad: Any
    ) -> Any:
        """A gradient in the shape of the value that was made, if it has another by now.

        Its tensor took that in place, which autograd did not see.
        """
        made = self.event(place)
        meta = made.metas[place[1] - made.slot]
        if event.metas[0].shape == meta.shape:
            return grad
        return brought_to(self.rec, grad, meta, *self.last_use(recording, event.slot))

    def last_use(self, recording: Recording, slot: int) -> tuple[str, int]:
        """The node that used a value last, there or in a later recording."""
        found = last_use(recording.state or self.frozen or self.rec.state, slot)
        for (_, at), (to, left) in self.via.items():
            if found is None and to is recording and left.hists[at][1] == slot:
                found = self.last_use(left, at)
        return found or ("", 0)

    def settle(self) -> None:
        """Lets go of what the events visited had saved."""
        if self.retain:
            return
        for owner, depth in self.freed:
            owner.freed.add(depth)
            if owner.state is not None:
                follow.release(owner)
        if self.freed:
            self.rec.mark("freed")

    def differentiate(self, recording: Recording, event: State) -> None:
        self.rec.make_room(event.meta)
        wrt = self.wanted(recording, event)
        grads = self.take_all(recording, event, self.needed is not None and bool(wrt))
        self.go_back(recording, event, wrt, grads)

    def go_back(
        self, recording: Recording, event: State, wrt: tuple[int, ...], grads: list[Any]
    ) -> None:
        """From the gradients of an event's results to those of its operands.

        `backward(inputs=)` runs the nodes of its inputs, though nothing goes on there.
        """
        if not (wrt or self.accumulate):
            return
        hooked = event.depth in recording.node_hooks
        if hooked:
            grads = self.call_python(NODE_BEFORE, recording, event, wrt, grads)
        self.go_through(recording, event, wrt, grads, hooked)

    def go_through(
        self,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        grads: list[Any],
        hooked: bool,
    ) -> None:
        """As `go_back`, after the node's pre-hooks; `hooked`: whether it has any."""
        if watcher:
            self.capture = None
            outs: Sequence[Any] = watcher[0](
                self.backward, recording, event, grads, wrt
            )
        else:
            outs = self.backward(recording, event, grads, wrt)
        # Unpacking what the node saved may have hung hooks on it.
        hooked = hooked or event.depth in recording.node_hooks
        self.go_out(recording, event, wrt, grads, outs, hooked)

    def hand_on(
        self,
        recording: Recording,
        event: State,
        wrt: Sequence[int],
        outs: Sequence[Any],
        grads: Sequence[Any],
    ) -> None:
        gradients: Iterable[tuple[int, Any]] = zip(wrt, outs, strict=True)
        op = event.call.op
        if op is not None and op.edges is not None:
            # Leaves get theirs in the order of the edges of PyTorch's node.
            found = dict(gradients)
            gradients = [(i, found[i]) for i in flows_of(event) if i in found]
        for i, out in gradients:
            if out is not None:
                self.push((recording, event.operands[i]), out)
            elif self.leads_to(recording, event, grads, i):
                self.push_nothing((recording, event.operands[i]))

    def leads_to(
        self, recording: Recording, event: State, grads: Sequence[Any], i: int
    ) -> bool:
        """Whether an operand is behind one of the results that an edge led to."""
        if event.call.__class__ is not VjpCall or len(grads) == 1:
            return True
        there = [
            grad is not None or (recording, event.slot + k) in self.nothing or None
            for k, grad in enumerate(grads)
        ]
        return i in reaching(event, there, event.wrt)

    def backward(
        self, recording: Recording, event: State, grads: list[Any], wrt: Any
    ) -> Sequence[Any]:
        if isinstance(event.call, PythonCall):
            return self.call_python(FUNCTION, recording, event, wrt, grads)
        if not wrt or all(g is None for g in grads):
            self.spend(recording, event, grads, wrt)
            return [None] * len(wrt)
        if event.call.moves:
            return self.call_python(MOVE, recording, event, wrt, grads)
        if event.call.passing:
            return self.passed(recording, event, grads, wrt)
        reached = reaching(event, grads, wrt)
        if reached == wrt:
            return self.vjp(recording, event, grads, wrt)
        outs = self.backward(recording, event, grads, reached)
        found = dict(zip(reached, outs, strict=True))
        return [found.get(i) for i in wrt]

    def passed(
        self, recording: Recording, event: State, grads: list[Any], wrt: Any
    ) -> Sequence[Any]:
        """As `vjp`; some of the gradients are the very one that arrived."""
        (grad,) = grads
        found = dict.fromkeys(
            [i for i in wrt if i in event.call.passing and alike(event.given[i], grad)],
            grad,
        )
        rest = tuple([i for i in wrt if i not in found])
        if not rest and event.call.saved(event.wrt):
            self.vjp(recording, event, grads, wrt)  # checks what is saved and frees it
        elif rest:
            found |= zip(rest, self.vjp(recording, event, grads, rest), strict=True)
        return [found[i] for i in wrt]

    def vjp(
        self, recording: Recording, event: State, grads: list[Any], wrt: Any
    ) -> list[Any]:
        """Records the gradient of one event; returns it for the operands `wrt`."""
        if self.sparse:
            grads = [
                g.to_dense() if g is not None and g._composed else g for g in grads
            ]
        # Within a `vmap` around the level that differentiates, for one example.
        call = without(event.call, self.outside)
        plan = plan_of(event, call, wrt)
        if plan.sparse is not None:
            return self.sparse_vjp(recording, event, grads, plan)
        outdated = self.use(recording, event, plan, grads, plan.from_result)
        checked = call.op is not None and call.op.gradient_checks is not None
        if checked:
            checked = self.is_whole_gradient(call)
        elif call.__class__ is VjpCall:
            self.derivatives.add(call.inner)
            self.check_forward(recording, event, wrt)
        derived = plan.vjp(tuple([g is not None for g in grads]), checked)
        unpacked = self.unpack(recording, event, grads)
        operands = [
            unpacked[i] if i in unpacked else self.operand(recording, event.operands[i])
            for i in plan.needs
        ]
        if (outdated or unpacked) and plan.from_result is not None:
            if not unpacked or self.gives_others(event, unpacked):
                known = recording, event, plan, operands, grads[0], outdated
                found = [self.from_result(*known, unpacked)]
                return self.as_declared(plan, wrt, found) if unpacked else found
        if outdated:
            operands = self.as_used(plan, derived, operands, grads, outdated, unpacked)
            if self.misfits(plan, operands):
                if len(wrt) > 1:
                    return [self.vjp(recording, event, grads, (i,))[0] for i in wrt]
                derived, operands, grads = self.fitted(derived, operands, grads)
        scalars = self.scalars_of(recording, event)
        same = recording is self.rec.recording and call is event.call
        if same and recording.switched:
            same = not any(event.operands[i] in recording.switched for i in plan.needs)
        state = self.rec.event(
            derived,
            [*operands, *(g for g in grads if g is not None)],
            scalars,
            gradient_of=event.depth if same and not unpacked and not outdated else None,
            within=(level := recording.tangent_levels.get(event.depth, 0)),
        )
        if level:
            self.rec.recording.tangent_levels[state.depth] = level
        if self.create and state.gradient_of is None:
            self.rec.recording.forwards[state.depth] = recording, event
        if scalars:
            self.copied.append((state.scalar, recording, event.scalar, len(scalars)))
        self.free(recording, event, plan, grads)
        results = self.rec.results(state)
        for i, result in zip(wrt, results, strict=True):
            meta = event.given[i]
            if meta.device is not result._tmeta.device:  # a number that is on the CPU
                result._tmeta = result._tmeta.replace(device=meta.device)
        if outdated or unpacked:
            results = self.as_declared(plan, wrt, results)
        if checked:
            self.capture = None
            if error_expected():
                self.catch_up()
                self.rec.flush()
                self.rec.raise_failed_checks()
        return results

    def sparse_vjp(
        self, recording: Recording, event: State, grads: list[Any], plan: GradientPlan
    ) -> list[Any]:
        """As `vjp`, where the gradient of the first operand is sparse."""
        assert plan.sparse is not None
        (grad,), call, rec = grads, plan.call, self.rec
        maker, drops = plan.sparse
        outdated = self.use(recording, event, plan, grads, plan.from_result)
        unpacked = self.unpack(recording, event, grads)
        given: list[Any] = [None] * call.n_arrays
        for i in plan.needs:
            slot = event.operands[i]
            if i in unpacked:
                given[i] = unpacked[i]
            else:
                given[i] = self.operand(recording, slot)
                if slot in outdated:
                    given[i] = self.now_used(outdated[slot], given[i], None)
        shape = tuple(event.given[0].shape)
        _, *rest = call.arguments(given, call.placeholders())
        made = rec.call(REGISTRY[maker], (grad, shape, *rest))
        if any(meta.batch for meta in made.metas):
            raise NotImplementedError("sparse gradients are not supported under vmap")
        indices, values = rec.results(made)
        found = [sparse_gradient[0](indices, values, shape, drops)]
        if len(plan.wrt) > 1:
            others = plan_of(event, call, plan.wrt[1:])
            needed = [given[i] for i in others.needs]
            vjp = others.vjp((True,), False)
            found += rec.results(rec.event(vjp, [*needed, grad], []))
        self.free(recording, event, plan, grads)
        self.sparse = True
        return found

    def is_whole_gradient(self, call: Any) -> bool:
        """Whether what arrived for a call's results is all that depends on them.

        Under `torch.func`'s transforms PyTorch checks no gradients. After a gradient
        of the call was differentiated itself, part of the whole flows past the results.
        """
        return not self.rec.levels and call not in self.derivatives

    def operand(self, recording: Recording, slot: int) -> Any:
        """A value of the forward pass as a tensor of the running recording."""
        if self.create and (tensor := self.switched(recording, slot)) is not None:
            return tensor
        if recording is self.rec.recording:
            event = self.event((recording, slot))
            piece = object.__new__(TensorBase)
            piece._slot = slot
            piece._tmeta = event.metas[slot - event.slot]
            piece._array = None
            return piece
        tensor = recording.tensors.get(slot)
        if self.create:
            tensor = None
        if tensor is None:
            event = self.event((recording, slot))
            meta = event.metas[slot - event.slot]
            tensor = recording.entered.get(slot)
            known = recording.versions.get(slot)
            if known is not None and (known.written() or known.outdated()):
                tensor = None  # it holds something else by now
            if tensor is None or not meta.requires_grad or not self.create:
                piece = object.__new__(TensorBase)
                piece._slot = -1
                piece._tmeta = meta
                piece._array = recording.saved[slot]
                piece._tangents = recording.duals.get(slot)
                if meta.requires_grad:
                    if self.create:
                        piece._hist = recording, slot
                        piece._tmeta = meta.replace(leaf=False)
                    else:
                        piece._tmeta = meta.plain
                tensor = piece
            if not self.create:
                recording.tensors[slot] = tensor
        self.taken[id(tensor)] = tensor, recording, slot
        return tensor
