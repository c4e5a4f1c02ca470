"""Recordings that differ in what no gradient depends on: the rest is one program."""

from __future__ import annotations

import gc
import signal
from collections import OrderedDict

import pytest

import torchshim as torch
from torchshim._core import parts, program
from torchshim._core.parts import Renumbered, Split
from torchshim._core.program import CACHE


@pytest.fixture(autouse=True)
def afresh(monkeypatch, own_trie):
    """Nothing is known of what other tests recorded."""
    monkeypatch.setattr(parts, "_shared", {})
    monkeypatch.setattr(parts, "_firsts", OrderedDict())
    monkeypatch.setattr(CACHE, "_programs", OrderedDict())


def last():
    """What ran the last recording."""
    return next(reversed(CACHE._programs.values()))


class Learner:
    """Learns values of states; another network gives those of the states after them."""

    def __init__(self):
        torch.manual_seed(0)
        self.own, self.other = (
            torch.nn.Sequential(
                torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
            )
            for _ in range(2)
        )
        self.optimizer = torch.optim.Adam(self.own.parameters(), lr=0.01)
        self.states = torch.randn(6, 3)

    def step(self, n, read=False):
        values = self.own(self.states)[:, 0]
        expected = torch.zeros(6)
        with torch.no_grad():
            later = self.states[6 - n :] * 1.5
            expected[:n] = self.other(later).relu()[:, 0]
            if read:
                self.largest = expected.max()
        self.expected = expected * 0.9 + 1
        loss = torch.nn.functional.smooth_l1_loss(values, self.expected)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def eager(counts):
    """The losses, where each operator is computed alone."""
    learner, found = Learner(), []
    for n in counts:
        values = learner.own(learner.states)[:, 0]
        values.sum().item()
        expected = torch.zeros(6)
        with torch.no_grad():
            expected[:n] = learner.other(learner.states[6 - n :] * 1.5).relu()[:, 0]
        expected = expected * 0.9 + 1
        expected.sum().item()
        loss = torch.nn.functional.smooth_l1_loss(values, expected)
        loss.item()
        learner.optimizer.zero_grad()
        loss.backward()
        for p in learner.own.parameters():
            p.grad.sum().item()
        learner.optimizer.step()
        found.append(loss.item())
    return found


def test_the_rest_is_compiled_once(compiled, all_compiled):
    counts = [6, 5, 4, 3, 2, 4, 3, 6, 1, 2]
    learner, found, made = Learner(), [], []
    start = torch.explain()
    for n in counts:
        before = compiled()
        found.append(learner.step(n))
        made.append(compiled() - before)
    # Two whole ones; a first part and the rest; then first parts.
    assert made == [1, 1, 2, 1, 1, 0, 0, 0, 1, 0]
    assert isinstance(last(), Split) and isinstance(last().rest, Renumbered)
    assert last().rest.lowered is next(
        made.rest.lowered for made in CACHE._programs.values() if type(made) is Split
    )
    assert found == pytest.approx(eager(counts), rel=1e-5)
    reasons = [each.reason for each in torch.explain(start).programs]
    assert sum("which varies" in reason for reason in reasons) == 1


def test_first_parts_that_differ_in_integers_alone_are_one(compiled, all_compiled):
    w = torch.ones(4, requires_grad=True)
    data = torch.arange(12.0)
    for start in 0, 3, 5, 1, 7:
        with torch.no_grad():
            x = (data[start : start + 4] + 1) * 2
        y = (w * x).sin()
        for _ in range(8):
            y = y.sin() + x
        y.sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
        w.tolist()
    assert not any(type(made) is Split for made in CACHE._programs.values())
    assert compiled() <= 2


def test_values_of_the_first_part_live_on(all_compiled):
    learner = Learner()
    for n in 6, 5, 4, 3, 2, 3:
        learner.step(n, read=True)
        with torch.no_grad():
            expected = learner.other(learner.states[6 - n :] * 1.5).relu()[:, 0]
        torch.testing.assert_close(learner.expected[:n], expected * 0.9 + 1)
        assert learner.expected[n:].tolist() == [1.0] * (6 - n)
        assert learner.largest.item() == expected.max().clamp(min=0).item()
    assert any(type(made) is Split for made in CACHE._programs.values())


def test_the_rest_overwrites_parameters(all_compiled):
    learner = Learner()
    for n in 6, 5, 4, 3:
        learner.step(n)
    rest = last().rest.program
    assert type(rest) is program.Program
    assert len(rest.inputs[0]) == 4 * 3  # parameters, and two moments of each


def wrong_labels(learner, n, label):
    """A step whose two parts have a check each."""
    scores = learner.own(learner.states)
    with torch.no_grad():
        picked = learner.states[:n].gather(0, torch.full((1, 3), label % 100))
    loss = (
        (scores * picked.sum()).cos().gather(1, torch.full((6, 1), label // 100)).sum()
    )
    learner.optimizer.zero_grad()
    loss.backward()
    learner.optimizer.step()
    return loss.item()


@pytest.mark.parametrize("label", [99, 300])
def test_errors_that_depend_on_data(all_compiled, label):
    learner = Learner()
    for n in 6, 5, 4, 3:
        wrong_labels(learner, n, 1)
    assert type(last()) is Split
    with pytest.raises(RuntimeError, match=f"index {max(label % 100, label // 100)}"):
        wrong_labels(learner, 3, label)
    before = CACHE.added
    assert wrong_labels(learner, 3, 2) == pytest.approx(wrong_labels(learner, 3, 2), 1)
    assert CACHE.added == before


@pytest.mark.parametrize("part", [0, 1])
def test_an_error_in_a_part_takes_the_recording_back(all_compiled, monkeypatch, part):
    learner = Learner()
    for n in 6, 5, 4, 3:
        learner.step(n)
    before = [p.tolist() for p in learner.own.parameters()]
    runs = []
    run = program.Program._run

    def failing(self, *args):
        runs.append(self)
        if len(runs) > part:
            raise ValueError("no")
        run(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(program.Program, "_run", failing)
        with pytest.raises(ValueError, match="no"):
            learner.step(3)
    assert [p.tolist() for p in learner.own.parameters()] == before
    assert learner.step(3) < 10


@pytest.mark.parametrize("part", [0, 1])
def test_an_interrupt_between_the_parts(all_compiled, monkeypatch, part):
    """The recording stays as it is, or is handed out whole."""
    learners = Learner(), Learner()
    for learner in learners:
        for n in 6, 5, 4, 3:
            learner.step(n)
    runs = []
    run = program.Program._run

    def interrupted(self, *args):
        run(self, *args)
        runs.append(self)
        if len(runs) == part + 1:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(program.Program, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learners[0].step(3)
    learners[1].step(3)
    mine, other = ([p.tolist() for p in x.own.parameters()] for x in learners)
    assert mine == other


def test_other_marks_on_the_way_are_the_same_program(compiled, all_compiled):
    """What is recorded and used by nobody makes no other program."""
    learner = Learner()
    x = torch.randn(6, 3)
    for unused in 0, 1, 1, 0:
        for _ in range(unused):
            x + 1
        loss = learner.own(learner.states * x).square().sum()
        learner.optimizer.zero_grad()
        loss.backward()
        learner.optimizer.step()
        loss.item()
    assert compiled() == 1


def test_a_preparation_that_comes_again_is_recorded_with_its_step(all_compiled):
    learner = Learner()

    def step(n):
        with torch.no_grad():
            prepared = torch.zeros(6, 3)
            prepared[:n] = learner.states[:n] * 2
        loss = learner.own(prepared).square().sum()
        learner.optimizer.zero_grad()
        loss.backward()
        learner.optimizer.step()
        return loss.item()

    for n in [6, 5, 4, 3] * 2:
        step(n)
    flushes = torch._core.record.local.rec.flushes
    step(3)
    assert torch._core.record.local.rec.flushes == flushes + 2
    for _ in range(64):
        step(3)
    flushes = torch._core.record.local.rec.flushes
    step(3)
    assert torch._core.record.local.rec.flushes == flushes + 1
    assert type(last()) is Split


def test_tables_are_bounded(all_compiled, monkeypatch):
    monkeypatch.setattr(parts, "_STRUCTURES", 2)
    learner = Learner()
    for n in 6, 5, 4:
        learner.step(n)
    assert len(parts._shared) == 4  # two whole ones, a first part, the rest
    CACHE._programs.clear()
    gc.collect()
    for width in 2, 3, 4:
        w = torch.ones(width, requires_grad=True)
        x = torch.ones(width).cumsum(0) * 2
        for _ in range(9):
            x = (x * w).sin()
        x.sum().backward()
        w.grad.tolist()
    assert len(parts._shared) == 3
    assert len(parts._firsts) == 2
