"""Finding a pattern whose nodes have names of their own."""

from __future__ import annotations

from typing import Any

from torchshim import _pytree as tree
from torchshim.fx.graph import Graph, _PyTreeInfo
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node
from torchshim.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(
    gm: GraphModule,
) -> tuple[GraphModule, dict[str, Node]]:
    """A pattern without the dict that it returns last, and that dict."""
    output = gm.graph.output_node()
    if gm._out_spec is None:
        raise AssertionError("gm._out_spec is None")
    results = tree.tree_unflatten(output.args[0], gm._out_spec)
    if not isinstance(results, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(results) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *rest, names = results
    leaves, structure = tree.tree_flatten(rest)
    if not isinstance(names, dict):
        raise AssertionError(
            "Expecting the input graph to have a dict output as the last element"
        )
    output.args = (leaves,)
    codegen: Any = gm.graph._codegen
    told = codegen.pytree_info
    codegen.pytree_info = _PyTreeInfo(told.orig_args, told.in_spec, structure)
    gm.recompile()
    return gm, names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A `SubgraphMatcher` for a module that also returns a dict of named nodes.

    What it finds has, in `name_node_map`, the node there for each name.
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(
            pattern_gm.graph,
            match_output,
            match_placeholder,
            remove_overlapping_matches,
            ignore_literals,
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places in a graph, with the names of their nodes."""
        found = super().match(graph, node_name_match)
        for match in found:
            for name, node in self.name_node_map.items():
                match.name_node_map[name] = match.nodes_map[node]
        return found
