"""Nodes that are made one step: a module's call."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Collection

from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node
from torchshim.fx.proxy import Proxy


def topo_sort(nodes: list[Node]) -> list[Node]:
    """Nodes in order, and otherwise as they were; AssertionError for a cycle."""
    places = {node: i for i, node in enumerate(nodes)}
    missing = {
        node: sum(each in places for each in node.all_input_nodes) for node in nodes
    }
    waiting = [places[node] for node in nodes if not missing[node]]
    found: list[Node] = []
    while waiting:
        node = nodes[heapq.heappop(waiting)]
        found.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if missing[user] == 0:
                    heapq.heappush(waiting, places[user])
    if len(found) != len(nodes):
        raise AssertionError(
            "topological sorted nodes doesn't have same length as input nodes"
        )
    return found


def validate_partition(partition: list[Node]) -> bool:
    """Whether nodes can be one step: no way leads out of them and back."""
    own = set(partition)
    waiting = [user for node in own for user in node.users if user not in own]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in own:
            return False
        if node not in seen:
            seen.add(node)
            waiting.extend(node.users)
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: Collection[Node] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module of some nodes, which are in order; what they take, and what is used.

    AssertionError for nodes that are not the module's, or cannot be one step.
    """
    from torchshim.fx.passes.utils.common import lift_subgraph_as_module

    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(
                f"{node} doesn't belong to passed in graph module {gm._get_name()}"
            )
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inner = nodes if partition_lookup_table is None else partition_lookup_table
    own = set(inner)
    made = Graph()
    inputs: dict[Node, Node] = {}
    known: dict[Node, Node] = {}

    def remap(x: Node) -> Node:
        if x in own:
            return known[x]
        if x not in inputs:
            inputs[x] = made.placeholder(x.name, type_expr=x.type)
            inputs[x].meta = copy.copy(x.meta)
        return inputs[x]

    for node in nodes:
        known[node] = made.node_copy(node, remap)
    used = [node for node in nodes if any(user not in own for user in node.users)]
    results = tuple(known[node] for node in used)
    single = len(results) == 1 and not always_return_tuple
    made.output(results[0] if single else results)
    made.lint()
    fused, _ = lift_subgraph_as_module(gm, made, class_name=module_name)
    return fused, tuple(inputs), tuple(used)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Calls a module in place of the nodes that it was made of: the outer module."""
    name = sub_gm.__class__.__name__
    gm.add_submodule(name, sub_gm)
    place = insertion_point or max(orig_outputs)
    with gm.graph.inserting_after(place):
        called = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
    if not orig_outputs:
        return gm
    result = sub_gm.graph.output_node().args[0]
    with gm.graph.inserting_before(called.next):
        if len(orig_outputs) == 1 and not isinstance(result, tuple):
            orig_outputs[0].replace_all_uses_with(called, propagate_meta=True)
            return gm
        for i, node in enumerate(orig_outputs):
            item = Proxy(called)[i].node  # type: ignore[index]
            node.replace_all_uses_with(item, propagate_meta=True)
    called.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Takes nodes out, the last one first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: list[Collection[Node]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Makes each group of nodes a submodule's call: the module."""
    from torchshim.fx.passes.tools_common import stable_topological_sort

    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made = fuse_as_graphmodule(
            gm,
            nodes,
            f"{prefix}{i}",
            partition,
            always_return_tuple=always_return_tuple,
        )
        insert_subgm(gm, *made, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
