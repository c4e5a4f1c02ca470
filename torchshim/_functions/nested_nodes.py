"""The names that PyTorch's nodes have of nested tensors."""

from __future__ import annotations

from typing import Any

from torchshim._core.record import local
from torchshim._derived import fns


def named(values: Any, node: str) -> Any:
    """The values as the result of a node with PyTorch's name, where there is one."""
    if values._tmeta.requires_grad and local.rec.grad:
        return getattr(fns, f"nested_node_{node}")(values)
    return values


def viewed(values: Any, node: str) -> Any:
    """The same memory as a new tensor, which a node with PyTorch's name made."""
    return getattr(fns, f"nested_view_{node}")(values)


def renamed(values: Any, node: str) -> Any:
    """As `viewed`, of what is a view already: only where there is a node."""
    if values._tmeta.requires_grad and local.rec.grad:
        return viewed(values, node)
    return values
