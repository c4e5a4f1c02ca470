"""Recordings that NumPy computes, since compiling them would take longer."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import torchshim as torch
from torchshim._core import program, stepwise
from torchshim._core.program import CACHE
from torchshim._core.stepwise import Hosted


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    """Nothing is known of what other tests recorded."""
    for table in "KERNELS", "HOST_KERNELS", "_known", "_made":
        monkeypatch.setattr(stepwise, table, OrderedDict())
    monkeypatch.setattr(CACHE, "_programs", OrderedDict())


@pytest.fixture
def at_once(monkeypatch):
    """Every recording that updates nothing, whatever compiling it would take."""
    monkeypatch.setattr(stepwise, "_LEAST_EVENTS", 0)
    monkeypatch.setattr(stepwise, "_COMPILE", 1e6)
    monkeypatch.setattr(stepwise, "_EXACT_EVENTS", 0)


def last():
    """What ran the last recording."""
    return next(reversed(CACHE._programs.values()))


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = torch.nn.Embedding(11, 8)
        self.qkv = torch.nn.Linear(8, 24)
        self.norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 11)

    def forward(self, text):
        x = self.letters(text)
        for _ in range(3):
            q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
            seen = torch.ones(len(text), len(text)).tril()
            weights = (q @ k.T / 8**0.5).masked_fill(seen == 0, -torch.inf).softmax(-1)
            x = x + weights @ v
        return self.head(x)


def written(length):
    """A text in which each letter is the likeliest after those before."""
    torch.manual_seed(0)
    model, text = Attention(), torch.tensor([1])
    with torch.no_grad():
        for _ in range(length):
            text = torch.cat([text, model(text)[-1:].argmax(-1)])
    return text


def test_what_grows_in_each_turn_is_not_compiled(monkeypatch):
    start = program.count()
    found = written(12).tolist()
    assert isinstance(last(), Hosted)
    assert program.count() == start
    monkeypatch.setattr(stepwise, "_LEAST_COMPILE", np.inf)
    monkeypatch.setattr(stepwise, "_LEAST_PLAIN", np.inf)
    CACHE._programs.clear()
    assert written(12).tolist() == found
    assert program.count() > start


def test_a_text_that_is_read_is_known_to_grow_at_its_second_letter(own_trie):
    torch.manual_seed(0)
    model, text = Attention(), torch.tensor([1])
    [p.tolist() for p in model.parameters()]
    made = []
    with torch.no_grad():
        for _ in range(6):
            text = torch.cat([text, model(text)[-1:].argmax(-1)])
            text.tolist()
            made.append(type(last()))
    assert made[1:] == [Hosted] * 5
    assert text.tolist() == written(6).tolist()


def test_in_trainings_data_of_another_length_are_compiled(own_trie):
    model = Attention()
    for length in (7, 8):
        text = torch.arange(length)
        torch.nn.functional.cross_entropy(model(text), text).backward()
        model.head.weight.grad.tolist()
        assert not isinstance(last(), Hosted)


def fit(sizes):
    """The losses of steps whose batch and labels have these sizes, and the programs."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh())
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    losses, compiled = [], []
    for rows, chosen in sizes:
        x = torch.linspace(-1, 1, rows * 3).view(rows, 3)
        far = (net(x)[:, None] - torch.ones(chosen, 8)[None]).square().sum(-1)
        loss = far.amin(1).mean() + net[0].weight.norm()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        compiled.append(program.count())
    return losses, compiled


def test_steps_whose_shapes_vary_are_not_compiled(own_trie):
    sizes = [(n, 2) for n in (4, 5, 6, 7, 8, 9, 10, 11, 5, 12)]
    losses, compiled = fit(sizes)
    assert compiled[-1] == compiled[5]
    assert isinstance(last(), Hosted)
    assert losses == pytest.approx(fit(sizes)[0], rel=1e-5)


def test_two_sizes_vary(own_trie):
    # Of few rows several recordings with other labels are known.
    sizes = [(n, k) for n in (4, 5, 6, 7, 8, 9) for k in (2, 3)]
    sizes += [(n, k) for k in (5, 7) for n in (4, 5, 6, 7, 8, 9)]
    losses, compiled = fit(sizes)
    assert compiled[-1] == compiled[11]
    assert isinstance(last(), Hosted)
    assert losses == pytest.approx(fit(sizes)[0], rel=1e-5)


def test_steps_of_few_shapes_are_compiled(own_trie):
    fit([(n, 2) for n in (4, 4, 4, 3) * 3])
    assert not any(isinstance(made, Hosted) for made in CACHE._programs.values())


def test_steps_that_differ_in_a_number_are_compiled(own_trie):
    w = torch.ones(5, requires_grad=True)
    for order in (2.0, 1.0, 3.5, torch.inf, 2.0, 1.0, 4.5):
        w.cos().sin().norm(order).backward()
        w.grad.tolist()
    assert not any(isinstance(made, Hosted) for made in CACHE._programs.values())


def test_short_recordings_that_vary_are_not_compiled(own_trie):
    # As farthest points are chosen: how many are nearer than before decides shapes.
    cloud = torch.linspace(0, 60, 600).sin().view(200, 3)
    distance = torch.full((200,), 1e10)
    rows, farthest, compiled, chosen = torch.arange(1), torch.tensor([0]), [], []
    for _ in range(12):
        chosen.append(farthest)
        point = cloud[None][rows, farthest].view(1, 1, 3)
        seen = ((cloud - point) ** 2).sum(-1)[0]
        nearer = seen < distance
        distance[nearer] = seen[nearer]
        farthest = torch.max(distance[None], -1)[1]
        compiled.append(program.count())
    assert compiled[-1] == compiled[5]
    assert isinstance(last(), Hosted)
    points = cloud.numpy()[torch.cat(chosen).numpy()]
    assert len(np.unique(points, axis=0)) == 12
    found = ((cloud.numpy()[:, None] - points) ** 2).sum(-1).min(1)
    np.testing.assert_allclose(distance.numpy(), found, rtol=1e-5)


def test_suppressing_boxes_compiles_a_few_turns(own_trie):
    def suppressed(boxes, order):
        kept, counts = [], []
        while order.numel() > 0:
            first = order[0]
            kept.append(first.item())
            low = torch.max(boxes[first, :2], boxes[order, :2])
            high = torch.min(boxes[first, 2:], boxes[order, 2:])
            order = order[(high - low).clamp(min=0).prod(1) <= 0.05]
            counts.append(program.count())
        return kept, counts

    torch.manual_seed(0)
    corner = torch.rand(60, 2) * 3
    boxes = torch.cat([corner, corner + 0.2 + torch.rand(60, 2) * 0.6], 1)
    kept, counts = suppressed(boxes, torch.arange(60))
    assert len(kept) > 15, counts
    assert counts[-1] == counts[8], counts
    at, expected, left = boxes.numpy(), [], list(range(60))
    while left:
        first = at[left[0]]
        expected.append(left[0])
        low = np.maximum(first[:2], at[left, :2])
        sides = (np.minimum(first[2:], at[left, 2:]) - low).clip(0)
        left = [k for k, area in zip(left, sides.prod(1), strict=True) if area <= 0.05]
    assert kept == expected


def test_what_runs_again_becomes_a_program(at_once, monkeypatch):
    monkeypatch.setattr(stepwise, "_COMPILE", 1.0)
    monkeypatch.setattr(stepwise, "_HOST_EVENT", 0.045)
    x = torch.linspace(0, 1, 5)
    x.tolist()
    made = []
    for _ in range(8):
        before = torch.explain()
        found = (x.exp() @ x.cos()).item()
        assert found == pytest.approx(np.exp(x.numpy()) @ np.cos(x.numpy()), rel=1e-5)
        made.append([p.events for p in torch.explain(before).programs])
    # Compiling three operators takes as long as 22 runs: a quarter of that may be lost.
    assert made == [[], [], [], [], [4], [], [], []]
    assert isinstance(last(), Hosted) and last().entry is None


def test_what_updates_something_is_compiled(at_once):
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(4, 3)).sum().backward()
        optimizer.step()
        net.weight.tolist()
    assert not isinstance(last(), Hosted)


def test_arrays_are_their_own(at_once):
    x = torch.arange(6.0)
    x.tolist()
    y = x.view(2, 3)
    z, w = y.T.contiguous(), x + 0
    z.tolist()
    assert isinstance(last(), Hosted)
    x.add_(1)
    w.mul_(2)
    assert z.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert w.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert x.tolist() == y.reshape(-1).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_what_numpy_lacks_is_compiled_alone(at_once):
    x = torch.eye(3) * 2 + 1
    start = program.count()
    found = torch.i0(x.sin()) @ x
    host = np.eye(3) * 2 + 1
    expected = np.i0(np.sin(host)) @ host
    np.testing.assert_allclose(found.tolist(), expected, rtol=1e-4)
    assert isinstance(last(), Hosted)
    [only] = program.compiled_since(start)
    assert "i0" in only.reason


def test_checks_are_told_with_their_own_lines(at_once):
    table = torch.arange(10.0).view(5, 2)

    def looked_up(index):
        return torch.nn.functional.embedding(torch.tensor(index), table).sum()

    good = looked_up([2])
    with pytest.raises(IndexError, match="index out of range in self") as caught:
        (good + looked_up([7])).item()
    assert isinstance(last(), Hosted)
    [note] = caught.value.__notes__
    assert "embedding" in note
    assert good.item() == 9.0
    # One that has to be compiled tells its errors, too.
    for dtype in torch.float32, torch.complex64:
        with pytest.raises(RuntimeError, match="singular"):
            torch.linalg.inv(torch.zeros(2, 2, dtype=dtype)).tolist()


def test_gradients(at_once):
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).view(3, 4).requires_grad_()
    x.tolist()
    (x.softmax(-1) * x.tanh()).sum().backward()
    assert x.grad.shape == (3, 4) and x.grad.tolist()
    assert isinstance(last(), Hosted)
    assert torch.autograd.gradcheck(lambda t: t.softmax(-1) * t.tanh(), x)


def test_an_error_takes_the_recording_back(at_once, monkeypatch):
    x = torch.arange(4.0)
    x.tolist()
    y = x + 1

    def failing(self, *given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stepwise.HostKernel, "__call__", failing)
        with pytest.raises(KeyboardInterrupt):
            (y * 2).tolist()
    assert (y * 2).tolist() == [2.0, 4.0, 6.0, 8.0]


def test_kernels_are_bounded(at_once, monkeypatch):
    monkeypatch.setattr(stepwise, "_HOST_KERNELS", 4)
    for n in range(2, 9):
        assert (torch.ones(n, 11).sum() + 1).item() == 11 * n + 1
    assert len(stepwise.HOST_KERNELS) == 4


# -- where recordings that have no part in a gradient run seldom ----------------------


def read(found):
    return found.tolist()  # the line where recordings end


def distances(function, x):
    return (function(x @ x.T) + 1).softmax(-1).cumsum(0)


FUNCTIONS = torch.tanh, torch.sigmoid, torch.relu


def compile_three():
    """Three programs that run once, for recordings that end in `read`."""
    x = torch.linspace(0, 1, 12).view(3, 4)
    for function in FUNCTIONS:
        read(distances(function, x))
        assert not isinstance(last(), Hosted)
    return x


def perceptron():
    torch.manual_seed(0)
    layers = torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)
    return torch.nn.Sequential(*layers, torch.nn.Softmax(-1))


def test_after_three_that_run_seldom(own_trie, as_users):
    x = compile_three()
    start, found = program.count(), []
    while program.count() == start:
        found.append(read(distances(torch.sin, x)))
        assert isinstance(last(), Hosted)
        assert len(found) < 10_000
    # For many runs it gives the same, to the bit, and then nearly.
    assert len(found) >= stepwise._PLAIN_RUNS
    assert all(each == found[0] for each in found)
    for _ in range(3):
        np.testing.assert_allclose(read(distances(torch.sin, x)), found[0], rtol=1e-5)
    assert program.count() == start + 1


def test_elsewhere_all_is_compiled(own_trie, as_users, tmp_path):
    # What a model gives is the same in any recording.
    compile_three()
    model, other, x = perceptron(), perceptron(), torch.randn(4, 6)
    with torch.no_grad():
        found = model(x)
        found.tolist()
    assert not isinstance(last(), Hosted)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    for p in other.parameters():
        torch.nn.init.zeros_(p)
    other.load_state_dict(torch.load(tmp_path / "model.pt"))
    with torch.no_grad():
        assert torch.equal(other(x), found)
    assert torch.equal(other(x), found)


def test_what_has_a_part_in_a_gradient_is_compiled(own_trie, as_users):
    compile_three()
    model, x = perceptron(), torch.randn(4, 6)
    loss = model(x)[:, 0].square().sum()
    read(loss)
    assert not isinstance(last(), Hosted)
    loss.backward()
    read(model[0].weight.grad)
    assert not isinstance(last(), Hosted)
    # Nor is a gradient that updates nothing left to NumPy.
    leaf = x.clone().requires_grad_()
    read(torch.autograd.grad(model(leaf)[:, 0].square().sum(), leaf)[0])
    assert not isinstance(last(), Hosted)
    with torch.no_grad():
        read(model(x)[:, 0].square().sum())
    assert isinstance(last(), Hosted)


@pytest.mark.parametrize("first", [True, False])
def test_a_training_compiles_in_two_steps(own_trie, as_users, first):
    compile_three()
    model, x = perceptron(), torch.randn(4, 6)
    optimizer = torch.optim.Adam(model.parameters())
    made = []
    for _ in range(30):
        start = program.count()
        loss = torch.nn.functional.cross_entropy(model(x), torch.arange(4) % 3)
        if first:
            read(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        read(loss)
        made.append(program.count() - start)
    assert sum(made[:2]) > 0
    assert made[2:] == [0] * 28


def test_what_takes_numpy_long_is_compiled(own_trie, as_users):
    compile_three()
    layer = torch.nn.Conv2d(8, 8, 3, padding=1)
    x = torch.ones(4, 8, 100, 100)
    with torch.no_grad():
        read(layer(layer(layer(x).relu()).relu()).sum())
        assert not isinstance(last(), Hosted)
        read(layer(layer(layer(x[:1, :, :4, :4]).relu()).relu()).sum())
        assert isinstance(last(), Hosted)


def test_the_order_in_memory_changes_nothing(at_once):
    # NumPy sums a transposed array in another order.
    values = np.random.default_rng(0).standard_normal((40, 33)).astype(np.float32)

    swapped = np.asarray(values.T, order="C").T
    assert swapped.flags.f_contiguous
    found, other = (torch.from_numpy(given) for given in (values, swapped))
    expected = [found.sum(0).tolist(), found.sum(1).tolist()]
    assert [other.sum(0).tolist(), other.sum(1).tolist()] == expected
    assert isinstance(last(), Hosted)
