"""Sparse gradients: how the backward walk makes them, and how `.grad` takes them."""

from __future__ import annotations

from typing import Any

from torchshim._core import walk
from torchshim._functions.sparse_elements import become
from torchshim._functions.sparse_tensor import is_sparse, sum_of_terms, summed


def _made(indices: Any, values: Any, shape: tuple[int, ...], drops: bool) -> Any:
    whole = values._tmeta.shape[0] < 2
    return sum_of_terms([(indices, values, whole)], (0,) if drops else 0, shape)


walk.sparse_gradient.append(_made)


def accumulated(before: Any, grad: Any, create: bool) -> Any:
    """The new `.grad` after a gradient, where it or the one before is sparse."""
    if before is None:
        return grad.clone() if create else grad
    if not is_sparse(grad):
        return grad + before
    if create:
        return before + grad
    if not is_sparse(before):
        return before.add_(grad)
    return become(before, summed(before._twin(), grad))
