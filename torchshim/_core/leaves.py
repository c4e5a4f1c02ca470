"""Where a backward walk ends: leaves.

Their gradients are put into `.grad` at the end of the walk. Where Python code that may
look at `.grad` is called, leaves are finished as soon as their gradient is *whole*,
that is, all that can reach them has: PyTorch would have finished them by then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core import jumps
from torchshim._core.graph import Graph, Place, accumulator_at
from torchshim._core.jumps import LEAF, LEAF_AFTER
from torchshim._core.leaf_facts import hook_kinds
from torchshim._core.state import Recording, State
from torchshim._core.storage import accumulate_lock

# What `_derived` provides: the sum of two tensors.
add: list[Any] = []
# In anomaly mode: tells of the node that an error came from.
on_error: list[Callable[[Recording, State], None]] = []
_MOVED_LEAF = "leaf variable has been moved into the graph interior"


def added(before: Any, grad: Any) -> Any:
    """The sum of two gradients, each of which may be sparse."""
    return before._joined(grad) if before._composed else add[0](before, grad)


class Leaves(Graph):
    """The part of a walk that deals with leaves."""

    __slots__ = ()

    create: bool
    accumulate: bool
    called: bool
    grads: dict[Place, Any]
    results: dict[int, Any]
    given: set[int]
    leaf_grads: list[tuple[Any, Place, Any]]
    leaf_places: dict[tuple[int, bool], set[Place]] | None
    leaf_edges: dict[Place, int] | None
    reached: set[Place] | None
    arrived: dict[Place, int]
    ready: list[Place]
    # Whether a leaf is being finished, and that between two events.
    finishing: bool
    between: bool
    # What the Python code belongs to that runs: a value that some node made.
    current: Place | None
    # The error that `on_error` told of.
    told: BaseException | None

    def calling(self, place: Place | None, code: Callable[..., Any], *args: Any) -> Any:
        """Calls Python code; what that changes of its thread ends with it."""
        outer, self.current = self.current, place
        before, running = self.rec.state, self.rec.recording
        modes = self.rec.enter_node()
        try:
            found = code(*args)
        except BaseException as error:
            if place is not None:
                self.tell(error, place[0], self.event(place))
            raise
        finally:
            self.rec.leave_node(modes)
            self.current = outer
        if self.rec.recording is running:
            self.look_for_writes(before)
        return found

    def tell(self, error: BaseException, recording: Recording, event: State) -> None:
        """In anomaly mode, tells of the node that an error came from, once."""
        if on_error and self.told is not error:
            self.told = error
            on_error[0](recording, event)

    def look_for_writes(self, before: State) -> None:
        raise NotImplementedError

    def pass_through(self, recording: Recording, event: State) -> None:
        raise NotImplementedError

    def call_python(
        self,
        code: str,
        recording: Recording,
        event: State,
        wrt: tuple[int, ...],
        grads: Sequence[Any],
    ) -> list[Any]:
        raise NotImplementedError

    def arrive(self, place: Place) -> Any:
        """Counts what reached a leaf: PyTorch finishes it as soon as all has.

        Gives the leaf; None where the place is none of one.
        """
        recording, slot = place
        leaf = recording.entered.get(slot)
        if leaf is None or slot in recording.hists:
            return None
        count = self.arrived[place] = self.arrived.get(place, 0) + 1
        if self.capture is not None:
            self.capture.arrived.append(place)
            self.capture.seen.append((*place, hook_kinds(leaf)))
        if self.leaf_edges is None:
            if hook_kinds(leaf) or not leaf._tmeta.leaf:
                self.count_leaves()
        elif count == self.leaf_edges.get(place):
            self.ready.append(place)
        return leaf

    def catch_up(self) -> None:
        """As `finish_whole`, before a call of Python code that no jump edge repeats."""
        self.capture = None
        self.finish_whole()

    def finish_whole(self) -> None:
        """Finishes the leaves that are whole, since Python code may look at them."""
        self.count_leaves()
        if not self.finishing:
            self.finish_ready()

    def count_leaves(self) -> None:
        """From now on leaves are finished as soon as they are whole."""
        self.called = True
        if self.leaf_edges is None:
            self.find_leaves()
            assert self.leaf_edges is not None
            edges = self.leaf_edges
            self.ready = [p for p, n in self.arrived.items() if n == edges.get(p)]

    def finish_ready(self) -> None:
        self.finishing = True
        try:
            while self.ready:
                place = self.ready.pop(0)
                event = self.event(place)
                if place in self.grads:
                    self.pass_through(place[0], event)
                leaf = place[0].entered[place[1]]
                if self.is_whole(leaf, place):
                    mine, rest = self.split(accumulator_at(leaf, place))
                    if mine:
                        self.leaf_grads = rest
                        self.put(*self.merged(mine)[0])
                        continue
                    if self.capture is not None:
                        self.capture.seen.append((*place, hook_kinds(leaf)))
                    if self.is_wanted(leaf) and hook_kinds(leaf):
                        self.put(leaf, place, None)
        except BaseException:
            self.ready.clear()  # they would have come after the one that raised
            raise
        finally:
            self.finishing = False

    def reach_leaf(self, leaf: Any, place: Place, grad: Any) -> None:
        if self.is_wanted(leaf):
            self.leaf_grads.append((leaf, place, grad))

    def is_wanted(self, leaf: Any) -> bool:
        """Whether the gradient of a leaf is asked for."""
        return id(leaf) in self.captured or (self.accumulate and self.needed is None)

    def split(self, node: tuple[int, bool]) -> tuple[list[Any], list[Any]]:
        """The gradients that one node accumulates, and the others."""
        mine: list[Any] = []
        rest: list[Any] = []
        for leaf, place, grad in self.leaf_grads:
            same = accumulator_at(leaf, place) == node
            (mine if same else rest).append((leaf, place, grad))
        return mine, rest

    def is_whole(self, leaf: Any, place: Place) -> bool:
        """Whether all that can reach a leaf has reached it."""
        if self.leaf_places is None:
            self.find_leaves()
        assert self.leaf_places is not None and self.leaf_edges is not None
        node = accumulator_at(leaf, place)
        edges, places = self.leaf_edges, self.leaf_places.get(node, set())
        return (
            all(self.arrived.get(p) == edges[p] for p in places)
            and self.grads.keys().isdisjoint(places)
            and places.isdisjoint(self.ready)
        )

    def keep_whole(self) -> None:
        """Forgets gradients of leaves that are not complete."""
        self.leaf_grads = [i for i in self.leaf_grads if self.is_whole(i[0], i[1])]

    def find_leaves(self) -> None:
        """Finds where gradients from the roots may reach leaves, on how many ways."""
        self.restrict()
        found: dict[tuple[int, bool], set[Place]] = {}
        edges: dict[Place, int] = {}
        seen: set[Place] = set()
        events: set[tuple[int, int]] = set()
        stack = list(self.roots)
        while stack:
            place = stack.pop()
            if self.needed is not None and place not in self.needed:
                continue
            recording = place[0]
            leaf = recording.entered.get(place[1])
            if leaf is not None and place[1] not in recording.hists:
                edges[place] = edges.get(place, 0) + 1
                found.setdefault(accumulator_at(leaf, place), set()).add(place)
            seen.add(place)
            event = self.event(place)
            if (recording.seq, event.depth) not in events:
                events.add((recording.seq, event.depth))
                stack.extend(self.edges(recording, event))
        self.reached, self.leaf_places, self.leaf_edges = seen, found, edges

    def deliver(self) -> None:
        """Puts what reached leaves where it belongs."""
        found, self.leaf_grads = self.merged(self.leaf_grads), []
        for leaf, place, grad in found:
            self.put(leaf, place, grad)

    @staticmethod
    def merged(
        leaf_grads: Sequence[tuple[Any, Place, Any]],
    ) -> list[tuple[Any, Place, Any]]:
        """The sum of the gradients for each leaf."""
        found: dict[tuple[int, bool], tuple[Any, Place, Any]] = {}
        for leaf, place, grad in leaf_grads:
            node = accumulator_at(leaf, place)
            before = found.get(node)
            total = grad if before is None else added(before[2], grad)
            found[node] = leaf, place, total
        return list(found.values())

    def collect(
        self, recording: Recording, slots: Sequence[int], grads: Sequence[Any]
    ) -> None:
        """Notes gradients that were asked for of values that are not leaves."""
        for slot, grad in zip(slots, grads, strict=True):
            if grad is not None:
                for i in self.targets.get((recording, slot), ()):
                    before = self.results.get(i)
                    self.results[i] = grad if before is None else added(before, grad)

    def put(self, leaf: Any, place: Place, grad: Any) -> None:
        """Puts the gradient of a leaf where it belongs, after its hooks.

        They get None where no gradient has come.
        """
        hooks = leaf._hooks
        if hooks is not None and hooks.backward and (leaf._tmeta.leaf or hooks.place):
            event = self.event(place)
            (grad,) = self.call_python(LEAF, place[0], event, (), [grad])
        self.put_hooked(leaf, place, grad)

    def put_hooked(self, leaf: Any, place: Place, grad: Any) -> None:
        if not leaf._inherits:
            for i in self.captured.get(id(leaf), ()):
                self.results[i] = grad
        if not self.accumulate:
            return
        if leaf._inherits:
            self.capture = None  # only its base's values: nothing is added
            return
        if grad is not None and not leaf._tmeta.leaf:
            raise RuntimeError(_MOVED_LEAF)
        node = leaf._node
        if isinstance(node, weakref.ref) or node is None:
            self.accumulate_at(leaf, place, grad)
        else:
            self.capture = None
            self.calling(place, self.run_node, node, leaf, place, grad)

    def run_node(self, node: Any, leaf: Any, place: Place, grad: Any) -> None:
        """Accumulates a gradient between the hooks of the leaf's node."""
        grad = node.before(grad)
        if grad is not None:
            # A first gradient becomes `.grad` itself, if it is laid out as its leaf is.
            first = leaf._grad is None and not self.create
            fits = grad._tmeta.strides == leaf._tmeta.strides
            self.add_to(leaf, place, grad)
            if first and fits and leaf._grad is not None:
                grad = leaf._grad
        self.run_after(leaf, place)
        node.after(grad)

    def accumulate_at(self, leaf: Any, place: Place, grad: Any) -> None:
        if grad is not None:
            self.add_to(leaf, place, grad)
        self.run_after(leaf, place)

    def run_after(self, leaf: Any, place: Place) -> None:
        """Runs the hooks of a leaf whose `.grad` is up to date."""
        if leaf._hooks is not None and leaf._hooks.post:
            self.call_python(LEAF_AFTER, place[0], self.event(place), (), [])

    def add_to(self, leaf: Any, place: Place, grad: Any) -> None:
        """Adds a gradient to the leaf's `.grad`."""
        if not leaf._tmeta.requires_grad:
            self.capture = None  # not since the graph was made
            return
        with accumulate_lock:
            if self.capture is not None:
                status = jumps.grad_status(self.rec, leaf._grad)
                self.capture.delivered.append((leaf, place, status))
            shared = id(grad) in self.given or self.called
            if leaf._grad is None and not self.create:
                grad = self.own(grad)
            self.rec.delivering = True
            try:
                leaf._accumulate(grad, self.create, shared)
            finally:
                self.rec.delivering = False

    def own(self, grad: Any) -> Any:
        """The gradient as a tensor that nobody else holds, as `.grad` is written to."""
        if id(grad) in self.given or self.called:
            grad = grad._twin() if grad._composed else self.rec.without_history(grad)
        elif not grad._composed and self.rec.recording.duals:
            # PyTorch detaches a gradient that nobody else holds: no tangents.
            grad = self.rec.without_history(grad)
            self.rec.set_tangents(grad._slot, {})
        self.given.add(id(grad))
        return grad
