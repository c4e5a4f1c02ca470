"""The nodes of a graph as a list, where it inserts, and where it finds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchshim.fx.graph import Graph
    from torchshim.fx.node import Node


class NodeList:
    """The nodes of a graph, in order or from the end; it may change meanwhile."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(
                f"direction must be '_next' or '_prev', got {direction}"
            )
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def _walk(self, step: str) -> Iterator[Any]:
        root = self.graph._root
        node = getattr(root, step)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, step)

    def __iter__(self) -> Iterator[Any]:
        return self._walk(self.direction)

    def __reversed__(self) -> Iterator[Any]:
        return self._walk("_prev" if self.direction == "_next" else "_next")


class InsertPoint:
    """Where a graph makes nodes, until the context ends."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class FindNodesTable:
    """The nodes of a graph by what they call."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, Any], dict[Node, None]] = defaultdict(dict)

    def _key(self, node: Node) -> tuple[str, Any]:
        return node.op, node.target if node.op == "call_function" else None

    def __contains__(self, node: Node) -> bool:
        return node in self.table.get(self._key(node), ())

    def insert(self, node: Node) -> None:
        self.table[self._key(node)][node] = None

    def remove(self, node: Node) -> None:
        self.table[self._key(node)].pop(node)

    def find_nodes(self, *, op: str, target: Any = None) -> list[Any]:
        if op == "call_function":
            if target is None:
                raise AssertionError("target must not be None for call_function op")
            return [*self.table.get((op, target), ())]
        found = self.table.get((op, None), ())
        return [n for n in found if target is None or n.target == target]
