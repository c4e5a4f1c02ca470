"""Shapes of results as shapes of operands tell them: rules for `shape=` of an operator.

None where the operator's own function is to be asked, which tells what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.meta import broadcast_shape
from torchshim._ops._reducing import Dims, axes_of
from torchshim._ops.view_geometry import wrap_dim

Ints = tuple[int, ...]


def same(input: Ints, *rest: Any) -> Ints:
    """That of the first operand, or the size that is the first argument."""
    return input


def together(*shapes: Ints) -> Ints | None:
    """That to which all are expanded."""
    try:
        return broadcast_shape(shapes)
    except RuntimeError:
        return None


def masked(input: Ints, mask: Ints, value: Any) -> Ints | None:
    """That to which an operand and its mask are expanded."""
    return together(mask, input)


def product(a: Ints, b: Ints) -> Ints | None:
    """Of matrices, vectors and batches of matrices."""
    if not a or not b or a[-1] != b[-2:][0]:
        return None
    batch = together(a[:-2], b[:-2])
    return None if batch is None else (*batch, *a[-2:-1], *b[1:][-1:])


def batched(a: Ints, b: Ints) -> Ints | None:
    """Of as many matrices on either side: a batch of one is not expanded."""
    return product(a, b) if a[:1] == b[:1] else None


def linear(input: Ints, weight: Ints, bias: Ints | None) -> Ints | None:
    """Of a linear layer."""
    fits = len(weight) == 2 and input[-1:] == weight[1:] and bias in (None, weight[:1])
    return (*input[:-1], weight[0]) if fits else None


def rows(weight: Ints, indices: Ints, *rest: Any) -> Ints:
    """A row for each index."""
    return *indices, *weight[1:]


def taken(input: Ints, indices: Sequence[Ints | None]) -> Ints | None:
    """Of several index tensors, None for a whole dimension."""
    places = [d for d, index in enumerate(indices) if index is not None]
    common = together(*[index for index in indices if index is not None])
    if common is None or len(indices) > len(input):
        return None
    rest = [n for d, n in enumerate(input) if d not in places]
    adjacent = bool(places) and places[-1] - places[0] == len(places) - 1
    at = places[0] if adjacent else 0
    return (*rest[:at], *common, *rest[at:])


def normalized(input: Ints, normalized_shape: Ints, *given: Any) -> Ints | None:
    """That of the input, if it ends as asked for; `given`: weights, and numbers."""
    shape = tuple(normalized_shape)
    parts = [input[-len(shape) :], *(x for x in given if isinstance(x, tuple))]
    return input if all(part == shape for part in parts) else None


def joined(tensors: Sequence[Ints], dim: int) -> Ints | None:
    """Of tensors one after another along a dimension."""
    first = tensors[0]
    if first == (0,):
        return None
    axis = wrap_dim(dim, len(first))
    length = 0
    for shape in tensors:
        if len(shape) != len(first) or shape == (0,):
            return None
        length += shape[axis]
        if (*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]):
            return None
    return *first[:axis], length, *first[axis + 1 :]


def reduced(input: Ints, dim: Dims, keepdim: bool, *rest: Any) -> Ints:
    """Without some dimensions, or with one element in each of them."""
    axes = axes_of(dim, len(input))
    if keepdim:
        return tuple(1 if i in axes else n for i, n in enumerate(input))
    return tuple(n for i, n in enumerate(input) if i not in axes)
