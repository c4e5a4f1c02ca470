"""Facts of nodes that new nodes take over: the `meta` of what they are made from.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import copy
import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from torchshim.fx.node import Node

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

current_meta: dict[str, Any] = {}
should_preserve_node_meta = False

# What a new node takes over, besides its stack.
COPIED = (
    *("nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute"),
    *("ac_graph_id", "has_backward_hook", "from_node", "quantization_tag"),
    *("_numeric_debug_handle", "custom", "partitioner_tag"),
)


class NodeSourceAction(Enum):
    """Whether a node was made, or put in the place of another."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The node that another was made from: an entry of `meta["from_node"]`."""

    def __init__(
        self,
        node: Node | None,
        pass_name: str = "",
        action: NodeSourceAction | list[NodeSourceAction] | None = None,
    ) -> None:
        self.pass_name = pass_name
        self.action = action if isinstance(action, list) else [action] if action else []
        for each in self.action:
            if not isinstance(each, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(each)}")
        self.name = node.name if node else ""
        self.target = str(node.target) if node else ""
        self.graph_id = id(node.graph) if node else -1
        self.from_node = copy.deepcopy(node.meta.get("from_node", [])) if node else []

    def _action_name(self) -> str:
        return "+".join(each.name.lower() for each in self.action)

    def __repr__(self) -> str:
        return self.print_readable()

    def print_readable(self, indent: int = 0) -> str:
        """It and what it was made from, a line each, ten deep at most."""
        if indent > 9:
            return ""
        own = (
            f"{' ' * indent * 4}(name={self.name}, pass_name={self.pass_name}, "
            f"action={self._action_name()}, graph_id={self.graph_id})\n"
        )
        return own + "".join(s.print_readable(indent + 1) for s in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        """It as a dict of plain values."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._action_name(),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self))


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Within it, nodes made while another is run take over its `meta`."""
    global should_preserve_node_meta, current_meta
    before = should_preserve_node_meta, current_meta
    should_preserve_node_meta = enable
    current_meta = current_meta.copy()
    try:
        yield
    finally:
        should_preserve_node_meta, current_meta = before


def has_preserved_node_meta() -> bool:
    """Whether new nodes take over `meta`."""
    return should_preserve_node_meta


def set_stack_trace(stack: list[str]) -> None:
    """Sets the stack that new nodes take over."""
    if should_preserve_node_meta:
        current_meta.pop("stack_trace", None)
        if stack:
            current_meta["stack_trace"] = "".join(stack)


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Within it, `meta["custom"]` that new nodes take over has these entries.

    >>> with annotate({"stage": 1}):
    ...     get_current_meta()
    {'custom': {'stage': 1}}
    """
    before = current_meta.get("custom")
    current_meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            del current_meta["custom"]
        else:
            current_meta["custom"] = before


def annotate_fn(
    annotation_dict: dict[str, Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function runs within `annotate`."""

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return wrapper

    return decorator


def format_stack() -> list[str]:
    """The stack that new nodes take over, or the one that is running."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Within it, new nodes take over this one's `meta`, and that they are of it."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    before = current_meta
    source = NodeSource(node, pass_name, NodeSourceAction.CREATE)
    current_meta = {**node.meta, "from_node": [source]}
    try:
        yield
    finally:
        current_meta = before


def get_current_meta() -> dict[str, Any]:
    """What new nodes take over."""
    return current_meta
