"""Splitting a graph into modules, as a function says of each node.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim.amp import _enter_autocast, _exit_autocast
from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node, map_arg
from torchshim.fx.proxy import Proxy
from torchshim.nn.modules.module import Module

__all__ = ["Partition", "split_module"]

_set_grad_enabled = torchshim._C._set_grad_enabled
# Calls that change what is in force: it ends, and begins again, with a partition.
_STATE = (_enter_autocast, _exit_autocast, _set_grad_enabled)


class Partition:
    """A part that becomes a module; inputs and outputs are names of nodes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n"
            f" nodes: {self.node_names},\n"
            f" inputs: {self.inputs},\n"
            f" outputs: {self.outputs},\n"
            f" partitions depended on: {self.dependencies},\n"
            f" partition dependents: {self.dependents}"
        )


def _attribute(module: Any, name: str) -> Any:
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise AttributeError(f"Node target {name} not found!")
        found = getattr(found, part)
    return found


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that calls one for each number that `split_callback(node)` gives.

    `root_m` is what `m` was traced of; nothing is needed of it. `qualname_map` is told
    names of attributes after the split -> before; `keep_original_order`: parts are
    called in the order of their first nodes; `keep_original_node_name`,
    `keep_original_input_name`: what names in parts are; `partition_affix`: what is put
    before the number in a part's name; `tuple_return`: parts give tuples always.
    RuntimeError where parts would need one another.
    """
    names = bool(keep_original_node_name), keep_original_input_name
    split = _Splitting(m, split_callback, qualname_map, names, partition_affix)
    return split.run(bool(keep_original_order), tuple_return)


class _Splitting:
    def __init__(
        self,
        m: GraphModule,
        split_callback: Callable[[Node], int],
        qualname_map: dict[str, str] | None,
        keep_names: tuple[bool, bool],
        affix: str | None,
    ) -> None:
        self.m = m
        self.split_callback = split_callback
        self.qualname_map = qualname_map
        self.keep_node_names, self.keep_input_names = keep_names
        self.affix = affix
        self.nodes = {node.name: node for node in m.graph.nodes}
        self.partitions: dict[str, Partition] = {}
        # Names of nodes -> what stands for them in the graph that calls the parts.
        self.base: dict[str, Node] = {}
        self.base_graph = Graph()
        self.base_attributes: dict[str, Any] = {}
        # Calls of `_STATE` -> the partitions that they are in force in.
        self.grad: dict[Node, set[int]] = {}
        self.autocast: dict[Node, set[int]] = {}
        self.exits: dict[Node, Node] = {}

    def run(self, keep_order: bool, tuple_return: bool) -> GraphModule:
        self.assign()
        self.connect()
        order = self.sorted_names()
        self.enter_states()
        for name in order:
            self.add_inputs(self.partitions[name])
        for node in self.m.graph.nodes:
            self.copy(node)
        self.exit_states()
        if not keep_order:
            for node in self.m.graph.nodes:
                self.add_to_base(node)
        for name in list(self.partitions) if keep_order else order:
            partition = self.partitions[name]
            if keep_order:
                for node in self.m.graph.nodes:
                    if node.op == "placeholder" or node.name in partition.inputs:
                        self.add_to_base(node)
            self.call(partition, tuple_return)
        if keep_order and not self.base:
            for node in self.m.graph.nodes:
                self.add_to_base(node)
        for node in self.m.graph.nodes:
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: self.base[n.name])
                self.base_graph.output(result)
        made = GraphModule(self.base_attributes, self.base_graph)
        parts = self.partitions.values()
        made.meta["partition_names"] = {p.submod_name for p in parts}
        return made

    # Which node is where

    def assign(self) -> None:
        """Puts every call into its partition."""
        grad: Node | None = None
        casts: dict[Node, None] = {}
        for node in self.m.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            number = self.split_callback(node)
            name = f"{self.affix}_{number}" if self.affix is not None else str(number)
            partition = self.partitions.setdefault(name, Partition(name))
            partition.node_names.append(node.name)
            node._fx_partition = name
            if node.target is _set_grad_enabled:
                grad = node
                self.grad[node] = set()
            elif node.target is _enter_autocast:
                casts[node] = None
                self.autocast[node] = set()
            elif node.target is _exit_autocast:
                entered = node.args[0]
                self.autocast[entered].add(number)
                casts.pop(entered)
                self.exits[entered] = node
            if grad is not None:
                self.grad[grad].add(number)
            for entered in casts:
                self.autocast[entered].add(number)
        if len(self.exits) < len(self.autocast):
            raise AssertionError("autocast must exit")

    def connect(self) -> None:
        """Finds what partitions take of one another."""
        highest = -1
        for node in self.m.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                continue
            if node.op == "output":
                map_arg(node.args[0], lambda n: self.use(n, None))
                continue
            if self.autocast or self.grad:
                number = self.split_callback(node)
                if highest > number:
                    raise AssertionError(
                        "autocast or set_grad_enabled require monotonically "
                        f"increasing partitions: highest: {highest}, this node's: "
                        f"{number}"
                    )
                highest = number
            if node.target not in _STATE:
                map_arg((node.args, node.kwargs), lambda n, own=node: self.use(n, own))

    def use(self, made: Node, user: Node | None) -> None:
        made_in = getattr(made, "_fx_partition", None)
        used_in = getattr(user, "_fx_partition", None)
        if made_in == used_in:
            return
        if made_in is not None:
            self.partitions[made_in].outputs.setdefault(made.name)
            if used_in is not None:
                self.partitions[made_in].dependents.setdefault(used_in)
        if used_in is not None:
            self.partitions[used_in].inputs.setdefault(made.name)
            if made_in is not None:
                self.partitions[used_in].dependencies.setdefault(made_in)

    def sorted_names(self) -> list[str]:
        """The partitions, each behind those that it needs."""
        partitions = self.partitions
        roots = [name for name, each in partitions.items() if not each.dependencies]
        found: list[str] = []
        while roots:
            root = roots.pop()
            found.append(root)
            for name in partitions[root].dependents:
                partitions[name].dependencies.pop(root)
                if not partitions[name].dependencies:
                    roots.append(name)
        if len(found) != len(partitions):
            raise RuntimeError("cycle exists between partitions!")
        return found

    # States that are in force in several partitions

    def enter_states(self) -> None:
        for node, numbers in (*self.autocast.items(), *self.grad.items()):
            first, *others = sorted(numbers)
            self.partitions[str(first)].environment[node] = node
            for number in others:
                partition = self.partitions[str(number)]
                made = partition.graph.create_node(
                    node.op, node.target, node.args, {}, type_expr=node.type
                )
                made.meta = node.meta.copy()
                partition.environment[node] = made

    def exit_states(self) -> None:
        for node in reversed(self.autocast):
            left = self.exits[node]
            for number in sorted(self.autocast[node])[:-1]:
                partition = self.partitions[str(number)]
                entered = partition.environment[node]
                made = partition.graph.create_node(
                    left.op, left.target, (entered,), {}, type_expr=left.type
                )
                made.meta = left.meta.copy()

    # The graphs of partitions

    def add_inputs(self, partition: Partition) -> None:
        """Inputs come first, then the submodules that are read."""
        read = [n for n in partition.inputs if self.is_module(self.nodes[n])]
        given = [n for n in partition.inputs if n not in read]
        for i, name in enumerate(given):
            node = self.nodes[name]
            own = name if self.keep_input_names else f"arg_{i}"
            made = partition.graph.placeholder(own, type_expr=node.type)
            made.meta = node.meta.copy()
            partition.environment[node] = made
        for name in read:
            node = self.nodes[name]
            made = partition.graph.get_attr(node.target)
            partition.targets[node.target] = _attribute(self.m, node.target)
            made.meta = node.meta.copy()
            partition.environment[node] = made
        partition.inputs = dict.fromkeys(given)

    def is_module(self, node: Node) -> bool:
        return node.op == "get_attr" and isinstance(
            _attribute(self.m, node.target), Module
        )

    def copy(self, node: Node) -> None:
        """Copies a node to its partition."""
        if not hasattr(node, "_fx_partition"):
            return
        partition = self.partitions[node._fx_partition]  # type: ignore[attr-defined]
        known = partition.environment
        target = node.target
        if node.op == "call_module":
            found = _attribute(self.m, target)
            target = target.replace(".", "_")
            partition.targets[target] = found
            if self.qualname_map is not None:
                self.qualname_map[f"{partition.submod_name}.{target}"] = node.target
        made = partition.graph.create_node(
            node.op,
            target,
            map_arg(node.args, lambda n: known[n]),
            map_arg(node.kwargs, lambda n: known[n]),
            name=node.name if self.keep_node_names else None,
            type_expr=node.type,
        )
        made.meta = node.meta.copy()
        known[node] = made

    # The graph that calls them

    def add_to_base(self, node: Node) -> None:
        """Adds an input, or an attribute that is read."""
        if node.name in self.base:
            return
        if node.op == "placeholder":
            default = node.args[0] if node.args else inspect.Signature.empty
            name = node.name if self.keep_node_names else node.target
            made = self.base_graph.placeholder(name, node.type, default)
        elif node.op == "get_attr":
            made = self.base_graph.get_attr(node.target)
            self.base_attributes[node.target] = _attribute(self.m, node.target)
        else:
            return
        made.meta = node.meta.copy()
        self.base[node.name] = made

    def call(self, partition: Partition, tuple_return: bool) -> None:
        """Ends a partition's graph, and calls its module."""
        names = list(partition.outputs)
        results = tuple(partition.environment[self.nodes[name]] for name in names)
        single = len(results) == 1 and not tuple_return
        partition.graph.output(results[0] if single else results)
        made = GraphModule(partition.targets, partition.graph)
        self.base_attributes[partition.submod_name] = made
        inputs = tuple(self.base[name] for name in partition.inputs)
        called = self.base_graph.call_module(partition.submod_name, inputs)
        if single:
            self.base[names[0]] = called
        else:
            for i, name in enumerate(names):
                self.base[name] = Proxy(called)[i].node  # type: ignore[index]
