"""Nodes that came of one function or module, by what tracing noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchshim.fx.graph import Graph
from torchshim.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes that came of one call."""

    nodes: list[Node]
    # The function, or the class of the module.
    source: Any
    # Where their inputs come from, parameters apart; which of them others use.
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _from_module(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """The innermost module that a node was traced in, where its class is wanted."""
    stack = node.meta.get("nn_module_stack")
    if node.op != "call_function" or not stack:
        return None
    path, own = list(stack.values())[-1]
    for source in wanted:
        if isinstance(source, type) and isinstance(own, type):
            same = issubclass(own, source)
        elif isinstance(source, type):
            same = own == f"{source.__module__}.{source.__qualname__}"
        else:
            same = own == source
        if same:
            return source, path
    return None


def _source(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """What a node came of, and the name of the call."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1]
        return (source, name) if source in wanted else None
    called = node.meta.get("torch_fn")
    if called is not None:
        name, function = called
        source = function.split(".")[1]
        if source in wanted:
            return source, name
    return _from_module(node, wanted)


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    """Nodes with what goes in and out."""
    inputs: dict[Node, None] = {}
    for node in nodes:
        for arg in node.args:
            if isinstance(arg, Node) and arg not in nodes and arg.op != "get_attr":
                inputs[arg] = None
    params = [node for node in nodes if node.op == "get_attr"]
    outputs = [
        node
        for node in nodes
        if node.op != "get_attr" and any(user not in nodes for user in node.users)
    ]
    return SourcePartition(nodes, source, list(inputs), outputs, params)


def get_source_partitions(
    graph: Graph,
    wanted_sources: list[Any],
    filter_fn: Callable[[Node], bool] | None = None,
) -> dict[Any, list[SourcePartition]]:
    """Functions and classes of modules -> for each call of them, its nodes.

    Calls with a node that `filter_fn` does not take are left out.
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        told = _source(node, wanted_sources)
        if told is not None:
            source, name = told
            found.setdefault(source, {}).setdefault(name, []).append(node)
    return {
        source: [
            _partition(nodes, source)
            for nodes in calls.values()
            if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, calls in found.items()
    }


def check_subgraphs_connected(
    subgraph1: SourcePartition, subgraph2: SourcePartition
) -> bool:
    """Whether the second uses what the first gives."""
    return any(user in subgraph2.nodes for n in subgraph1.nodes for user in n.users)
