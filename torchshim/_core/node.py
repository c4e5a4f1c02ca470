"""The inspectable graph: what `tensor.grad_fn` shows of a recording."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from torchshim._core.graph import origin
from torchshim._core.naming import flows_of, grad_name, qualified, unseen
from torchshim._core.noted import watch, watch_node
from torchshim._core.op import puts_back
from torchshim._core.record import local
from torchshim._core.state import INPUT, Recording, State
from torchshim._core.storage import views, written_since


class Node:
    """An event of a recording seen as PyTorch's backward node.

    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.Node
    """

    __slots__ = ("__weakref__", "_event", "_recording")

    def __init__(self, recording: Recording, event: State) -> None:
        self._recording = recording
        self._event = event

    @property
    def metadata(self) -> dict[Any, Any]:
        """What anybody noted at the node, for as long as the graph lives."""
        recording, depth = self._recording, self._event.depth
        if recording.metadata is None:
            recording.metadata = {}
        if recording is local.rec.recording:
            watch(local.rec)
        found = recording.metadata.get(depth)
        if found is None:
            found = recording.metadata[depth] = {}
            if depth in recording.traces:
                found["traceback_"] = recording.traces[depth]
        return found

    def _slots(self) -> range:
        return range(self._event.slot, self._event.n_slots)

    def _slot_of(self, number: int) -> int:
        """The slot of one of the node's outputs."""
        return self._event.slot + number

    def _number_of(self, slot: int) -> int:
        """Which of the node's outputs a slot is."""
        return slot - self._event.slot

    def name(self) -> str:
        return qualified(type(self).__name__)

    def _sequence_nr(self) -> int:
        return (self._recording.seq << 32) + self._event.depth

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """One (node, output number) for each operand that gets a gradient."""
        event = self._event
        if writes_back(event):
            return edges_of_write(self._recording, event)
        return tuple(edges_of(self._recording, event))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


class AccumulateGrad(Node):
    """The node at a leaf: adds what arrives to the leaf's `.grad`."""

    __slots__ = ("noted", "post", "pre", "variable")
    __module__ = "builtins"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return ()

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.noted: dict[Any, Any] = {}
        self.pre: dict[int, Any] = {}
        self.post: dict[int, Any] = {}

    @property
    def metadata(self) -> dict[Any, Any]:
        return self.noted

    def before(self, grad: Any) -> Any:
        """What the pre-hooks make of a gradient."""
        for hook in list(self.pre.values()):
            replaced = hook((grad,))
            if replaced is not None:
                grad = replaced[0]
        return grad

    def after(self, grad: Any) -> None:
        for hook in list(self.post.values()):
            hook((), (grad,))

    def _sequence_nr(self) -> int:
        return 2**64 - 1


class _Restrided(Node):
    """The node that a view has anew after a write: that of `as_strided` of its base."""

    __slots__ = ("_of_base",)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return (self._of_base,)


_Restrided.__name__ = _Restrided.__qualname__ = "AsStridedBackward0"
_Restrided.__module__ = "builtins"


def restrided(node: Node, tensor: Any) -> Node:
    """The node that PyTorch makes anew of a view whose memory was written to."""
    found = _Restrided(node._recording, node._event)
    recording, event = node._recording, node._event
    for _ in tensor._path[len(tensor._view_of._path) + 1 :]:
        event = recording.event(event.operands[0], local.rec.state)
    found._of_base = edge_of(recording, event.operands[0])
    return found


def edges_of(recording: Recording, event: State) -> list[tuple[Any, int]]:
    """(node, output number) for each operand of an event that gets a gradient."""
    return [
        edge_of(recording, event.operands[i])
        if i is not None and i in event.wrt
        else (None, 0)
        for i in flows_of(event)
    ]


def writes_back(event: State) -> bool:
    """Whether an event puts what was written through a view back into its base."""
    op = getattr(event.call, "op", None)
    return op is not None and puts_back(op)


def edges_of_write(recording: Recording, event: State) -> tuple[tuple[Any, int], ...]:
    """The edges of `CopySlices`: the base's, and those of the operator that wrote.

    Which has no node of its own, as in PyTorch; nor have steps of a view on the way.
    """
    whole, *others = edges_of(recording, event)
    while writes_back(event):
        owner, slot = origin(recording, event.operands[1])
        if owner is not recording or slot in recording.entered:
            return (whole, *others)
        event = recording.event(slot, local.rec.state)
    op = getattr(event.call, "op", None)
    if op is not None and op.name.endswith("_") and event.wrt:
        others = edges_of(recording, event)[1:]
    return (whole, *others)


def edge_of(recording: Recording, slot: int) -> tuple[Any, int]:
    """The node that made a slot and which of its outputs the slot is."""
    recording, slot = origin(recording, slot)
    leaf = recording.entered.get(slot)
    if leaf is not None:
        return (None if leaf._inherits else accumulator(leaf)), 0
    event = recording.event(slot, local.rec.state)
    if event.kind == INPUT or not event.wrt:  # what was made under `no_grad`, too
        return None, 0
    if unseen(event):
        return edge_of(recording, event.operands[event.wrt[0]])
    node = node_of(recording, event)
    return node, node._number_of(slot)


def node_of(recording: Recording, event: State) -> Node:
    """The one node object of an event."""
    custom = recording.python.get(event.depth)
    if custom is not None:
        return custom._node_for(recording, event)
    if recording.nodes is None:
        recording.nodes = weakref.WeakValueDictionary()
    node = recording.nodes.get(event.depth)
    if node is None:
        name = grad_name(event) or "Backward"
        node = recording.nodes[event.depth] = node_class(name)(recording, event)
        watch_node(local.rec, node)
    return node


_CLASSES: dict[str, type[Node]] = {}


def node_class(name: str) -> type[Node]:
    """A class a name, since programs look at `type(grad_fn).__name__`."""
    found = _CLASSES.get(name)
    if found is None:
        found = _CLASSES[name] = type(
            name, (Node,), {"__slots__": (), "__module__": "builtins"}
        )
    return found


def accumulator(leaf: Any) -> AccumulateGrad:
    """The leaf's node; the leaf holds it only while hooks hang on it."""
    node: Any = leaf._node
    if node.__class__ is weakref.ref:
        node = node()
    if not isinstance(node, AccumulateGrad):
        node = AccumulateGrad(leaf)
        leaf._node = weakref.ref(node)
    return node


class GradientEdge(NamedTuple):
    """An edge of the graph: a node and which of its outputs is meant.

    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.GradientEdge
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def grad_fn(tensor: Any) -> Any:
    """The node whose result a tensor is; None for leaves."""
    meta = tensor._tmeta
    if tensor._view_note is not None:
        local.rec.check_current(tensor)
    if not meta.requires_grad or meta.leaf:
        return None
    tensor._unaware = False
    cached = tensor._node
    rec = local.rec
    slot = tensor._slot
    same = tensor._view_of is None or not written_since(tensor)
    if slot < 0 and tensor._hist is not None and tensor._view_of is None:
        recording, slot = rec.history(*tensor._hist)
    elif cached is not None and slot < 0 and same:
        return cached[1]
    else:
        recording, slot = rec.recording, rec.slot_seen(tensor)
    place = recording.seq, slot
    if cached is not None and cached[0] == place:
        return cached[1]
    node = edge_of(recording, slot)[0]
    if isinstance(node, AccumulateGrad):  # a leaf that hooks unpacked
        return None
    if not same and tensor._path[-1][0].view.strided and not views.replayed:
        node = restrided(node, tensor)
    tensor._node = place, node
    return node
