"""The backward walk: from the roots' events back to the leaves, recording gradients.

Events are visited in the order of PyTorch's engine: the latest recorded first, leaves
as soon as they are reached. Every differentiable event becomes one recorded
`vjp[event]`. Where no Python code ran on the way, the whole walk is remembered as one
jump edge: the next time it is a look-up and one assignment a leaf.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchshim._core import jumps
from torchshim._core.op import Call, PythonCall
from torchshim._core.record import Overwritten, Recorder, local, vjp_call
from torchshim._core.state import IDENTITY, INPUT, Recording, State
from torchshim._core.storage import Storage, TensorBase

# What `_tensor` provides: engine code never names an operator twice.
ones_like: list[Callable[[Any], Any]] = []
add: list[Callable[[Any, Any], Any]] = []

Place = tuple[Recording, int]


SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed). Saved intermediate values of the "
    "graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if "
    "you need to access saved tensors after calling backward."
)


@dataclass(slots=True)
class Walk:
    """One backward through the graph."""

    rec: Recorder
    retain: bool
    create: bool
    targets: dict[Place, list[int]]
    accumulate: bool
    grads: dict[Place, Any] = field(default_factory=dict)
    heap: list[Any] = field(default_factory=list)
    queued: set[Any] = field(default_factory=set)
    results: dict[int, Any] = field(default_factory=dict)
    needed: set[Place] | None = None
    tables: dict[int, dict[int, State]] = field(default_factory=dict)
    freed: list[tuple[Recording, int]] = field(default_factory=list)
    pure: bool = True
    # Closed recording -> how it was come by: itself, the other one, the slot there.
    via: dict[int, tuple[Recording, Recording, int]] = field(default_factory=dict)
    # (leaf, its place, the gradient that arrived)
    leaf_grads: list[tuple[Any, Place, Any]] = field(default_factory=list)
    # Runtime scalars that gradient events took over: to, recording, from, how many.
    copied: list[tuple[int, Recording, int, int]] = field(default_factory=list)
    given: set[int] = field(default_factory=set)
    captured: dict[int, list[int]] = field(default_factory=dict)
    frozen: State | None = None

    # -- the graph -----------------------------------------------------------------

    def event(self, place: Place) -> State:
        recording, slot = place
        table = self.tables.get(recording.seq)
        if table is None:
            state = recording.state or self.frozen or self.rec.state
            table = self.tables[recording.seq] = recording.events(state)
        return table[slot]

    def push(self, place: Place, grad: Any) -> None:
        """Adds a gradient for the value at `place` and queues its event."""
        if self.needed is not None and place not in self.needed:
            return
        before = self.grads.get(place)
        self.grads[place] = grad if before is None else add[0](before, grad)
        event = self.event(place)
        recording = place[0]
        key = recording.seq, event.depth
        if key not in self.queued:
            self.queued.add(key)
            leaf = event.kind != INPUT and event.kind != IDENTITY
            order = (-recording.seq, -event.depth, leaf)
            heapq.heappush(self.heap, (order, id(event), recording, event))

    def edges(self, recording: Recording, event: State) -> list[Place]:
        """Where the gradients of an event's operands flow to."""
        if event.kind in (INPUT, IDENTITY):
            hist = recording.hists.get(event.slot)
            if hist is not None:
                if hist[0].seq not in self.via:
                    self.via[hist[0].seq] = hist[0], recording, event.slot
                return [hist]
            if event.slot in recording.entered:
                return []
            return [(recording, event.operands[0])] if event.operands else []
        return [(recording, event.operands[i]) for i in event.wrt]

    def restrict(self, roots: Sequence[Place]) -> None:
        """Finds the values on a way from the roots to a target."""
        reaches: dict[Place, bool] = {}
        stack = list(roots)
        while stack:
            place = stack[-1]
            if place in reaches:
                stack.pop()
                continue
            below = self.edges(place[0], self.event(place))
            waiting = [p for p in below if p not in reaches]
            if waiting:
                stack.extend(waiting)
                continue
            reaches[place] = self.is_target(place) or any(reaches[p] for p in below)
            stack.pop()
        self.needed = {p for p, reached in reaches.items() if reached}

    def is_target(self, place: Place) -> bool:
        if place in self.targets:
            return True
        tensor = place[0].entered.get(place[1])
        return (
            tensor is not None
            and place not in place[0].hists
            and id(tensor) in self.captured
            and place[1] not in place[0].hists
        )

    # -- running ---------------------------------------------------------------------

    def run(self) -> None:
        while self.heap:
            _, _, recording, event = heapq.heappop(self.heap)
            self.queued.discard((recording.seq, event.depth))
            if event.kind in (INPUT, IDENTITY):
                self.pass_through(recording, event)
            else:
                self.differentiate(recording, event)

    def take(self, place: Place, event: State) -> Any:
        """The whole gradient of one value, after its hooks."""
        grad = self.grads.pop(place, None)
        if grad is None:
            return None
        tensor = place[0].hooked.get(place[1])
        if tensor is not None:
            self.pure = False
            grad = tensor._run_hooks(grad, leaf=False)
        wanted = self.targets.get(place)
        if wanted is not None:
            for i in wanted:
                self.results[i] = grad
        return grad

    def pass_through(self, recording: Recording, event: State) -> None:
        place = recording, event.slot
        grad = self.take(place, event)
        if grad is None:
            return
        edges = self.edges(recording, event)
        if edges:
            self.push(edges[0], grad)
            return
        leaf = recording.entered.get(event.slot)
        if leaf is not None:
            self.reach_leaf(leaf, place, grad)

    def reach_leaf(self, leaf: Any, place: Place, grad: Any) -> None:
        wanted = self.captured.get(id(leaf))
        if wanted is not None:
            for i in wanted:
                before = self.results.get(i)
                self.results[i] = grad if before is None else add[0](before, grad)
        if self.accumulate and (wanted is None or not self.captured):
            self.leaf_grads.append((leaf, place, grad))

    def merge(self) -> None:
        """One gradient a leaf; none of them a tensor that the caller gave."""
        merged: dict[int, tuple[Any, Place, Any]] = {}
        for leaf, place, grad in self.leaf_grads:
            before = merged.get(id(leaf))
            total = grad if before is None else add[0](before[2], grad)
            if id(total) in self.given:
                total = self.rec.renamed(total)
            merged[id(leaf)] = leaf, place, total
        self.leaf_grads = list(merged.values())
        if any(leaf._hooks is not None for leaf, _, _ in self.leaf_grads):
            self.pure = False
            self.leaf_grads = [
                (leaf, place, leaf._run_hooks(grad, leaf=True))
                for leaf, place, grad in self.leaf_grads
            ]

    def differentiate(self, recording: Recording, event: State) -> None:
        self.rec.make_room()
        grads = [
            self.take((recording, slot), event)
            for slot in range(event.slot, event.n_slots)
        ]
        if all(g is None for g in grads):
            return
        wrt = event.wrt
        if self.needed is not None:
            wrt = tuple(
                i for i in wrt if (recording, event.operands[i]) in self.needed
            )
        hooks = recording.node_hooks.get(event.depth)
        if hooks is not None:
            self.pure = False
            for hook in list(hooks[0].values()):
                replaced = hook(tuple(grads))
                if replaced is not None:
                    grads = list(replaced)
        if not wrt:
            return
        if isinstance(event.call, PythonCall):
            self.pure = False
            outs = recording.python[event.depth].run(self, event, grads, wrt)
        else:
            outs = self.vjp(recording, event, grads, wrt)
        if hooks is not None:
            outs = self.post_hooks(event, hooks[1], outs, wrt, grads)
        for i, out in zip(wrt, outs, strict=True):
            if out is not None:
                self.push((recording, event.operands[i]), out)

    @staticmethod
    def post_hooks(
        event: State, hooks: Any, outs: Sequence[Any], wrt: Sequence[int], grads: Any
    ) -> list[Any]:
        flows = [i for i in range(len(event.operands)) if event.call.differentiable(i)]
        given = dict(zip(wrt, outs, strict=True))
        inputs = tuple(given.get(i) for i in flows)
        for hook in list(hooks.values()):
            replaced = hook(inputs, tuple(grads))
            if replaced is not None:
                inputs = tuple(replaced)
        found = dict(zip(flows, inputs, strict=True))
        return [found[i] for i in wrt]

    def vjp(
        self, recording: Recording, event: State, grads: list[Any], wrt: Any
    ) -> list[Any]:
        """Records the gradient of one event; returns it for the operands `wrt`."""
        call = event.call
        needs = call.needs(wrt)
        saves = bool(call.saved(event.wrt))
        if event.depth in recording.freed and saves:
            raise RuntimeError(SECOND_BACKWARD)
        self.check_versions(recording, event, call, wrt)
        metas = [self.meta((recording, s)) for s in event.operands]
        cts = tuple(g is not None for g in grads)
        derived = vjp_call(call, wrt, cts, metas, needs)
        operands = [self.operand(recording, event.operands[i]) for i in needs]
        scalars = self.scalars_of(recording, event)
        current = recording is self.rec.recording
        state = self.rec.event(
            derived,
            [*operands, *(g for g in grads if g is not None)],
            scalars,
            of=event.depth if current else None,
        )
        if scalars:
            self.copied.append((state.scalar, recording, event.scalar, len(scalars)))
        if not self.retain and saves:
            self.freed.append((recording, event.depth))
        return self.rec.results(state)

    def meta(self, place: Place) -> Any:
        event = self.event(place)
        return event.metas[place[1] - event.slot]

    def scalars_of(self, recording: Recording, event: State) -> list[float]:
        if event.n_scalars == event.scalar:
            return []
        if recording is self.rec.recording:
            return self.rec.scalars[event.scalar : event.n_scalars]
        return recording.scalars[event.scalar : event.n_scalars]

    def operand(self, recording: Recording, slot: int) -> Any:
        """A value of the forward pass as a tensor of the running recording."""
        if recording is self.rec.recording:
            event = self.event((recording, slot))
            piece = object.__new__(TensorBase)
            piece._slot = slot
            piece._meta = event.metas[slot - event.slot]
            piece._array = None
            return piece
        tensor = recording.tensors.get(slot)
        if tensor is None:
            event = self.event((recording, slot))
            meta = event.metas[slot - event.slot]
            tensor = recording.entered.get(slot)
            if tensor is None or not meta.requires_grad or not self.create:
                piece = object.__new__(TensorBase)
                piece._slot = -1
                piece._meta = meta
                piece._array = recording.saved[slot]
                if meta.requires_grad:
                    if self.create:
                        piece._hist = recording, slot
                        piece._meta = meta.replace(leaf=False)
                    else:
                        piece._meta = meta.replace(requires_grad=False, leaf=True)
                tensor = piece
            recording.tensors[slot] = tensor
        return tensor

    def check_versions(
        self, recording: Recording, event: State, call: Any, wrt: Sequence[int]
    ) -> None:
        """Raises if a value that this gradient needs was overwritten in place."""
        slots = saved_operands(event, call, wrt)
        for slot in slots:
            count = 0
            if recording.state is None:
                count = self.overwritten().count(slot)
            elif slot in recording.versions:
                holder, version = recording.versions[slot]
                if holder is None:
                    count = version
                else:
                    alive = holder()
                    if alive is not None:
                        now = (
                            alive.version
                            if isinstance(alive, Storage)
                            else alive._versions
                        )
                        count = now - version
            if count:
                self.raise_modified(recording, event, slot, count)

    def overwritten(self) -> Overwritten:
        return Overwritten(self.frozen or self.rec.state)

    def raise_modified(
        self, recording: Recording, event: State, slot: int, count: int
    ) -> None:
        """PyTorch's error for a saved value that was overwritten."""
        source = self.event((recording, slot))
        meta = source.metas[slot - source.slot]
        kind = f"torch.{meta.dtype.scalar_name}Tensor"
        made_by = ""
        name = self.name_now(recording, event, slot)
        if meta.requires_grad and name is not None:
            name = re.sub(r"Backward\d*$", "", name)
            made_by = f", which is output {slot - source.slot} of {name},"
        version = count + self.version_at(recording, slot)
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified "
            f"by an inplace operation: [{kind} {list(meta.shape)}]{made_by} is at "
            f"version {version}; expected version {version - count} instead. Hint: "
            "enable anomaly detection to find the operation that failed to compute "
            "its gradient, with torch.autograd.set_detect_anomaly(True, "
            "check_nan=False)."
        )

    def name_now(self, recording: Recording, event: State, slot: int) -> str | None:
        """The node of the tensor that was saved, as it is by now."""
        source = self.event((recording, slot))
        if event.slot <= slot < event.n_slots:
            return grad_name(source)
        if source.view:
            return "AsStridedBackward0"
        if recording.state is None:
            last = self.overwritten().last(slot)
            if last != slot:
                return grad_name(self.event((recording, last)))
        elif slot in recording.versions:
            holder = recording.versions[slot][0]
            alive = holder() if holder is not None else None
            node = getattr(alive, "grad_fn", None)
            if node is not None:
                return node.name()
        return grad_name(source)

    def version_at(self, recording: Recording, slot: int) -> int:
        """The version number of a value's memory when it was saved."""
        for tensor in (recording.entered.get(slot),):
            if tensor is not None:
                now = (
                    tensor._storage.version if tensor._storage else tensor._versions
                )
                return max(now - self.overwritten().count(slot), 0)
        source = self.event((recording, slot))
        if source.write is not None:
            return 1 + self.version_at(recording, source.write)
        return 0


def saved_operands(event: State, call: Any, wrt: Sequence[int]) -> list[int]:
    """Slots of the values that PyTorch saves for an event's backward."""
    if not isinstance(call, Call):
        return []
    slots = []
    for name in call.saved(wrt):
        if name == "result":
            slots += list(range(event.slot, event.n_slots))
        else:
            slots += [
                s
                for s, owner in zip(event.operands, call.owners, strict=True)
                if owner == name
            ]
    return slots


def grad_name(event: State) -> str | None:
    """PyTorch's name of the node that made an event's results."""
    if event.kind == IDENTITY:
        return None
    call = event.call
    if call is None:
        return None
    if not isinstance(call, Call):
        return call.grad_name or "Backward0"
    if call.grad_name is None:
        named = call.op.grad_fn
        if callable(named):
            call.grad_name = named(*call.arguments(["tensor"] * call.n_arrays, [0] * 16))
        elif named is None:
            base = "".join(p.capitalize() for p in call.op.public.split("_"))
            call.grad_name = f"{base}Backward0"
        else:
            call.grad_name = named
    return call.grad_name


def place_of(rec: Recorder, tensor: Any) -> Place:
    """Where the gradient of a tensor arrives."""
    return rec.recording, rec.slot_of(tensor)


def run_backward(
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool,
    create: bool,
    targets: Sequence[Any] | None,
    accumulate: bool,
) -> list[Any]:
    """Walks back from the roots. Returns the gradients of `targets` (None: no path).

    With `accumulate` gradients go to the leaves' `.grad` (all of them, or only those
    among the targets); otherwise nothing is written.
    """
    rec = local.rec
    grad_mode, rec.grad = rec.grad, create
    rec.set_mode()
    try:
        return _run(rec, roots, cotangents, retain, create, targets, accumulate)
    finally:
        rec.grad = grad_mode
        rec.set_mode()


def _run(
    rec: Recorder,
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool,
    create: bool,
    targets: Sequence[Any] | None,
    accumulate: bool,
) -> list[Any]:
    root_slots = tuple([rec.slot_of(r) for r in roots])
    given = tuple([rec.slot_of(c) for c in cotangents])
    asked = None if targets is None else tuple([rec.slot_of(t) for t in targets])
    start = rec.state
    key = rec.mode, root_slots, given, retain, accumulate, asked
    if start.jumps is not None and rec.trace is None:
        jump = start.jumps.get(key)
        if jump is not None:
            results = jumps.follow(rec, jump)
            if results is not None:
                return results
    walk = Walk(rec, retain, create, {}, accumulate)
    walk.frozen = start
    recording = rec.recording
    places = [(recording, slot) for slot in root_slots]
    if targets is not None and asked is not None:
        for i, (target, slot) in enumerate(zip(targets, asked, strict=True)):
            if target._meta.leaf:
                walk.captured.setdefault(id(target), []).append(i)
            else:
                walk.targets.setdefault((recording, slot), []).append(i)
        walk.restrict(places)
    outer, rec.trace = rec.trace, []
    try:
        for place, ct in zip(places, cotangents, strict=True):
            walk.given.add(id(ct))
            walk.push(place, ct)
        walk.run()
        for owner, depth in walk.freed:
            owner.freed.add(depth)
            if owner.state is not None:
                jumps.release(owner)
        if walk.freed:
            rec.mark("freed")
        walk.merge()
        before = [jumps.grad_status(rec, leaf) for leaf, _, _ in walk.leaf_grads]
        for leaf, _, grad in walk.leaf_grads:
            leaf._accumulate(grad, create)
        trace = rec.trace
    finally:
        rec.trace = outer
    results = [walk.results.get(i) for i in range(len(targets or ()))]
    if walk.pure and not create and outer is None and rec.recording is recording:
        jumps.remember(rec, start, key, walk, trace, before, results)
    return results
