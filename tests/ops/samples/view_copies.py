"""Samples of the operators in `_ops/view_copies.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, sample, samples


@samples("alias_copy")
def alias() -> Iterator[Sample]:
    yield sample(floats(2, 3))
    yield sample(floats(3, 2).T)


@samples("t_copy")
def transposed() -> Iterator[Sample]:
    yield sample(floats(2, 3))
    yield sample(floats(2))
    yield sample(floats(2, 3, 4)).raises()


@samples("squeeze_copy")
def squeezed() -> Iterator[Sample]:
    yield sample(floats(2, 1, 3))
    yield sample(floats(2, 1, 3), 1)
    yield sample(floats(1, 2, 1), (0, 2))


@samples("unsqueeze_copy")
def unsqueezed() -> Iterator[Sample]:
    yield sample(floats(2, 3), -1)
    yield sample(floats(2, 3), 5).raises()


@samples("transpose_copy")
def swapped() -> Iterator[Sample]:
    yield sample(floats(2, 3), 0, 1)
    yield sample(floats(2, 3), 0, 2).raises()


@samples("permute_copy")
def permuted() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4), (2, 0, 1))
    yield sample(floats(2, 3), (0, 0)).raises()


@samples("expand_copy")
def expanded() -> Iterator[Sample]:
    yield sample(floats(3, 1), (2, 3, 4))
    yield sample(floats(3, 1), (3,)).raises()
    yield sample(floats(3, 2), (3, 4)).raises()


@samples("diagonal_copy")
def diagonals() -> Iterator[Sample]:
    yield sample(floats(3, 3))
    yield sample(floats(3, 4, 2), offset=1, dim1=0, dim2=1)
    yield sample(floats(3)).raises()


@samples("unfold_copy")
def windows() -> Iterator[Sample]:
    yield sample(floats(7), 0, 3, 2)
    yield sample(floats(2), 0, 3, 2).raises()
