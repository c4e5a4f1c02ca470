"""Operands that PyTorch arranges anew, and so saves a copy of.

Where the operand's memory has another order than a product or a normalization takes, or
it is expanded.
A write to the operand does not change its copy: no error, and the gradient that the
operand had before. (Where a view does, that is what PyTorch saves.)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from torchshim._core.gradients import COPIES
from torchshim._core.meta import contiguous_strides
from torchshim._ops._common import broadcast_shapes
from torchshim._ops.view_geometry import Ints, view_strides

# Whether each of the two operands is copied.
Copied = tuple[bool, bool]


class _Laid(NamedTuple):
    """The sizes and strides of an operand, or of a view of it."""

    shape: Ints
    strides: Ints

    @classmethod
    def of(cls, x: Any) -> _Laid:
        return cls(tuple(x.shape), tuple(x.strides))

    def permuted(self, order: Sequence[int]) -> _Laid:
        return _Laid(
            tuple(self.shape[d] for d in order), tuple(self.strides[d] for d in order)
        )

    def expanded(self, batch: Ints, kept: int) -> _Laid:
        """With the last `kept` dimensions as they are, the others those of a batch."""
        lead = len(self.shape) - kept
        sizes, steps = self.shape[:lead], self.strides[:lead]
        new = (0,) * (len(batch) - lead) + tuple(
            0 if size == 1 else step for size, step in zip(sizes, steps, strict=True)
        )
        return _Laid(batch + self.shape[lead:], new + self.strides[lead:])

    def copies(self, size: Sequence[int]) -> bool:
        """Whether `reshape(size)` does."""
        return view_strides(self.shape, self.strides, tuple(size)) is None


def _product(wrt: Collection[int], input: Any, other: Any) -> Copied:
    """Of `matmul`: the larger operand as one matrix, or batches of both expanded."""
    return _matmul(_Laid.of(input), _Laid.of(other), 0 in wrt, 1 in wrt)


def _matmul(a: _Laid, b: _Laid, a_tracked: bool, b_tracked: bool) -> Copied:
    n, m = len(a.shape), len(b.shape)
    if n <= 2 and m <= 2:
        return False, False
    if min(n, m) <= 2:
        swapped = m > n
        larger = b.permuted([*range(m - 2), m - 1, m - 2]) if swapped else a
        dense = n != 2 and all(
            step == after * size
            for step, after, size in zip(
                larger.strides[:-2],
                larger.strides[1:-1],
                larger.shape[1:-1],
                strict=True,
            )
        )
        if (a_tracked if swapped else b_tracked) or dense:
            size = math.prod(larger.shape[:-1]), larger.shape[-1]
            copied = larger.copies(size)
            return (False, copied) if swapped else (copied, False)
    elif n == m == 3 and a.shape[0] != b.shape[0]:
        # As if the one that is repeated were a matrix.
        if a.shape[0] == 1 and a_tracked:
            return _matmul(a.permuted((1, 2)), b, a_tracked, b_tracked)
        if b.shape[0] == 1 and b_tracked:
            return _matmul(a, b.permuted((1, 2)), a_tracked, b_tracked)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    found = []
    for x in (a, b):
        kept = min(len(x.shape), 2)
        spread = x.expanded(batch, kept)
        found.append(spread.copies((math.prod(batch), *x.shape[-kept:])))
    return found[0], found[1]


def _linear(
    wrt: Collection[int], input: Any, weight: Any, bias: Any = None
) -> Copied | None:
    if len(weight.shape) != 2:
        return None
    transposed = _Laid.of(weight).permuted((1, 0))
    return _matmul(_Laid.of(input), transposed, 0 in wrt, 1 in wrt)


def _tensordot(
    wrt: Collection[int],
    input: Any,
    other: Any,
    dims_self: Ints,
    dims_other: Ints,
) -> Copied:
    """Both as matrices: what is summed over is last in one, and first in the other."""
    a, b = _Laid.of(input), _Laid.of(other)
    first = [d % len(a.shape) for d in dims_self]
    second = [d % len(b.shape) for d in dims_other]
    rows = [d for d in range(len(a.shape)) if d not in first]
    columns = [d for d in range(len(b.shape)) if d not in second]
    if any(a.shape[x] != b.shape[y] for x, y in zip(first, second, strict=True)):
        return True, True  # one is summed before
    depth = math.prod(a.shape[d] for d in first)
    a, b = a.permuted([*rows, *first]), b.permuted([*second, *columns])
    return (
        a.copies((math.prod(a.shape[: len(rows)]), depth)),
        b.copies((depth, math.prod(b.shape[len(second) :]))),
    )


def _inner(wrt: Collection[int], input: Any, other: Any) -> Copied | None:
    if not input.shape or not other.shape:
        return None
    return _tensordot(wrt, input, other, (-1,), (-1,))


def _einsum(wrt: Collection[int], equation: str, operands: Any) -> Copied | None:
    """As batches of matrices, the dimensions in the order of the result's labels."""
    if len(operands) != 2:
        return None
    left, right = equation.split("->")
    terms = left.split(",")
    labels = [*right, *sorted({*left} - {",", *right})]
    first, second = (
        _by_label(term, x, labels) for term, x in zip(terms, operands, strict=True)
    )
    shared, rows, columns, summed = [], [], [], []
    copied = [False, False]
    for d, label in enumerate(labels):
        mine, others = first.shape[d] != 1, second.shape[d] != 1
        if label not in right:
            summed.append(d)
            if mine != others:  # summed before
                copied[0 if mine else 1] = True
        elif mine and others:
            shared.append(d)
        else:
            (rows if mine else columns).append(d)

    def size(x: _Laid, dims: Sequence[int]) -> int:
        return math.prod(x.shape[d] for d in dims)

    for i, (x, order, parts) in enumerate(
        (
            (first, [*shared, *rows, *summed, *columns], (shared, rows, summed)),
            (second, [*shared, *summed, *columns, *rows], (shared, summed, columns)),
        )
    ):
        if not copied[i]:
            copied[i] = x.permuted(order).copies([size(x, part) for part in parts])
    return copied[0], copied[1]


def _by_label(term: str, x: Any, labels: Sequence[str]) -> _Laid:
    """An operand with one dimension for each label: of a repeated one the diagonal."""
    size, step = dict.fromkeys(labels, 1), dict.fromkeys(labels, 0)
    for label, n, stride in zip(term, x.shape, x.strides, strict=True):
        size[label] = n
        step[label] += stride
    return _Laid(tuple(size[c] for c in labels), tuple(step[c] for c in labels))


def _is_dense(x: _Laid) -> bool:
    steps = contiguous_strides(x.shape)
    return all(
        size == 1 or step == other
        for size, step, other in zip(x.shape, x.strides, steps, strict=True)
    )


def _group_norm(
    wrt: Collection[int], input: Any, *rest: Any
) -> tuple[bool | None, ...]:
    """The input is made contiguous, in the order of its channels where it has one."""
    x = _Laid.of(input)
    n = len(x.shape)
    kept = _is_dense(x) or (n in (4, 5) and _is_dense(x.permuted([0, *range(2, n), 1])))
    return (None if kept else True,)


def _instance_norm(
    wrt: Collection[int], input: Any, *rest: Any
) -> tuple[bool | None, ...]:
    return (None if _is_dense(_Laid.of(input)) else True,)


COPIES.update(
    group_norm=_group_norm,
    instance_norm_train=_instance_norm,
    matmul=_product,
    linear=_linear,
    _tensordot=_tensordot,
    inner=_inner,
    _einsum=_einsum,
)
