"""Types of what is taken out of a tuple or list whose type is known."""

from __future__ import annotations

import operator
import typing
from typing import Any

from torchshim._tensor import Tensor
from torchshim.fx.graph import Graph

_MISSING = object()


def _item_type(kind: Any, index: Any) -> Any:
    """The type of an item, or `_MISSING` where it is not known."""
    origin = typing.get_origin(kind)
    inner = typing.get_args(kind)
    if origin is tuple:
        if len(inner) == 2 and inner[1] is ...:
            return inner[0]
        if len(inner) <= index:
            raise AssertionError(
                f"Index {index} out of range for parameterized_types (len={len(inner)})"
            )
        return inner[index]
    if origin is list:
        if len(inner) != 1:
            raise AssertionError(f"Expected 1 parameterized type, got {len(inner)}")
        return inner[0]
    if origin is None and hasattr(kind, "__annotations__") and kind is not Tensor:
        return kind.__annotations__[kind._fields[index]]
    return _MISSING


def annotate_getitem_nodes(graph: Graph) -> None:
    """Gives `getitem` nodes of tuples, lists and named tuples the types of items."""
    for node in graph.nodes:
        if node.target is operator.getitem:
            sequence, index = node.args
            if sequence.type:
                kind = _item_type(sequence.type, index)
                if kind is not _MISSING:
                    node.type = kind
