"""Scans by functions that are associative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim
from torchshim import _pytree
from torchshim._tensor import Tensor

__all__ = ["associative_scan"]

_NO_SCAN = (
    "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"
)
Combine = Callable[[list[Tensor], list[Tensor]], list[Tensor]]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """What `combine_fn` makes of all elements along a dimension up to each.

    `combine_fn` takes two trees like `xs`, each of one element of every tensor, and
    gives such a tree; it must be associative, as pairs are combined first.

    >>> import torchshim as torch
    >>> from torchshim._higher_order_ops import associative_scan
    >>> x = torch.tensor([3, 1, 4, 1, 5])
    >>> associative_scan(torch.maximum, x, 0, combine_mode="generic")
    tensor([3, 3, 4, 4, 5])
    """
    leaves, spec = _pytree.tree_flatten(xs)
    dims = leaves[0].ndim
    if not -max(dims, 1) <= dim < max(dims, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(dims, 1)}, "
            f"{max(dims, 1) - 1}], but got {dim})"
        )
    dim += dims if dim < 0 else 0
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    both = _pytree.tree_unflatten([0] * len(leaves), spec)
    mapped = torchshim.vmap(combine_fn, in_dims=(both, both))

    def combine(first: list[Tensor], second: list[Tensor]) -> list[Tensor]:
        made = mapped(spec.unflatten(first), spec.unflatten(second))
        found = _pytree.tree_leaves(made)
        if len(found) != len(leaves):
            raise RuntimeError(
                "The number of leaves of the pytree of the output of the operator "
                "needs to match the length of the pytree of the input"
            )
        return found

    elements = [x.movedim(dim, 0) for x in leaves]
    if reverse:
        elements = [x.flip(0) for x in elements]
    results = _scan(combine, elements)
    if reverse:
        results = [x.flip(0) for x in results]
    return spec.unflatten([x.movedim(0, dim) for x in results])


def _check(
    combine_fn: Any, leaves: list[Any], dim: int, reverse: Any, combine_mode: str
) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    if combine_mode == "pointwise" and any(x.device.type != "cuda" for x in leaves):
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU"
        )
    if any(not isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")
    if any(x.ndim <= dim or x.shape[dim] == 0 for x in leaves):
        raise ValueError(_NO_SCAN)


def _scan(combine: Combine, elements: list[Tensor]) -> list[Tensor]:
    """The scan along the first dimension, by pairs: its depth is a logarithm."""
    length = elements[0].shape[0]
    if length < 2:
        return elements
    pairs = combine([x[:-1:2] for x in elements], [x[1::2] for x in elements])
    odd = _scan(combine, pairs)
    if length == 2:
        even = [x[:1] for x in elements]
    else:
        before = odd if length % 2 else [x[:-1] for x in odd]
        rest = combine(before, [x[2::2] for x in elements])
        even = [
            torchshim.cat([x[:1], later])
            for x, later in zip(elements, rest, strict=True)
        ]
    return [_alternating(x, y) for x, y in zip(even, odd, strict=True)]


def _alternating(even: Tensor, odd: Tensor) -> Tensor:
    """Elements of the one and the other in turn."""
    n = odd.shape[0]
    turns = torchshim.stack([even[:n], odd], 1).flatten(0, 1)
    return torchshim.cat([turns, even[n:]]) if even.shape[0] > n else turns


def _fake_associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False
) -> Any:
    """The same, one element after the other: PyTorch's tests compare the two."""
    leaves, spec = _pytree.tree_flatten(xs)
    made: list[Any] = []
    length = leaves[0].shape[dim]
    for i in reversed(range(length)) if reverse else range(length):
        each = spec.unflatten([x.select(dim, i) for x in leaves])
        made.append(combine_fn(made[-1], each) if made else each)
    if reverse:
        made.reverse()
    return _pytree.tree_map(lambda *each: torchshim.stack(each, dim), *made)
