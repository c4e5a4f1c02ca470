"""Dimensions moved into others: what test files ask PyTorch's transforms for."""

from __future__ import annotations

from typing import Any


def reshape_dim_into(src: int, dst: int, x: Any) -> Any:
    """Moves one dimension into another, which becomes so many times as long."""
    src %= x.dim()
    dst %= x.dim() - 1
    moved = x.movedim(src, dst)
    return moved.flatten(dst, dst + 1)


def reshape_dim_outof(src: int, size1: int, x: Any) -> Any:
    """Splits a dimension in two, the first of this size."""
    return x.unflatten(src % x.dim(), (size1, -1))
