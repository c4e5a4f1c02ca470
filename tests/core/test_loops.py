"""Recordings are cut where loops and iterations begin: the pieces are one program."""

from __future__ import annotations

import textwrap

import pytest

import torchshim as torch
from torchshim._core import record
from torchshim._core.loops import beginning, outermost_loop
from torchshim._core.record import local


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
    assert pieces[2] % 10 == 3  # three inputs, and whole iterations


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
    # In alternation: one that begins like the first of all, which was cut anywhere.
    assert len(set(pieces[1:-1])) <= 2 < 8 < len(pieces)
    assert sample() == first


def test_no_loop_at_all(pieces):
    x = torch.ones(2)
    exec("x = x + 1.0\n" * 400, {"x": x})  # no instruction comes again
    assert pieces[0] == 150


def run(script):
    """Runs a script; returns the lengths of its recordings as `pieces` saw them."""
    code = compile(textwrap.dedent(script), "script.py", "exec")
    exec(code, {"__name__": "__main__", "torch": torch})


def test_what_is_set_up_is_a_program_of_its_own(pieces, compiled):
    run(
        """
        x = torch.linspace(0, 1, 12)[:, None]
        y = (x * 3).sin()
        w = torch.ones(1, 1, requires_grad=True)

        def turn(x, y):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            w.grad = None
            return loss.item()

        def train():
            for epoch in range(2):
                for i in range(0, 12, 4):
                    turn(x[i : i + 4], y[i : i + 4])

        train()
        """
    )
    assert len(pieces) == 7
    assert len(set(pieces[1:])) == 1
    assert compiled() == 2


def test_a_turn_that_begins_with_a_constant(pieces, compiled):
    run(
        """
        w = torch.ones(3, requires_grad=True)
        x = (torch.arange(3) * 2.5).cosh()
        for turn in range(4):
            total = x.new_zeros(3)
            total = total + w * x
            total.sum().backward()
            w.grad.tolist()
        """
    )
    assert len(pieces) == 5
    assert compiled() == 3  # the first iteration has no gradient to add to


def test_steps_that_update_by_hand_end_where_the_next_begins(pieces, compiled):
    run(
        """
        w = torch.ones(5, requires_grad=True)
        b = torch.ones(1, requires_grad=True)
        x, y = torch.rand(10, 5), torch.rand(10)
        for epoch in range(3):
            for i in range(0, 10, 4):
                xb, yb = x[i : i + 4], y[i : i + 4]
                loss = ((xb @ w + b - yb) ** 2).mean()
                loss.backward()
                with torch.no_grad():
                    for p in (w, b):
                        p -= p.grad * 0.1
                        p.grad = None
        w.tolist()
        """
    )
    assert len(pieces) == 9
    assert compiled() == 2  # four examples, two examples


@pytest.mark.parametrize("read", ["loss", "step", "end"])
def test_batches_prepared_in_ever_other_ways_are_run_apart(compiled, read):
    """A box of another size is cut out of each; the step stays one program."""
    w = torch.eye(3).requires_grad_()
    optimizer = torch.optim.SGD([w], 0.1)
    before = torch.explain()
    for i in range(12):
        x = torch.ones(16, 3) + 1
        x[i : 12 + i // 3] = 0.0
        loss = (x @ w).tanh().sum()
        if read == "loss":
            loss.tolist()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if read == "step":
            loss.tolist()
        if i == 5:
            assert compiled() >= 3
            before = torch.explain()
    w.tolist()
    assert not [p for p in torch.explain(before).programs if p.outputs > 1]


def test_sums_that_begin_with_a_number(pieces, compiled):
    run(
        """
        w = torch.ones(3, requires_grad=True)
        x = torch.ones(3)
        for epoch in range(2):
            total, right, steps = 0.0, 0, 0
            for turn in range(3):
                loss = (w * x).sum()
                total += loss.detach()
                right += (loss > 0)
                with torch.no_grad():
                    steps += loss
                loss.backward()
                w.grad.tolist()
                w.grad = None
        """
    )
    assert len(set(pieces)) == 1
    assert compiled() == 1  # the first iteration as well


def test_accumulated_gradients_end_nothing(pieces):
    run(
        """
        w = torch.ones(3, requires_grad=True)
        x = torch.ones(3)
        for turn in range(4):
            (w * x).sum().backward()
        w.grad.tolist()
        """
    )
    assert len(pieces) == 1


def test_each_loop_is_entered_once(pieces):
    run(
        """
        a = torch.ones(3)
        while a.numel():
            b = a * 2
            c = b + [torch.ones(1) * n for n in range(3)][1]
            break
        for n in range(3):
            for m in range(2):
                b = b * c
        d = a + b
        for n in range(3):
            d = d * 2
        d.tolist()
        """
    )
    # Before the first loop nothing was recorded; the others end what was before them.
    assert len(pieces) == 3


def test_loops_within_modules_end_nothing(pieces):
    run(
        """
        class Net(torch.nn.Module):
            def forward(self, x):
                x = x + 1
                for n in range(3):
                    x = x * 2
                return x

        Net()(torch.ones(2)).tolist()
        """
    )
    assert len(pieces) == 1


def test_loops_around_the_script_do_not_count(pieces):
    x = torch.ones(2) + 1
    for _ in range(2):
        x = x * 2
    assert pieces == []
    assert outermost_loop() == outermost_loop() is not None  # pytest's


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
