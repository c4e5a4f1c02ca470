"""Repeated parts of a recording: loops and functions of its program."""

from __future__ import annotations

import re

import numpy as np
import pytest

import torchshim as torch
from torchshim._core import convolutions, lower, outline, program
from torchshim._core.record import local


@pytest.fixture
def found(monkeypatch, all_compiled):
    """What was found in the recordings since the test began, flush by flush."""
    local.rec.flush()
    flushes = []
    find = outline.find

    def note(events, operands, outputs):
        places = find(events, operands, outputs)
        flushes.append((len(events), list(places.values())))
        return places

    monkeypatch.setattr(outline, "find", note)
    return flushes


def both(monkeypatch, run):
    """The results of `run` with outlines, and without."""
    local.rec.flush()
    made = run()
    monkeypatch.setattr(outline, "find", lambda *args: {})
    torch._core.program.CACHE._programs.clear()
    return made, run()


def recurrence(cell, steps):
    torch.manual_seed(0)
    x = torch.randn(3, steps)
    model = cell()
    h = torch.zeros(3, 4)
    total = 0.0
    for t in range(steps):
        h = model(x[:, t : t + 1], h)
        total = total + h.sum() * (1.0 + t)
    total.backward()
    return [total.item(), h.tolist(), *(p.grad.tolist() for p in model.parameters())]


def test_a_recurrence_is_a_loop(found, monkeypatch):
    run = lambda: recurrence(lambda: torch.nn.GRUCell(1, 4), 12)  # noqa: E731
    made, expected = both(monkeypatch, run)
    events, places = found[-1]
    loops = [p for p in places if isinstance(p, outline.Loop)]
    assert len(loops) == 2  # forward and backward
    assert sum(loop.length for loop in loops) > 0.7 * events
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_blocks_with_weights_of_their_own(found, monkeypatch):
    def run():
        torch.manual_seed(0)
        blocks = [
            torch.nn.Sequential(
                torch.nn.LayerNorm(4), torch.nn.Linear(4, 4), torch.nn.GELU()
            )
            for _ in range(12)
        ]
        y = x = torch.randn(2, 4, requires_grad=True)
        for block in blocks:
            y = y + block(y)
        (y**2).sum().backward()
        return [x.grad.tolist(), *(b[1].weight.grad.tolist() for b in blocks)]

    made, expected = both(monkeypatch, run)
    assert any(isinstance(p, outline.Loop) for p in found[-1][1])
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_few_blocks_are_calls_of_one_function(found, monkeypatch):
    def run():
        w = torch.tensor([[1.0, 0.5], [0.25, -1.0]], requires_grad=True)
        x = torch.tensor([[1.0, 2.0]])
        for _ in range(5):
            x = torch.softmax(x @ w, -1)
            x = torch.sin(x) @ w
            x = torch.cos(x) + x
            x = torch.relu(x) * 2.0
        x.sum().backward()
        return [x.tolist(), w.grad.tolist()]

    made, expected = both(monkeypatch, run)
    places = found[0][1]
    assert len([p for p in places if isinstance(p, outline.Repetition)]) >= 5
    assert not any(isinstance(p, outline.Loop) for p in places)
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_checks_in_a_loop_name_the_line(found):
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    w = torch.tensor([[1.0, 0.5], [0.25, -1.0]])
    indices = [torch.tensor([0])] * 20 + [torch.tensor([7])] + [torch.tensor([1])] * 3
    h = torch.tensor([[0.0, 0.0]])
    for i in indices:
        h = torch.tanh(h @ w + torch.nn.functional.embedding(i, table))
    with pytest.raises(IndexError, match="index out of range in self"):
        h.tolist()
    assert any(isinstance(p, outline.Loop) for p in found[-1][1])
    assert torch.tensor([1.0]).add(1).tolist() == [2.0]


def test_numbers_that_change_from_turn_to_turn(monkeypatch):
    def run():
        w = torch.tensor([[1.0, 0.5], [0.25, -1.0]], requires_grad=True)
        h = torch.tensor([[1.0, -1.0]])
        for t in range(40):
            h = torch.tanh(h @ w * (1.0 + 0.01 * t))
        h.sum().backward()
        return [h.tolist(), w.grad.tolist()]

    made, expected = both(monkeypatch, run)
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_what_looks_two_turns_back_is_no_loop(monkeypatch):
    def run():
        w = torch.tensor([[0.5, 0.25], [0.25, -0.5]])
        a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])
        for _ in range(30):
            a, b = b, torch.tanh(a @ w + b)
        return b.tolist()

    made, expected = both(monkeypatch, run)
    np.testing.assert_allclose(made, expected, rtol=2e-5)


def steps_of(x, w, h, out):
    """A recurrence over the rows of `x` that `out` gets the states of."""
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] + h @ w) * 2**t
        out[:, t] = h
    return h


def test_repetitions_may_differ_in_integers(found, monkeypatch):
    def run():
        torch.manual_seed(0)
        x = torch.randn(3, 20, 4, requires_grad=True)
        w = (torch.randn(4, 4) / 4).requires_grad_()
        out = torch.zeros(3, 20, 4)
        h = steps_of(x.sin(), w, torch.zeros(3, 4), out)
        (out[:, 3:].cos().sum() + h.sum()).backward()
        return [out.tolist(), h.tolist(), x.grad.tolist(), w.grad.tolist()]

    made, expected = both(monkeypatch, run)
    loops = [p for p in found[-1][1] if isinstance(p, outline.Loop)]
    assert len(loops[0].places) == 20
    assert sum(loop.length for loop in loops) > 0.8 * found[-1][0]
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_repetitions_differ_in_integers_of_mapped_and_forward_calls(found, monkeypatch):
    def last(x, w):
        h = torch.zeros(4)
        for t in range(16):
            h = torch.tanh(x.sin()[t] + h @ w)
        return h

    def run():
        torch.manual_seed(0)
        x, w = torch.randn(3, 16, 4), torch.randn(4, 4) / 4
        mapped = torch.vmap(last, (0, None))(x, w)
        forward = torch.func.jvp(lambda w: last(x[0], w), (w,), (w,))
        return [mapped.tolist(), *(part.tolist() for part in forward)]

    made, expected = both(monkeypatch, run)
    assert all(
        any(isinstance(p, outline.Loop) for p in places)
        for events, places in found
        if events >= 32
    )
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_integers_that_have_to_be_static_stay_static(found, monkeypatch):
    """`roll` takes numbers that are no runtime scalars: calls where they are alike."""

    def run():
        torch.manual_seed(0)
        x, w = torch.randn(6, 6), torch.randn(6, 6) / 6
        for t in range(12):
            x = torch.roll(x @ w, t % 2, 0).sin()
        return x.tolist()

    made, expected = both(monkeypatch, run)
    np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("take", "join"),
    [
        (lambda x: x.unbind(1), lambda rows: torch.stack(rows, 1)),
        (lambda x: [p.squeeze(1) for p in x.split(1, 1)], lambda rows: torch.cat(rows)),
        (
            lambda x: [p.squeeze(1) for p in x.chunk(12, 1)],
            lambda rows: torch.stack(rows[::-1], -1),
        ),
        (lambda x: [x[:, -t] for t in range(12)], lambda rows: torch.cat(rows[2:], 1)),
        (lambda x: x.unbind(1), lambda rows: torch.stack([rows[0], *rows])),
    ],
    ids=["stack", "cat", "reversed", "some", "twice"],
)
def test_loops_over_pieces_of_a_tensor(monkeypatch, take, join):
    def run():
        torch.manual_seed(0)
        x = torch.randn(3, 12, 4, requires_grad=True)
        w = (torch.randn(4, 4) / 4).requires_grad_()
        h, rows = torch.zeros(3, 4), []
        for piece in take(x.exp()):
            h = torch.tanh(piece + h @ w)
            rows.append(h)
        out = join(rows)
        (out * torch.arange(out.numel()).view(out.shape).cos()).sum().backward()
        return [out.tolist(), rows[3].tolist(), x.grad.tolist(), w.grad.tolist()]

    made, expected = both(monkeypatch, run)
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_integers_of_one_line_are_learnt_together():
    """`table[i] += …` with other integers each time: the static program, one that has
    learnt from the first place that differs, and one from the first place at all."""
    local.rec.flush()
    before = program.count()
    rng = np.random.default_rng(0)
    for _ in range(8):
        rows = rng.integers(0, 5, 40)
        rows[0] = rows[0] if _ > 1 else 2
        table = torch.zeros(5, 2)
        for k, row in enumerate(rows.tolist()):
            table[row] += 0.5 * k
        expected = np.zeros((5, 2))
        np.add.at(expected, rows, 0.5 * np.arange(40)[:, None])
        np.testing.assert_allclose(table.numpy(), expected)
    assert program.count() - before == 3


def test_short_recordings_are_left_alone(found):
    x = torch.tensor([[1.0, 2.0]])
    for _ in range(6):
        x = x @ x.T * x
    x.tolist()
    assert found[-1][1] == []


def test_the_wish_not_to_be_inlined_reaches_xla():
    """Experimental in JAX: without it programs compile more slowly, no more."""
    assert lower.set_xla_metadata is not None
    import jax

    def twice(x):
        with lower.not_inlined():
            return jax.jit(lambda v: v @ v)(x)

    text = jax.jit(twice).lower(np.ones((2, 2), np.float32)).compile().as_text()
    assert re.search(r" call\(", text)


def test_recordings_that_begin_a_level(found):
    """What starts a transform is no operator and has no integers."""
    z = torch.arange(6.0).reshape(3, 2)
    gradients = torch.func.vmap(torch.func.grad(lambda v: (v * v.sin()).sum()))(z)
    total = torch.zeros(2)
    for turn in range(12):
        total = (total + gradients[turn % 3]) * 0.5 + z[turn % 3]
    assert total.isfinite().all()
    assert found[-1][0] > 40


def test_convolutions_in_repeated_parts(found, monkeypatch):
    """In XLA's order, which it sees to in a program's entry only."""
    made = []
    convolved = convolutions.convolved

    def note(lhs, rhs, params, mirrored):
        result = convolved(lhs, rhs, params, mirrored)
        made.append(params["dimension_numbers"])
        return result

    monkeypatch.setattr(convolutions, "convolved", note)

    def run():
        torch.manual_seed(0)
        blocks = [torch.nn.Conv2d(16, 16, 3, padding=1) for _ in range(10)]
        y = x = torch.randn(1, 16, 5, 5, requires_grad=True)
        for block in blocks:
            y = y + torch.tanh(block(y)) * 0.5
        (y**2).sum().backward()
        return [x.grad.tolist(), *(b.weight.grad.tolist() for b in blocks)]

    outlined, expected = both(monkeypatch, run)
    assert any(isinstance(p, outline.Loop) for p in found[-1][1])
    assert len(made) >= 3  # forward, and both gradients
    for a, b in zip(outlined, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
