"""Computing once what depends on parameters and constants only.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from torchshim._functions.construct import tensor
from torchshim._tensor import Tensor
from torchshim.fx import symbolic_trace
from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node, map_arg
from torchshim.fx.passes.split_module import split_module
from torchshim.nn import Module, Parameter, ParameterList

__all__ = [
    "FoldedGraphModule",
    "get_unique_attr_name_in_module",
    "split_const_subgraphs",
]

# What `split_module` calls the parts: the constant one, and the rest.
_CONSTANT, _REST = "submod_0", "submod_1"


class FoldedGraphModule(GraphModule):
    """A module whose constant part is run before its first call.

    The results of `const_subgraph` become the parameter (or the list of parameters)
    `fx_const_folded_attrs_name`. Numbers among them are put on
    `device_for_folded_attrs`.
    """

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        inner = const_subgraph
        self.const_subgraph_module = inner and GraphModule(root, inner)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Runs the constant part; AssertionError the second time."""
        name = self.fx_const_folded_attrs_name
        if self.const_subgraph_module is None or name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        many = isinstance(found, tuple)
        made = ParameterList(map(self._parameter, found)) if many else None
        setattr(self, name, self._parameter(found) if made is None else made)

    def _parameter(self, value: Any) -> Parameter:
        if isinstance(value, Tensor):
            return Parameter(value.detach().clone(), requires_grad=value.requires_grad)
        number = tensor([float(value)], device=self.device_for_folded_attrs)
        return Parameter(number, requires_grad=False)


def _inline_module(
    gm: GraphModule, inline_mod_name: str, run_dce: bool = True
) -> dict[Node, Any]:
    """Puts a submodule's nodes in the place of its call: its nodes -> those there."""
    inner = dict(gm.named_modules())[inline_mod_name]
    if not isinstance(inner, GraphModule):
        raise AssertionError(f"Expected GraphModule, got {type(inner)}")
    calls = [n for n in gm.graph.nodes if n.op == "call_module"]
    call = next((n for n in calls if n.target == inline_mod_name), None)
    if call is None:
        raise AssertionError(f"Could not find call_module node for {inline_mod_name}")
    known: dict[Node, Any] = {}

    def remap(node: Node) -> Any:
        found = known[node]
        found.meta = node.meta.copy()
        return found

    given = iter(call.args)
    for node in inner.graph.nodes:
        if node.op == "placeholder":
            first = next(given, None)
            known[node] = call.kwargs.get(node.name, first)
        elif node.op == "output":
            results = map_arg(node.args[0], remap)
            items = [u for u in call.users if _is_item(u)]
            call.replace_all_uses_with(results)
            if isinstance(results, (list, tuple)):
                # What was an item of the call is one of these.
                for item in items:
                    found = results[item.args[1]]
                    item.replace_all_uses_with(found)
                    gm.graph.erase_node(item)
                    known[item] = found
        else:
            with gm.graph.inserting_before(call):
                known[node] = gm.graph.node_copy(node, remap)
    # By hand: what the module does may be impure, and is done by its nodes now.
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return known


def _is_item(node: Node) -> bool:
    called = node.op == "call_function" and node.target is operator.getitem
    return called and isinstance(node.args[1], int)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """A name like the given one that the module does not have yet."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        counted = re.match(r"(.*)_(\d+)$", name)
        if counted is None:
            name = f"{name}_1"
        else:
            name = f"{counted[1]}_{int(counted[2]) + 1}"
    return name


def _is_impure(module: Any) -> bool:
    """Whether a module is a graph's that does more than compute."""
    if not isinstance(module, GraphModule):
        return False
    for node in module.graph.nodes:
        if node.op == "call_function" and node.is_impure():
            return True
        if node.op == "call_module":
            inner = module.get_submodule(node.target)
            if isinstance(inner, GraphModule):
                return _is_impure(inner)
    return False


def _constant_nodes(
    traced: GraphModule, skip: Callable[[Node], bool] | None
) -> set[Node]:
    """The nodes that depend on attributes and constants only."""
    found: set[Node] = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and not found.issuperset(node.all_input_nodes):
            continue
        if (skip is not None and skip(node)) or node.is_impure():
            continue
        if node.op == "call_module" and _is_impure(traced.get_submodule(node.target)):
            continue
        found.add(node)
    return found


def _attributes_for_inputs(part: GraphModule, split: GraphModule) -> bool:
    """Has the constant part look up what it was given: whether it has several."""
    calls = [n for n in split.graph.nodes if n.op == "call_module"]
    call = next(n for n in calls if n.target == _CONSTANT)
    graph = part.graph
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    for node, given in zip(inputs, call.args, strict=True):
        if given.op != "get_attr":
            raise AssertionError(f"Expected get_attr, got {given.op}")
        with graph.inserting_before(node):
            made = graph.get_attr(given.target)
        made.meta = node.meta.copy()
        node.replace_all_uses_with(made)
        graph.erase_node(node)
    return isinstance(graph.output_node().args[0], tuple)


def split_const_subgraphs(
    module: Module | GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A module that computes before its first call what needs none of its inputs.

    Nodes that `skip_folding_node_fn` is true of stay where they are, as do those that
    do more than compute.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split = split_module(traced, module, lambda node: 0 if node in constant else 1)
    part, rest = getattr(split, _CONSTANT), getattr(split, _REST, None)
    # Modules that the parts call, which `split_module` has put into them.
    for each in (rest, part):
        for node in each.graph.nodes if each is not None else ():
            if node.op == "call_module":
                setattr(split, node.target, getattr(each, node.target))
    rooted = GraphModule(split, part.graph)
    many = _attributes_for_inputs(rooted, split)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(split, name, ParameterList() if many else Parameter())
    for node in split.graph.nodes:
        if node.op == "call_module" and node.target == _CONSTANT:
            with split.graph.inserting_before(node):
                folded = split.graph.get_attr(name)
            folded.meta = node.meta.copy()
            node.replace_all_uses_with(folded)
            break
    if rest is not None:
        _inline_module(split, _REST)
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(
        split, split.graph, rooted.graph, name, device_for_folded_attrs
    )
