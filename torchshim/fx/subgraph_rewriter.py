"""Replacing parts of graphs by others.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.replace_pattern
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchshim.fx._symbolic_trace import symbolic_trace
from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node
from torchshim.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from torchshim.nn.modules.module import Module

__all__ = [
    "Match",
    "ReplacedPatterns",
    "replace_pattern",
    "replace_pattern_with_filters",
]

_Source = Callable[..., Any] | Graph | GraphModule
_Filter = Callable[[InternalMatch, Graph, Graph], bool]
_Callback = Callable[[InternalMatch, Graph, Graph], Graph]


class Match(NamedTuple):
    """Where a pattern was found: its last node there; its nodes -> those there."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """As `Match`, and the nodes that stand there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replaces what does the same as `pattern` by `replacement`: where that was.

    Of places that overlap, the first one in the graph is replaced. Both are traced;
    AssertionError if they have different numbers of inputs.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.replace_pattern

    >>> import torchshim as torch
    >>> traced = symbolic_trace(lambda x: torch.neg(torch.neg(x)) + 1)
    >>> _ = replace_pattern(traced, lambda x: torch.neg(torch.neg(x)), lambda x: x)
    >>> print(traced.code.strip())
    def forward(self, x):
        add = x + 1;  x = None
        return add
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in found]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: _Source,
    replacement: _Source | None = None,
    match_filters: list[_Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: _Callback | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, for places that all filters take.

    `ignore_literals`: numbers and the like in the pattern stand for any;
    `replacement_callback(match, graph, pattern)` gives the replacement of one place;
    `node_name_match`: nodes called so match whatever they are. AssertionError where
    there is neither a replacement nor a callback.
    """
    graph = gm.graph
    pattern_graph = _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(each(match, graph, pattern_graph) for each in match_filters or ())
    ]
    if replacement is not None:
        common = _graph_of(replacement)
    elif replacement_callback is None:
        raise AssertionError(
            "Must provide either a replacement GraphModule or a replacement callback"
        )
    else:
        common = None
    changed: dict[Node, Node] = {}
    done: list[ReplacedPatterns] = []
    for match in matches:
        made = common
        if replacement_callback is not None:
            made = replacement_callback(match, graph, pattern_graph)
        assert made is not None
        done.append(_replace(graph, pattern_graph, match, made, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _add_attributes(gm, replacement)
    return done


def _graph_of(source: _Source) -> Graph:
    if isinstance(source, Graph):
        return source
    return (source if isinstance(source, GraphModule) else symbolic_trace(source)).graph


def _replace(
    graph: Graph,
    pattern: Graph,
    match: InternalMatch,
    replacement: Graph,
    changed: dict[Node, Node],
) -> ReplacedPatterns:
    """Replaces one place; `changed`: nodes that others replaced, in earlier places."""
    inputs = [n for n in replacement.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(
            f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs "
            f"{len(inputs)}"
        )
    for i, node in enumerate(match.placeholder_nodes):
        now = changed.get(node) if isinstance(node, Node) else None
        if now is not None:
            match.placeholder_nodes[i] = now
            key = next(k for k, v in match.nodes_map.items() if v is node)
            match.nodes_map[key] = now
    values = dict(zip(inputs, match.placeholder_nodes, strict=True))
    with graph.inserting_before(_place(graph, match)):
        copied: Any = graph.graph_copy(replacement, values)
    if isinstance(copied, Node):
        copied = (copied,)
    made = [
        each
        for each in values.values()
        if not any(each is given for given in match.placeholder_nodes)
    ]
    if len(match.returning_nodes) != len(copied):
        raise AssertionError(
            f"Returning nodes count mismatch: {len(match.returning_nodes)} vs "
            f"{len(copied)}"
        )
    for node, new in zip(match.returning_nodes, copied, strict=True):
        node.replace_all_uses_with(new)
        changed[node] = new
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _place(graph: Graph, match: InternalMatch) -> Node:
    """The node before which the replacement is made."""
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        return min(users)
    last = max(match.returning_nodes)
    if last.next is graph._root:
        raise AssertionError("The insert point can't be None")
    return last.next


def _add_attributes(gm: GraphModule, replacement: Module) -> None:
    """Gives a module what the nodes that are new in its graph refer to."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        if _attribute(gm, node.target) is not None:
            continue
        value = _attribute(replacement, node.target)
        if value is None:
            raise RuntimeError(
                'Attempted to create a "',
                node.op,
                '" node during subgraph rewriting '
                f"with target {node.target}, but "
                "the referenced attribute does not "
                "exist in the replacement GraphModule",
            )
        copied = copy.deepcopy(value)
        if isinstance(value, Module):
            gm.add_submodule(node.target, copied)
        else:
            setattr(gm, node.target, copied)
    gm.graph.lint()


def _attribute(module: Module, target: str) -> Any:
    path, _, name = target.rpartition(".")
    try:
        return getattr(module.get_submodule(path), name, None)
    except AttributeError:
        return None
