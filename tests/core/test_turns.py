"""Long loops are cut where their turns begin, so that the pieces are one program."""

from __future__ import annotations

import pytest

import torchshim as torch
from torchshim._core import record
from torchshim._core.record import local
from torchshim._core.turns import beginning


@pytest.fixture
def pieces(monkeypatch):
    """Lengths of the recordings that were flushed since the test began."""
    monkeypatch.setattr(record, "LENGTH_BOUND", 100)
    monkeypatch.setattr(record, "SEARCH_BOUND", 50)
    local.rec.flush()
    lengths = []
    flush = record.flush

    def note(rec):
        lengths.append(rec.state.depth)
        return flush(rec)

    monkeypatch.setattr(record, "flush", note)
    return lengths


def step(x, w):
    for _ in range(3):
        x = torch.tanh(x @ w)
    return x


def test_a_loop_in_the_script(pieces):
    x, w, b = torch.ones(2, 2), torch.eye(2), torch.ones(2)
    x = x.cos()
    for _ in range(100):
        x = step(x, w)
        x = x * 0.5 + b
        x = x - x.mean()
    x.tolist()
    assert len(pieces) > 6
    assert len(set(pieces[2:-1])) == 1
    assert pieces[2] % 10 == 3  # three inputs, and whole turns


def test_a_loop_of_one_line(pieces):
    x, w = torch.ones(2, 2), torch.eye(2)
    for _ in range(200):
        x = step(x, w)
    x.tolist()
    assert len(pieces) > 6
    assert len(set(pieces[2:-1])) == 1


def test_the_pieces_are_few_programs(pieces):
    def sample():
        x, w = torch.ones(2, 2), torch.eye(2)
        for _ in range(100):
            x = step(x, w)
            x = x.sin() + x.sum()
            x = x.exp() / (1 + x.exp())
        return x.tolist()

    first = sample()
    # In turns: one that begins like the first of all, which was cut anywhere.
    assert len(set(pieces[1:-1])) <= 2 < 8 < len(pieces)
    assert sample() == first


def test_no_loop_at_all(pieces):
    x = torch.ones(2)
    exec("x = x + 1.0\n" * 400, {"x": x})  # no instruction comes again
    assert pieces[0] == 150


def test_beginnings():
    code, other = step.__code__, test_beginnings.__code__
    outer = (1, code, 10)
    assert beginning([outer], [(1, code, 4)]) == (0, False, 4, code)
    assert beginning([outer], [(1, code, 12)]) is None
    assert beginning([outer], [outer]) == (0, True, 10, code)
    assert beginning([outer], [outer, (2, other, 0)]) is None
    assert beginning([outer, (2, other, 8)], [outer, (3, other, 0)]) == (
        0,
        True,
        10,
        code,
    )
    assert beginning([], []) is None
    assert beginning([outer], [(2, other, 0)]) is None
