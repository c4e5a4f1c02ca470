"""Gradients brought back to the shapes of operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def maybe_view(tensor: Any, size: Any, check_same_size: bool = True) -> Any:
    """The elements in another shape; the tensor itself where it is the same."""
    if check_same_size and tensor.size() == size:
        return tensor
    return tensor.contiguous().view(size)


def maybe_unexpand(
    tensor: Any, old_size: Sequence[int], check_same_size: bool = True
) -> Any:
    """The sum over the dimensions that broadcasting to this shape added or widened."""
    if check_same_size and tensor.size() == old_size:
        return tensor
    added = tensor.dim() - len(old_size)
    sizes = zip(tensor.size()[added:], old_size, strict=False)
    widened = [dim for dim, (new, old) in enumerate(sizes) if new != old]
    for _ in range(added):
        tensor = tensor.sum(0)
    for dim in widened:
        tensor = tensor.sum(dim, keepdim=True)
    return tensor
