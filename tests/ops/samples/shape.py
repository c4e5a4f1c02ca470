"""Samples of the operators in `_ops/shape.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples import Sample, bf16, floats, ints, sample, samples


@samples("cat")
def cat() -> Iterator[Sample]:
    yield sample([floats(2, 3), floats(1, 3)]).twice()
    yield sample([floats(2, 3), ints(2, 1)], 1)
    yield sample([floats(2, 3), floats(0), floats(2, 3)], dim=-1)
    yield sample([ints(2), ints(3, dtype="int32")])
    yield sample([bf16([1, 2]), floats(2)])
    yield sample([floats(3, 2).T, floats(3, 2).T])
    yield sample([]).raises()
    yield sample([floats(2, 3), floats(2)]).raises()
    yield sample([floats(2, 3), floats(2, 2)]).raises()
    yield sample([floats(), floats()]).raises()
    yield sample([floats(2)], 1).raises()
    yield sample([floats(0), floats(0)], 1)
    yield sample([floats(0), ints(0)], -3)
    yield sample([floats(0)], 5)
    yield sample([floats(0), floats(2)], 1).raises()


@samples("stack")
def stack() -> Iterator[Sample]:
    yield sample([floats(2, 3), floats(2, 3)], 1).twice()
    yield sample([floats(), ints()])
    yield sample([floats(2), floats(2)], -1)
    yield sample([floats(2), floats(3)]).raises()
    yield sample([floats(2)], 2).raises()
    yield sample([]).raises()


@samples("hstack", "vstack", "dstack", "column_stack")
def stacks() -> Iterator[Sample]:
    yield sample([floats(2), floats(2)])
    yield sample([floats(2, 3), ints(2, 3)])
    yield sample([floats(), floats()])
    yield sample([floats(2, 2, 1), floats(2, 2, 1)])
    yield sample([]).raises()
    yield sample([floats(2, 3), floats(3, 2, 2)]).raises()


@samples("repeat")
def repeat() -> Iterator[Sample]:
    yield sample(floats(2, 3), 2, 3).twice()
    yield sample(floats(3), 2, 1, 0)
    yield sample(floats(), 2)
    yield sample(floats(2, 3), 2).raises()
    yield sample(floats(2, 3), -1, 2).raises()


@samples("tile")
def tile() -> Iterator[Sample]:
    yield sample(floats(2, 3), (2,))
    yield sample(floats(2), (3, 2))
    yield sample(floats(2, 3), ())


@samples("flip")
def flip() -> Iterator[Sample]:
    yield sample(floats(2, 3), (0, 1))
    yield sample(floats(3, 2).T, (-1,))
    yield sample(floats(2, 3), (0, 0)).raises()
    yield sample(floats(2, 3), (2,)).raises()


@samples("fliplr", "flipud")
def flips() -> Iterator[Sample]:
    yield sample(floats(2, 3))
    yield sample(floats()).raises()


@samples("roll")
def roll() -> Iterator[Sample]:
    yield sample(floats(2, 3), 1)
    yield sample(floats(2, 3), (1, -2), (0, 1))
    yield sample(floats(2, 3), 5, 1)
    yield sample(floats(0, 3), 1, 0)
    yield sample(floats(2, 3), (1, 2)).raises()
    yield sample(floats(2, 3), (1, 2), 0).raises()
    yield sample(floats(2, 3), ()).raises()


@samples("rot90")
def rot90() -> Iterator[Sample]:
    yield sample(floats(2, 3))
    yield sample(floats(2, 3), 2)
    yield sample(floats(2, 3), -1)
    yield sample(floats(2, 3, 2), 1, (2, 0))
    yield sample(floats(2, 3), 4)
    yield sample(floats(2)).raises()
    yield sample(floats(2, 3), 1, (0, 0)).raises()
    yield sample(floats(2, 3), 1, (0,)).raises()
    yield sample(floats(2, 3), 1, (0, 3)).raises()


@samples("tril", "triu")
def triangles() -> Iterator[Sample]:
    yield sample(floats(3, 4)).twice()
    yield sample(floats(2, 3, 3), -1)
    yield sample(ints(3, 3), 1)
    yield sample(floats(3)).raises()


@samples("diag_embed")
def diag_embed() -> Iterator[Sample]:
    yield sample(floats(2, 3))
    yield sample(floats(3), 1)
    yield sample(floats(2, 3), -2, 0, 2)
    yield sample(floats(2, 0))
    yield sample(floats(3), 0, 0, 0).raises()
    yield sample(floats()).raises()


@samples("diag")
def diag() -> Iterator[Sample]:
    yield sample(floats(3), 1)
    yield sample(floats(3, 4), -1)
    yield sample(floats(3, 4), 9)
    yield sample(floats(1, 2, 3)).raises()


@samples("diagflat")
def diagflat() -> Iterator[Sample]:
    yield sample(floats(2, 2))
    yield sample(floats(2), -1)
