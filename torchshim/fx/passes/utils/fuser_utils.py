"""Nodes that are made one step."""

from __future__ import annotations

from torchshim.fx.node import Node


def validate_partition(partition: list[Node]) -> bool:
    """Whether nodes can be one step: no way leads out of them and back."""
    own = set(partition)
    waiting = [user for node in own for user in node.users if user not in own]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in own:
            return False
        if node not in seen:
            seen.add(node)
            waiting.extend(node.users)
    return True
