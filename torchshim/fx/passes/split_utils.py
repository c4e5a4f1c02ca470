"""Splitting a graph by tags on its nodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node, map_arg
from torchshim.fx.passes.utils.common import HolderModule, lift_subgraph_as_module
from torchshim.fx.proxy import Proxy
from torchshim.nn.modules.container import ModuleList

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """An attribute by its full name, None if there is none."""
    for part in name.split("."):
        if isinstance(obj, ModuleList):
            obj = obj._modules.get(part)
        else:
            obj = getattr(obj, part, None)
        if obj is None:
            return None
    return obj


def setattr_recursive(obj: Any, attr: str, value: object) -> None:
    """Sets an attribute by its full name."""
    *path, last = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, last, value)


@dataclass
class Component:
    """A part of a graph that becomes a module."""

    graph: Graph
    order: int
    name: str
    # Its inputs, and the nodes of the whole graph that they stand for.
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    # The nodes of the whole graph that it gives.
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


def _nodes_in(value: Any) -> list[Node]:
    found: list[Node] = []
    map_arg(value, found.append)
    return found


class _Splitting:
    """The parts that a graph is split into, and the graph that calls them."""

    def __init__(self, gm: GraphModule, tags: list[str]) -> None:
        self.gm = gm
        self.components = {
            tag: Component(Graph(), i, str(tag)) for i, tag in enumerate(tags)
        }
        self.main = Graph()
        # Nodes of the whole graph -> in their part, in the graph that calls parts.
        self.inner: dict[Node, Node] = {}
        self.outer: dict[Node, Node] = {}
        self.component_of: dict[Node, Component] = {}
        self.used_in_main: dict[Node, None] = {}

    def add(self, node: Node) -> None:
        """Adds a node to its part."""
        if node.op == "placeholder":
            made = self.main.placeholder(node.name, type_expr=node.type)
            made.meta = copy.copy(node.meta)
            self.outer[node] = made
            return
        if node.op == "get_attr":
            return  # copied to where it is used
        if not hasattr(node, "tag"):
            raise AssertionError(f"Node does not have tag: {node.format_node()}")
        tag: Any = node.tag  # type: ignore[attr-defined]
        component = self.component_of[node] = self.components[tag]
        inputs = _nodes_in((node.args, node.kwargs))
        before = [self.component_of[x] for x in inputs if x in self.component_of]
        latest = max((each.order for each in before), default=0)
        if component.order < latest:
            raise AssertionError(
                f"Component {component.name} order must be >= max of its upstream "
                f"components, order={component.order} and max={latest}"
            )
        made = component.graph.node_copy(node, lambda x: self.remap(component, x))
        made.tag = tag
        self.inner[node] = made

    def remap(self, component: Component, x: Node) -> Node:
        """What stands for a node in a part."""
        if x.op == "get_attr":
            if x not in component.getattr_maps:
                made = component.graph.get_attr(x.target, type_expr=x.type)
                made.meta = copy.copy(x.meta)
                component.getattr_maps[x] = made
            return component.getattr_maps[x]
        if self.component_of.get(x) is component:
            return self.inner[x]
        if x not in component.orig_inputs:
            made = component.graph.placeholder(x.name, type_expr=x.type)
            made.meta = copy.copy(x.meta)
            component.orig_inputs.append(x)
            component.input_placeholders.append(made)
            self.used_in_main[x] = None
        return component.input_placeholders[component.orig_inputs.index(x)]

    def finish(self, component: Component, as_tuple: bool) -> dict[str, str]:
        """Makes a part a module, and calls it: names of attributes -> in there."""
        results = tuple(self.inner[x] for x in component.orig_outputs)
        single = len(results) == 1 and not as_tuple
        component.graph.output(results[0] if single else results)
        component.gm, names = lift_subgraph_as_module(
            self.gm, component.graph, component.name
        )
        inputs = tuple(self.outer[x] for x in component.orig_inputs)
        called = self.main.call_module(component.name, inputs)
        if single:
            self.outer[component.orig_outputs[0]] = called
        else:
            for i, x in enumerate(component.orig_outputs):
                self.outer[x] = Proxy(called)[i].node  # type: ignore[index]
        return names


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """A module that calls one for each tag, with the nodes that have it (`node.tag`).

    `return_fqn_mapping`: also names of attributes -> after the split; `return_tuple`:
    parts give tuples always. AssertionError for nodes without a tag, and where parts
    would need what comes later; RuntimeError for a graph without one output.
    """
    split = _Splitting(gm, tags)
    output: Node | None = None
    for node in gm.graph.nodes:
        if node.op != "output":
            split.add(node)
        elif output is not None:
            raise RuntimeError("Multiple output nodes in graph!")
        else:
            output = node
    if output is None:
        raise RuntimeError("Graph had no output node!")
    attributes: list[Node] = []
    for x in _nodes_in(output.args[0]):
        if x.op == "get_attr":
            split.outer[x] = split.main.get_attr(x.name, type_expr=x.type)
            attributes.append(x)
        else:
            split.used_in_main[x] = None
    for x in split.used_in_main:
        if x.op != "placeholder":
            split.component_of[x].orig_outputs.append(x)
    names: dict[str, str] = {}
    for component in split.components.values():
        names.update(split.finish(component, return_tuple))
    split.main.output(map_arg(output.args[0], split.outer.__getitem__))
    parts = split.components.values()
    root = HolderModule({component.name: component.gm for component in parts})
    split.main._codegen = gm.graph._codegen
    for x in attributes:
        setattr(root, x.name, getattr_recursive(gm, x.target))
    made = GraphModuleCls(root, split.main)
    return (made, names) if return_fqn_mapping else made
