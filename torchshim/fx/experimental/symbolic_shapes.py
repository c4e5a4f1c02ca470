"""Sizes that stand for others: here those of ragged dimensions alone."""

from __future__ import annotations

from typing import Any

from torchshim._core.ragged import SymInt

__all__ = ["is_nested_int"]


def is_nested_int(s: Any) -> bool:
    """Whether a size is that of a ragged dimension of a nested tensor.

    >>> import torchshim as torch
    >>> parts = [torch.ones(2), torch.ones(3)]
    >>> nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    >>> [is_nested_int(size) for size in nested.shape]
    [False, True]
    """
    return isinstance(s, SymInt)
