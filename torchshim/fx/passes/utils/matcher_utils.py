"""Finding parts of a graph that do what another graph does."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torchshim._library.schema import Argument
from torchshim._tensor import Tensor
from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import _get_attr
from torchshim.fx.node import Node
from torchshim.fx.passes.utils.fuser_utils import validate_partition
from torchshim.ops import OpOverload

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A place in a graph that matches a pattern."""

    # The last nodes of the pattern.
    anchors: list[Node]
    # Nodes of the pattern -> there.
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            self.nodes_map.copy(),
            self.placeholder_nodes.copy(),
            self.returning_nodes.copy(),
        )


class SubgraphMatcher:
    """Finds a pattern in graphs.

    `match_output`: what returns is part of the pattern; `match_placeholder`: inputs
    match inputs only, and not anything; `remove_overlapping_matches`: of places that
    overlap, the first one is found; `ignore_literals`: numbers and the like match any.
    ValueError for an empty pattern, AssertionError for one with nodes that nothing
    uses.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError(
                "SubgraphMatcher cannot be initialized with an empty pattern"
            )
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError(
                    "SubgraphMatcher cannot be initialized with an pattern with dead "
                    "code"
                )
        nodes = pattern.nodes
        self.pattern_placeholder_nodes = [n for n in nodes if n.op == "placeholder"]
        output = next(iter(reversed(nodes)))
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        self.pattern_anchors = [output]
        if not match_output:
            # What only the output uses: everything else leads there.
            self.pattern_anchors = [
                n for n in output.all_input_nodes if len(n.users) == 1
            ]

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        for node in (pn, gn):
            if not isinstance(node.target, str):
                raise AssertionError(f"{node}.target {node.target} must be a string.")
        for name, node in (("pn", pn), ("gn", gn)):
            if node.graph.owning_module is None:
                raise AssertionError(f"{name}.graph.owning_module must not be None")
        own = _get_attr(pn.graph.owning_module, str(pn.target))
        other = _get_attr(gn.graph.owning_module, str(gn.target))
        if type(own) is not type(other):
            return False
        if isinstance(own, Tensor):
            return True  # whatever its values
        raise RuntimeError(f"Unsupported type {own} when matching attributes")

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _is_contained(self, nodes_map: dict[Node, Node]) -> bool:
        """Whether nothing else uses what is within a place."""
        inner = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(
            pn in self.pattern_returning_nodes
            or all(user in inner for user in gn.users)
            for gn, pn in inner.items()
        )

    def _remove_overlapping_matches(
        self, matches: list[InternalMatch]
    ) -> list[InternalMatch]:
        kept: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            own = set(_inner(match))
            if not own & taken:
                kept.append(match)
                taken |= own
        return kept

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node):
            if pn.op != "placeholder":
                return False
            return match.nodes_map.setdefault(pn, gn) == gn
        return not isinstance(gn, Node) and type(gn) is type(pn) and gn == pn

    def _match_nodes(
        self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = ""
    ) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is known for known in match.nodes_map.values()):
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs):
            own = [*pn.args, *pn.kwargs.values()]
            return self._match_args(own, [*gn.args, *gn.kwargs.values()], match)
        if not isinstance(pn.target, OpOverload):
            return False
        declared = pn.target._schema.arguments
        return self._match_args(_filled(pn, declared), _filled(gn, declared), match)

    def _match_args(
        self, own: Sequence[Any], other: Sequence[Any], match: InternalMatch
    ) -> bool:
        if len(own) != len(other):
            return False
        for a, b in zip(own, other, strict=True):
            if isinstance(a, Node) and isinstance(b, Node):
                matched = self._match_nodes(a, b, match)
            elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
                matched = self._match_args(a, b, match)
            else:
                matched = self._match_literals(a, b, match) or self.ignore_literals
            if not matched:
                return False
        return True

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places that do what the pattern does.

        Nothing else uses what they compute in between, and they can be made one step.
        `node_name_match`: nodes called so match the pattern's last, whatever they are.
        """
        candidates = [
            (anchor, found)
            for anchor in self.pattern_anchors
            if (
                found := [
                    node
                    for node in graph.nodes
                    if self._nodes_are_equal(anchor, node, node_name_match)
                ]
            )
        ]
        matches: list[InternalMatch] = []

        def search(at: int, match: InternalMatch) -> None:
            if at == len(candidates):
                known = match.nodes_map
                inputs, results = (
                    self.pattern_placeholder_nodes,
                    self.pattern_returning_nodes,
                )
                match.placeholder_nodes = [known[pn] for pn in inputs]
                match.returning_nodes = [known[pn] for pn in results]
                matches.append(match)
                return
            anchor, nodes = candidates[at]
            for node in nodes:
                tried = copy.copy(match)
                if self._match_nodes(anchor, node, tried, node_name_match):
                    search(at + 1, tried)

        if candidates:
            search(0, InternalMatch(anchors=self.pattern_anchors))
        matches = [
            match
            for match in matches
            if self._is_contained(match.nodes_map) and validate_partition(_inner(match))
        ]
        if self.remove_overlapping_matches:
            return self._remove_overlapping_matches(matches)
        return matches


def _filled(node: Node, declared: Sequence[Argument]) -> list[Any]:
    """The arguments of an operator's call, defaults filled in."""
    found = []
    for at, argument in enumerate(declared):
        if argument.name in node.kwargs:
            found.append(node.kwargs[argument.name])
        elif not argument.kwarg_only and at < len(node.args):
            found.append(node.args[at])
        else:
            found.append(argument.default_value)
    return found


def _inner(match: InternalMatch) -> list[Node]:
    """The nodes of a place, without its inputs."""
    pairs = match.nodes_map.items()
    return [gn for pn, gn in pairs if pn.op not in ("placeholder", "output")]
