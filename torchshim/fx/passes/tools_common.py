"""What passes ask of nodes, and the order of nodes."""

from __future__ import annotations

import heapq
import operator
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from torchshim._tensor import Tensor
from torchshim.fx._names import torch_module
from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node, _get_qualified_name
from torchshim.nn.modules.module import Module

__all__ = [
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

NodeList = list[Node]
NodeSet = set[Node]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}

# What comes first among what could come next.
_FIRST = tuple(
    getattr(operator, name)
    for name in "add mul sub floordiv truediv mod le lt ge gt eq ne".split()
)


def get_acc_ops_name(k: str | type) -> str:
    """The full name of a class, or a name as it is."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    return f"{torch_module(k.__module__ or '')}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """What a node calls: a method's name, or a function's or module's full one.

    AssertionError for nodes that call nothing.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}"
        )
    if node.op == "call_method":
        return node.target
    if node.op == "call_module":
        found = submodules[node.target]
        return get_acc_ops_name(getattr(found, "_base_class_origin", type(found)))
    if "acc_ops" in (node.target.__module__ or ""):
        return f"acc_ops.{node.target.__name__}"
    return _get_qualified_name(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node gives a tensor, as `ShapeProp` has found."""
    kind = node.meta.get("type", None)
    return kind is not None and issubclass(kind, Tensor)


def _sorted(
    gm: GraphModule, ready: Callable[[], Node | None], add: Callable[[Node], None]
) -> GraphModule:
    """Replaces a module's graph by one in order, as `ready` and `add` choose."""
    missing = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    for node, count in missing.items():
        if count == 0:
            add(node)
    made = Graph()
    known: dict[Node, Node] = {}
    while (node := ready()) is not None:
        known[node] = made.node_copy(node, lambda x: known[x])
        for user in node.users:
            missing[user] -= 1
            if missing[user] == 0:
                add(user)
    if len(known) < len(gm.graph.nodes):
        left = [node for node, count in missing.items() if count]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    made._codegen = gm.graph._codegen
    gm.graph = made
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Puts the nodes of a graph in order: the module. RuntimeError for a cycle.

    Nodes come as soon as their inputs are there, arithmetic first.
    """
    waiting: deque[Node] = deque()

    def add(node: Node) -> None:
        if node.op == "call_function" and node.target in _FIRST:
            waiting.appendleft(node)
        else:
            waiting.append(node)

    return _sorted(gm, lambda: waiting.popleft() if waiting else None, add)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Puts the nodes of a graph in order, and otherwise leaves them where they were.

    RuntimeError for a cycle.
    """
    places = {node: i for i, node in enumerate(gm.graph.nodes)}
    waiting: list[tuple[int, Any]] = []

    def ready() -> Node | None:
        return heapq.heappop(waiting)[1] if waiting else None

    return _sorted(gm, ready, lambda n: heapq.heappush(waiting, (places[n], n)))
