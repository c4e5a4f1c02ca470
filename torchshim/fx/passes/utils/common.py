"""Modules made of parts of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.passes.utils.matcher_utils import SubgraphMatcher
from torchshim.nn.modules.module import Module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that only has others."""

    def __init__(self, d: Mapping[str, Module | None]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule,
    subgraph: Graph,
    comp_name: str = "",
    class_name: str = "GraphModule",
) -> tuple[GraphModule, dict[str, str]]:
    """A module of a part of another's graph, with the attributes that part refers to.

    And their names -> the names within `comp_name`.
    """
    made = HolderModule({})
    names: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        own: Any = made
        source: Any = gm
        *path, last = node.target.split(".")
        for name in path:
            if not hasattr(own, name):
                own.add_module(name, HolderModule({}))
            own, source = getattr(own, name), getattr(source, name)
        names[node.target] = f"{comp_name}.{node.target}"
        setattr(own, last, getattr(source, last))
    return GraphModule(made, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether graphs do the same, with inputs and outputs in the same order."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(matcher.match(right)) > 0
