"""Parts of a graph that a backend takes, each as one module.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node, _get_qualified_name
from torchshim.fx.passes.operator_support import OperatorSupportBase
from torchshim.fx.passes.utils.fuser_utils import fuse_by_partitions


class Partition:
    """Nodes that become one module, with their places in the graph from its end."""

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = {}
        if nodes is None:
            return
        if node_orders is None:
            self.nodes = dict.fromkeys(nodes, None)
            return
        given, places = list(nodes), list(node_orders)
        if len(given) != len(places):
            raise AssertionError("nodes and node_orders must have the same length")
        self.nodes = dict(zip(given, places, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Adds a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Takes a node out."""
        del self.nodes[node]

    def size(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)


class _DependencyViewer:
    """What depends on a node, at any distance."""

    def __init__(self, graph_module: GraphModule) -> None:
        self.downstreams: dict[Node, set[Node]] = {}
        for node in reversed(graph_module.graph.nodes):
            below = self.downstreams.setdefault(node, set())
            for user in node.users:
                below.add(user)
                below |= self.downstreams.get(user, set())

    def downstreams_of(self, node: Node) -> set[Node]:
        return self.downstreams[node]


class _Proposal:
    """Partitions as they grow, from the end of the graph to its beginning."""

    def __init__(self, viewer: _DependencyViewer) -> None:
        self.viewer = viewer
        self.of: dict[Node, int] = {}
        self.by_id: dict[int, Partition] = {}
        # Partition -> those that need it, at any distance; its first place; its users.
        self.later: dict[int, set[int]] = {}
        self.order: dict[int, int] = {}
        self.users: dict[int, set[Node]] = {}

    def _ways(self, users: Iterable[Node]) -> Iterable[Node]:
        """The nodes, and all that depends on them."""
        for user in users:
            yield user
            yield from self.viewer.downstreams_of(user)

    def _reached(self, users: Iterable[Node]) -> set[int]:
        """The partitions that depend on nodes."""
        found: set[int] = set()
        for node in self._ways(users):
            if (other := self.of.get(node)) is not None:
                found.add(other)
                found |= self.later.get(other, set())
        return found

    def put(self, node: Node, place: int | None, id: int | None) -> None:
        """Puts a node into a partition, a new one or none."""
        if node in self.of:
            self.by_id[self.of[node]].remove_node(node)
        if id is None:
            self.of.pop(node)
        elif id in self.by_id:
            self.of[node] = id
            self.by_id[id].add_node(node, place)
        else:
            if place is None:
                raise AssertionError("node_order is required for new partitions")
            self.of[node] = id
            self.by_id[id] = Partition(id, [node], [place])
            self.users[id] = set(node.users)
            self.later.setdefault(id, set()).update(self._reached(node.users) - {id})

    def merge(self, one: int, other: int) -> int:
        """Makes two partitions one, unless one needs the other: an id."""
        nodes = {**self.by_id[one].nodes, **self.by_id[other].nodes}
        users = (self.users[one] | self.users[other]) - set(nodes)
        for node in self._ways(users):
            if node in nodes or (
                node in self.of and self.later.get(self.of[node], set()) & {one, other}
            ):
                return one
        kept, gone = one, other
        if self.by_id[one].size() < self.by_id[other].size():
            kept, gone = other, one
        moved = self.by_id.pop(gone).nodes
        self.by_id[kept].nodes.update(moved)
        self.of.update(dict.fromkeys(moved, kept))
        self.order[kept] = min(self.order[kept], self.order.pop(gone))
        self.users[kept] = users
        del self.users[gone]
        later = self.later.pop(kept, set()) | self.later.pop(gone, set())
        self.later[kept] = (later | self._reached(users)) - {kept, gone}
        return kept


def _place(item: tuple[Node, Any]) -> int:
    return item[1]


def _is_getitem(node: Node) -> bool:
    called = node.op == "call_function"
    return called and _get_qualified_name(node.target) == "_operator.getitem"


class CapabilityBasedPartitioner:
    """Proposes partitions of nodes that a backend takes, as large as they can be.

    No partition needs what needs it. Partitions of a single node are left out unless
    `allows_single_node_partition`, or the node is named in
    `allowed_single_node_partition_ops`; `non_compute_ops` do not count. With
    `skip_horizontal_fusion` nodes join those of their users only.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = [] if non_compute_ops is None else non_compute_ops
        alone = allowed_single_node_partition_ops
        self.allowed_single_node_partition_ops = [] if alone is None else alone
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self.dependency_viewer = _DependencyViewer(graph_module)

    def _is_node_supported(self, node: Node) -> bool:
        submodules = dict(self.graph_module.named_modules())
        return self.operator_support.is_node_supported(submodules, node)

    def propose_partitions(self) -> list[Partition]:
        """The partitions."""
        made = _Proposal(self.dependency_viewer)
        ids = itertools.count()
        nodes = self.graph_module.graph.nodes
        for place, node in enumerate(reversed(nodes)):
            own = None
            if self._is_node_supported(node):
                own = next(ids)
                made.order[own] = own
                made.put(node, place, own)
            if not self.skip_horizontal_fusion:
                ranked = sorted(made.order.items(), key=operator.itemgetter(1))
                others = [id for id, _ in ranked]
            else:
                users = () if own is None else node.users
                others = [made.of[user] for user in users if user in made.of]
            first = [] if own is None else [own]
            candidates = list(dict.fromkeys([*first, *others]))
            if candidates:
                kept, *others = candidates
                for other in others:
                    kept = made.merge(kept, other)
        for partition in made.by_id.values():
            ordered = sorted(partition.nodes.items(), key=_place, reverse=True)
            partition.nodes = dict(ordered)
        self._move_items(made)
        if not self.allows_single_node_partition:
            for id in [id for id, p in made.by_id.items() if self._is_small(p)]:
                del made.by_id[id]
        return [p for p in made.by_id.values() if p.size() > 0]

    def _move_items(self, made: _Proposal) -> None:
        """Puts the parts of what gives several results where that is."""
        while True:
            moves: dict[Node, int | None] = {}
            for node in self.graph_module.graph.nodes:
                if all(map(_is_getitem, node.users)):
                    own = made.of.get(node)
                    for user in node.users:
                        if made.of.get(user) != own:
                            moves[user] = own
            if not moves:
                return
            for node, id in moves.items():
                made.put(node, None, id)

    def _is_small(self, partition: Partition) -> bool:
        """Whether a partition computes no more than one thing."""
        without = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        count = 0
        for node in partition.nodes:
            if node.op == "call_function":
                if not callable(node.target):
                    raise AssertionError(
                        f"Expected callable target, got {type(node.target)}"
                    )
                name = _get_qualified_name(node.target)
                count += name not in without
                count += name in self.allowed_single_node_partition_ops
        return count <= 1

    def fuse_partitions(
        self, partitions: list[Partition], prefix: str = "fused_"
    ) -> GraphModule:
        """Makes each partition a submodule: the module."""
        groups: list[Any] = [partition.nodes for partition in partitions]
        return fuse_by_partitions(self.graph_module, groups, prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Takes out, at the edges of partitions, what does not compute."""
        names = set(self.non_compute_ops)

        def idle(node: Node) -> bool:
            called = node.op == "call_function"
            return called and _get_qualified_name(node.target) in names

        known: dict[tuple[Node, bool], bool] = {}

        def open_(node: Node, own: set[Node], gone: set[Node], before: bool) -> bool:
            """Whether nothing computes between a node and an edge of its partition."""
            if node.op == "placeholder" or node not in own or node in gone:
                return True
            key = node, before
            if key not in known:
                beside = node.all_input_nodes if before else list(node.users)
                known[key] = idle(node) and all(
                    open_(each, own, gone, before) for each in beside
                )
            return known[key]

        for partition in partitions:
            own, gone = set(partition.nodes), set[Node]()
            for node in partition.nodes:
                if idle(node) and (
                    open_(node, own, gone, True) or open_(node, own, gone, False)
                ):
                    gone.add(node)
            for node in gone:
                partition.nodes.pop(node, None)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Proposes partitions and makes them submodules."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)
