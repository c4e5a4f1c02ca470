"""Scans: a state handed from slice to slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim
from torchshim import _pytree
from torchshim._tensor import Tensor

__all__ = ["scan"]

_NO_SCAN = (
    "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"
)


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """The last state, and what `combine_fn` gave for each slice of `xs`, stacked.

    `combine_fn` takes the state and a slice along the dimension and gives the next
    state, of the same shapes, and a result.

    >>> import torchshim as torch
    >>> from torchshim._higher_order_ops import scan
    >>> x = torch.tensor([1, 2, 3])
    >>> scan(lambda total, x: (total + x, total * x), torch.tensor(0), x)
    (tensor(6), tensor([0, 2, 9]))
    """
    leaves, spec = _pytree.tree_flatten(xs)
    start, state = _pytree.tree_flatten(init)
    _check(combine_fn, start, leaves, reverse)
    if not leaves:
        return init, []
    dims = leaves[0].ndim
    if not -max(dims, 1) <= dim < max(dims, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(dims, 1)}, "
            f"{max(dims, 1) - 1}], but got {dim})"
        )
    dim += dims if dim < 0 else 0
    if any(x.ndim <= dim or x.shape[dim] == 0 for x in leaves):
        raise RuntimeError(_NO_SCAN)
    slices = [x.movedim(dim, 0) for x in leaves]
    order = range(slices[0].shape[0])
    made: list[Any] = []
    carry = init
    for i in reversed(order) if reverse else order:
        carry, result = combine_fn(carry, spec.unflatten([x[i] for x in slices]))
        _check_carry(carry, start, state)
        made.append(result)
    if reverse:
        made.reverse()
    return carry, _pytree.tree_map(
        lambda *each: torchshim.stack(each).movedim(0, dim), *made
    )


def _check(combine_fn: Any, start: list[Any], leaves: list[Any], reverse: Any) -> None:
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not start:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, each in (("init", start), ("xs", leaves)):
        for x in each:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"All {name} leaves must be a Tensor but got {x}")


def _check_carry(carry: Any, start: list[Any], state: Any) -> None:
    found, spec = _pytree.tree_flatten(carry)
    if spec != state:
        raise RuntimeError(
            f"The tree of the carry must stay as it was: {spec} instead of {state}."
        )
    for at, (a, b) in enumerate(zip(found, start, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise RuntimeError(
                "Expected init and carry to have same metadata but found:\n"
                f"pair[{at}] differ, {b.dtype} {list(b.shape)} vs {a.dtype} "
                f"{list(a.shape)}"
            )


def _fake_scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """What PyTorch's tests compare `scan` with; nothing else happens here."""
    if not _pytree.tree_leaves(xs):
        return init, []
    return scan(combine_fn, init, xs, dim=dim, reverse=reverse)
