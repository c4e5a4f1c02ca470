"""Indices into tensors without elements: what is looked at, and when it is told."""

from __future__ import annotations

import pytest

import torchshim
from tests.oracle import attempt, case

OPERATORS = {
    "index_select": lambda x, i, s: x.index_select(0, i),
    "index_fill": lambda x, i, s: x.index_fill(0, i, 1.0),
    "index_copy": lambda x, i, s: x.index_copy(0, i, s),
    "index_add": lambda x, i, s: x.index_add(0, i, s),
    "getitem": lambda x, i, s: x[i],
    "last": lambda x, i, s: x[..., i],
    "index_put": lambda x, i, s: x.index_put((i,), s.new_ones(())),
    "accumulate": lambda x, i, s: x.index_put((i,), s.new_ones(()), accumulate=True),
    "take": lambda x, i, s: x.take(i),
    "take_along_dim": lambda x, i, s: x.take_along_dim(i),
}
# In PyTorch these fail within another function, in its words.
_OTHER_WORDS = {("index_fill", (0, 3)), ("index_copy", (0, 3))}
_OTHER_WORDS |= {("index_fill", (0,)), ("index_copy", (0,))}


@case.over(*OPERATORS)
def indices(torch, name):
    for shape in ((3, 0), (0, 3), (0,), (0, 0), (3, 2)):
        if (name, shape) in _OTHER_WORDS:
            continue
        for values in ([5], [0], [-1], []):
            index = torch.tensor(values, dtype=torch.int64)
            source = torch.zeros(len(values), *shape[1:])
            x = torch.zeros(shape)
            found = attempt(lambda *a: OPERATORS[name](*a).clone(), x, index, source)
            yield shape, values, found
        yield torch.ones(2) + 1


def test_an_index_out_of_range_is_told_where_the_result_is_shown():
    torch = torchshim
    found = torch.zeros(3, 0).index_select(0, torch.tensor([5]))
    with pytest.raises(RuntimeError, match="out of DATA bounds, id=5"):
        repr(found)
    assert torch.ones(2).tolist() == [1, 1]
