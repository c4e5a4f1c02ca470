"""Sparse gradients: how the backward walk makes them, and how `.grad` takes them."""

from __future__ import annotations

from typing import Any

from torchshim._core import walk
from torchshim._functions.composed import Composed
from torchshim._functions.sparse_elements import become
from torchshim._functions.sparse_tensor import (
    SparseTensor,
    is_sparse,
    sum_of_terms,
    summed,
)


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


def _get_grad(self: Any) -> Any:
    """What was assigned, of whatever pattern, and what backward has added since."""
    given, found = vars(self).get("_given"), _of_values(self)
    if given is None or found is None:
        return found if given is None else given
    self._v.grad = None
    given = self._given = accumulated(given, found, found.requires_grad)
    return given


def _keep_grad(self: Any, value: Any) -> None:
    self._v.grad = None
    self._given = value


_of_values: Any = Composed.grad.fget
SparseTensor._grad = property(_get_grad, _keep_grad)
