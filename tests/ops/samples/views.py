"""Samples of the operators in `_ops/views.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, floats, sample, samples


@samples("detach")
def detach() -> Iterator[Sample]:
    yield sample(floats(2, 3))


@samples("view")
def view() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4), 6, 4).twice()
    yield sample(floats(2, 3, 4), (4, -1))
    yield sample(floats(2, 3, 4), -1)
    yield sample(floats(4, 2).T, 2, 2, 2)
    yield sample(floats(2, 1, 3), 2, 3, 1, 1)
    yield sample(floats(0, 3), 3, 0)
    yield sample(floats(2, 3), 5).raises()
    yield sample(floats(2, 3), -1, -1).raises()
    yield sample(floats(2, 3), -2, 3).raises()
    yield sample(floats(2, 3), -1, 4).raises()
    yield sample(floats(2, 3).T, 6).raises()
    yield sample(floats(0, 3), -1, 0).raises()


@samples("reshape")
def reshape() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4), (6, 4))
    yield sample(floats(2, 3, 4), (-1,))
    yield sample(floats(2, 3).T, (6,))
    yield sample(floats(2, 3).T, (3, 2))
    yield sample(floats(), (1, 1))
    yield sample(floats(2, 3), (5,)).raises()


@samples("flatten")
def flatten() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4))
    yield sample(floats(2, 3, 4), 1)
    yield sample(floats(2, 3, 4), 0, -2)
    yield sample(floats(3, 2).T)
    yield sample(floats())
    yield sample(floats(2, 3), 1, 0).raises()
    yield sample(floats(2, 3), 2).raises()


@samples("unflatten")
def unflatten() -> Iterator[Sample]:
    yield sample(floats(2, 6), 1, (2, 3))
    yield sample(floats(2, 6), -1, (-1, 3))
    yield sample(floats(2, 6), 1, (2, 2)).raises()
    yield sample(floats(2, 6), 1, ()).raises()


@samples("squeeze")
def squeeze() -> Iterator[Sample]:
    yield sample(floats(1, 2, 1))
    yield sample(floats(1, 2, 1), 0)
    yield sample(floats(1, 2, 1), 1)
    yield sample(floats(1, 2, 1), (0, -1))
    yield sample(floats(), 0)
    yield sample(floats(1, 2), 3).raises()
    yield sample(floats(1, 2), (0, 0)).raises()


@samples("unsqueeze")
def unsqueeze() -> Iterator[Sample]:
    yield sample(floats(2, 3), 0)
    yield sample(floats(2, 3), -1)
    yield sample(floats(3, 2).T, 1)
    yield sample(floats(2, 3), 3).raises()


@samples("transpose", "swapaxes")
def transpose() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4), 0, 2).twice()
    yield sample(floats(3, 2).T, -1, 0)
    yield sample(floats(), 0, -1)
    yield sample(floats(2, 3), 0, 2).raises()


@samples("t")
def t() -> Iterator[Sample]:
    yield sample(floats(2, 3))
    yield sample(floats(2))
    yield sample(floats())
    yield sample(floats(1, 2, 3)).raises()


@samples("permute")
def permute() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4), (2, 0, 1))
    yield sample(floats(3, 2).T, (-1, 0))
    yield sample(floats(2, 3), (0,)).raises()
    yield sample(floats(2, 3), (0, 0)).raises()
    yield sample(floats(2, 3), (0, 2)).raises()


@samples("movedim")
def movedim() -> Iterator[Sample]:
    yield sample(floats(2, 3, 4), 0, -1)
    yield sample(floats(2, 3, 4), (0, 1), (2, 0))
    yield sample(floats(2, 3), (0, 1), (0,)).raises()
    yield sample(floats(2, 3), (0, 0), (0, 1)).raises()
    yield sample(floats(2, 3), (0, 1), (0, 0)).raises()
    yield sample(floats(2, 3), 0, 2).raises()
