"""Recordings that are run event by event: where each has another structure."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque

import numpy as np
import pytest

import torchshim as torch
from torchshim._core import program, stepwise
from torchshim._core.program import CACHE
from torchshim._core.stepwise import Stepwise


@pytest.fixture(autouse=True)
def afresh(monkeypatch, all_compiled):
    """Nothing is known of what other tests recorded."""
    for table in "KERNELS", "_known", "_made":
        monkeypatch.setattr(stepwise, table, OrderedDict())
    # A program takes as long as ten kernels, whatever it took.
    monkeypatch.setattr(stepwise, "_cost", lambda made: 0.3)
    monkeypatch.setattr(stepwise, "_making", deque(maxlen=0))
    monkeypatch.setattr(stepwise, "_KERNEL", 0.03)
    monkeypatch.setattr(CACHE, "_programs", OrderedDict())


@pytest.fixture
def at_once(monkeypatch):
    """Every recording is run event by event, for ever."""
    monkeypatch.setattr(stepwise, "_LEAST_EVENTS", 0)
    monkeypatch.setattr(stepwise, "_wasted", lambda line: (1e9, 1))
    monkeypatch.setattr(stepwise, "_ON_HOST", 0)


def last():
    """What ran the last recording."""
    return next(reversed(CACHE._programs.values()))


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 0.75

    @staticmethod
    def backward(ctx, grad):
        return grad * 0.75


def alternating(x, turns, scaled=lambda x: x * 0.75):
    """A chain whose structure is the bits of `turns`, and what it gives."""
    expected = x.detach().numpy().astype(np.float64)
    for turn in turns:
        x = (x + 1.5).sin() if turn else scaled(x)
        expected = np.sin(expected + 1.5) if turn else expected * 0.75
    return x, expected


def structures(count, length=48):
    rng = np.random.default_rng(0)
    return [rng.integers(0, 2, length).tolist() for _ in range(count)]


@pytest.mark.parametrize("scaled", [lambda x: x * 0.75, Scaled.apply])
def test_structures_that_differ_share_kernels(scaled):
    x = torch.linspace(0, 1, 21).view(3, 7).clone().requires_grad_()
    x.tolist()
    made = []
    for turns in structures(12):
        start = program.count()
        y, expected = alternating(x, turns, scaled)
        np.testing.assert_allclose(y.tolist(), expected, rtol=1e-5)
        made.append([entry.events for entry in program.compiled_since(start)])
    programs = [events for events in made if events and max(events) > 1]
    assert len(programs) == 3
    # Then one kernel for each kind of event, and nothing more.
    assert made[len(programs)] == [1, 1, 1]
    assert made[len(programs) + 1 :] == [[]] * (11 - len(programs))
    assert isinstance(last(), Stepwise)


def test_gradients_and_updates(at_once):
    def trained(forced):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh())
        optimizer = torch.optim.Adam(net.parameters(), 0.05)
        before = net[0].weight
        for turns in structures(3, 6):
            x, _ = alternating(torch.linspace(-1, 1, 8).view(2, 4), turns)
            optimizer.zero_grad()
            net(x).square().sum().backward()
            optimizer.step()
            assert isinstance(last(), Stepwise) == forced
        assert net[0].weight is before
        return [p.tolist() for p in net.parameters()]

    found = trained(True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepwise, "_wasted", lambda line: (0.0, 0))
        CACHE._programs.clear()
        expected = trained(False)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_pieces_at_any_place_share_a_kernel(at_once):
    x = torch.arange(12.0).view(6, 2)
    x.tolist()
    start = program.count()
    for k in range(-6, 6):
        assert x[k].tolist() == [2 * (k % 6), 2 * (k % 6) + 1]
    # Integers that are known to vary are runtime scalars of the recording itself.
    assert program.count() - start <= 2
    start = program.count()
    for k in range(4):
        assert x[k : k + 2].sum(0).tolist() == [4 * k + 2, 4 * k + 4]
    assert program.count() - start <= 3


def test_checks_are_told_with_their_own_lines(at_once):
    table = torch.arange(10.0).view(5, 2)

    def looked_up(index):
        return torch.nn.functional.embedding(torch.tensor(index), table).sum()

    assert (looked_up([0, 1]) + looked_up([4])).item() == 23.0
    good = looked_up([2])
    with pytest.raises(IndexError, match="index out of range in self") as caught:
        (good + looked_up([7])).item()
    [note] = caught.value.__notes__
    assert "embedding" in note
    assert isinstance(last(), Stepwise)
    assert good.item() == 9.0  # what was computed is there


def test_numbers_are_runtime_scalars(at_once):
    x = torch.ones(3)
    x.tolist()
    (x * 0.5).tolist()
    start = program.count()
    for k in range(5):
        assert (x * (k + 0.25)).tolist() == [k + 0.25] * 3
    assert program.count() == start


def test_python_code_in_the_graph(at_once):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = torch.tensor([1.0, 3.0], requires_grad=True)
    seen = []
    y = Double.apply(x).sin()
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.sum().backward()
    assert seen == [[1.0, 1.0]]
    np.testing.assert_allclose(x.grad.tolist(), np.cos([2, 6]) * [1, 3], rtol=1e-6)


def test_what_nobody_needs_is_let_go_of(at_once, monkeypatch):
    held = []
    call = stepwise.Kernel.__call__

    def spy(self, *given):
        found, report = call(self, *given)
        held.append((sum(ref() is not None for ref in refs), len(given)))
        refs.extend(weakref.ref(array) for array in found)
        return found, report

    refs = []
    monkeypatch.setattr(stepwise.Kernel, "__call__", spy)
    x = torch.rand(5, 3)
    x.tolist()
    for _ in range(10):
        x = x.sin()
    x.tolist()
    # One array is an operand, and the one before it is gone.
    assert [alive for alive, _ in held] == [0] + [1] * 9


def test_what_is_met_often_becomes_a_program(at_once, monkeypatch):
    monkeypatch.setattr(stepwise, "_wasted", lambda line: (10.0, 1))
    monkeypatch.setattr(stepwise, "_EVENT", 1.6)
    at_x = np.linspace(0, 1, 9)
    x = torch.from_numpy(at_x.astype(np.float32)).clone().requires_grad_()
    x.tolist()
    made = []
    for _ in range(8):
        before = torch.explain()
        value = x.exp().cos().sum()
        value.backward()
        assert value.item() == pytest.approx(np.cos(np.exp(at_x)).sum(), rel=1e-5)
        made.append([p.events for p in torch.explain(before).programs])
    # Kernels; one more for the sum of gradients, and what that makes another recording;
    # when this has run three times, its program.
    assert made == [[1] * 7, [1], [], [10], [], [], [], []]
    assert isinstance(last(), Stepwise) and last().entry is None
    expected = -8 * np.sin(np.exp(at_x)) * np.exp(at_x)
    np.testing.assert_allclose(x.grad.tolist(), expected, rtol=1e-5)


def test_an_error_takes_the_recording_back(at_once, monkeypatch):
    x = torch.arange(4.0)
    x.tolist()
    x += 1
    call = stepwise.Kernel.__call__
    calls = []

    def failing(self, *given):
        calls.append(self)
        if len(calls) == 2:
            raise RuntimeError("RESOURCE_EXHAUSTED: none left")
        return call(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(stepwise.Kernel, "__call__", failing)
        with pytest.raises(RuntimeError, match="none left"):
            (x * 2).tolist()
    # As before the recording, whose write is lost with it.
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert (x * 2).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_threads_share_kernels(at_once):
    failures = []

    def work(seed):
        try:
            x = torch.linspace(0, 1, 5)
            for turns in structures(6, 8):
                y, expected = alternating(x, turns)
                np.testing.assert_allclose(y.tolist(), expected, rtol=1e-5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_tables_are_bounded(at_once, monkeypatch):
    monkeypatch.setattr(stepwise, "_KERNELS", 4)
    monkeypatch.setattr(stepwise, "_KINDS", 4)
    monkeypatch.setattr(stepwise, "_LINES", 1)
    for n in range(2, 9):
        assert torch.ones(n, 11).sum().item() == 11 * n
        (torch.ones(n) * 2).tolist()
    assert [len(stepwise.KERNELS), len(stepwise._known)] == [4, 4]
    assert len(stepwise._made) == 1


def test_small_events_that_may_not_come_again_are_not_compiled(at_once, monkeypatch):
    monkeypatch.setattr(stepwise, "_ON_HOST", 1.0)
    monkeypatch.setattr(stepwise, "_SMALL", 20)
    x, y, z = torch.arange(4.0), torch.arange(8.0), torch.arange(64.0)
    before = torch.explain()
    small = x.sin() + 1
    picked, large = y[(x + 2).long()], z.cos()
    assert picked.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert small.tolist() == pytest.approx(np.sin(np.arange(4)) + 1)
    assert large.tolist() == pytest.approx(np.cos(np.arange(64)), abs=1e-6)
    with pytest.raises(IndexError, match="index 8 is out of bounds"):
        y[(x + 5).long()].tolist()
    made = [p.reason.split("(")[0] for p in torch.explain(before).programs]
    assert made == ["cos"]
