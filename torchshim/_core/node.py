"""The inspectable graph: what `tensor.grad_fn` shows of a recording."""

from __future__ import annotations

from typing import Any

from torchshim._core.engine import grad_name
from torchshim._core.record import local
from torchshim._core.state import IDENTITY, INPUT, Recording, State


class Node:
    """An event of a recording seen as PyTorch's backward node.

    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.Node
    """

    __slots__ = ("__dict__", "__weakref__", "_event", "_recording", "metadata")

    def __init__(self, recording: Recording, event: State) -> None:
        self._recording = recording
        self._event = event
        self.metadata: dict[Any, Any] = {}

    def slots(self) -> range:
        return range(self._event.slot, self._event.n_slots)

    def name(self) -> str:
        return grad_name(self._event) or "Backward"

    def _sequence_nr(self) -> int:
        return (self._recording.seq << 32) + self._event.depth

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """One (node, output number) for each operand that gets a gradient."""
        event = self._event
        found: list[tuple[Any, int]] = []
        for i, slot in enumerate(event.operands):
            if i in event.wrt:
                found.append(edge_of(self._recording, slot))
            elif event.call.differentiable(i):
                found.append((None, 0))
        return tuple(found)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"


class AccumulateGrad:
    """The node at a leaf: adds what arrives to the leaf's `.grad`."""

    __slots__ = ("__weakref__", "metadata", "variable")

    next_functions: tuple[tuple[Any, int], ...] = ()

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.metadata: dict[Any, Any] = {}

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {hex(id(self))}>"


def edge_of(recording: Recording, slot: int) -> tuple[Any, int]:
    """The node that made a slot and which of its outputs the slot is."""
    while True:
        hist = recording.hists.get(slot)
        if hist is not None:
            recording, slot = hist
            continue
        leaf = recording.entered.get(slot)
        if leaf is not None:
            return accumulator(leaf), 0
        event = producer(recording, slot)
        if event.kind != IDENTITY:
            break
        slot = event.operands[0]
    if event.kind == INPUT:
        return None, 0
    return node_of(recording, event), slot - event.slot


def producer(recording: Recording, slot: int) -> State:
    state = recording.state or local.rec.state
    return recording.events(state)[slot]


def node_of(recording: Recording, event: State) -> Node:
    """The one node object of an event."""
    node = recording.nodes.get(event.depth)
    if node is None:
        name = grad_name(event) or "Backward"
        node = recording.nodes[event.depth] = node_class(name)(recording, event)
    return node


_CLASSES: dict[str, type[Node]] = {}


def node_class(name: str) -> type[Node]:
    """A class a name, since programs look at `type(grad_fn).__name__`."""
    found = _CLASSES.get(name)
    if found is None:
        found = _CLASSES[name] = type(name, (Node,), {"__slots__": ()})
    return found


def accumulator(leaf: Any) -> AccumulateGrad:
    node = leaf._node
    if not isinstance(node, AccumulateGrad):
        node = leaf._node = AccumulateGrad(leaf)
    return node


def grad_fn(tensor: Any) -> Any:
    """The node whose result a tensor is; None for leaves."""
    meta = tensor._meta
    if not meta.requires_grad or meta.leaf:
        return None
    cached = tensor._node
    rec = local.rec
    slot = tensor._slot
    if slot < 0 and tensor._hist is not None and tensor._base is None:
        recording, slot = tensor._hist
    else:
        if cached is not None and slot < 0:
            return cached[1]
        recording, slot = rec.recording, rec.slot_of(tensor)
    place = recording.seq, slot
    if cached is not None and cached[0] == place:
        return cached[1]
    node = edge_of(recording, slot)[0]
    tensor._node = place, node
    return node
