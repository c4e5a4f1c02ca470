"""Replacing what nodes call, and how much memory nodes take."""

from __future__ import annotations

from typing import Any, NamedTuple

from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node, Target, map_arg
from torchshim.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


class size_bytes(NamedTuple):
    """The bytes of a node's value, and with its parameters."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule,
    old_op: str,
    old_target: Target,
    new_op: str,
    new_target: Target,
) -> None:
    """Has all nodes that call one thing call another."""
    made = Graph()
    known: dict[Node, Node] = {}

    def remap(x: Node) -> Node:
        return known[x]

    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args, kwargs = map_arg(node.args, remap), map_arg(node.kwargs, remap)
            known[node] = made.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            known[node] = made.node_copy(node, remap)
    fx_module.graph = made


def get_size_of_all_nodes(
    fx_module: GraphModule, args: list[Any] | None = None
) -> None:
    """Gives every node `size_bytes`, after running the module with the arguments."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """What `ShapeProp` found; RuntimeError where it did not run."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape "
            "propagation has run."
        )
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a node's value, and with its parameters."""
    meta = get_tensor_meta(node)
    own = meta.shape.numel()
    total = own
    if node.op == "call_module":
        total += sum(
            p.numel() for p in fx_module.get_submodule(node.target).parameters()
        )
    return size_bytes(meta.dtype.itemsize * own, meta.dtype.itemsize * total)
