"""What enters a recording again and again is looked up."""

from __future__ import annotations

import numpy as np
import pytest

import torchshim as torch
from torchshim import nn
from torchshim._core import record
from torchshim._core.record import local


@pytest.fixture
def calls(monkeypatch):
    """Names of the operators that went the slow way."""
    names = []
    call = record.Recorder.call

    def noted(rec, op, args):
        names.append(op.name)
        return call(rec, op, args)

    monkeypatch.setattr(record.Recorder, "call", noted)
    return names


def test_batches_of_what_enters_are_looked_up(calls):
    data, labels = torch.arange(24.0).view(12, 2).clone(), torch.arange(12)
    more = torch.ones(2)
    found = []
    for i in (0, 3, 6, 9):
        calls.clear()
        x, y = data[i : i + 3], labels[i]
        both = torch.stack([x[0] + 0.0, more])
        found.append([x.sum().item(), y.item(), both.sum().item()])
    assert calls == []
    assert found == [[15.0, 0, 3.0], [51.0, 3, 15.0], [87.0, 6, 27.0], [123.0, 9, 39.0]]


def test_writes_to_tensors_that_enter_are_looked_up(calls):
    """As an average of parameters over the steps: `e.mul_(0.9).add_(p, alpha=0.1)`."""
    params = [torch.ones(2, requires_grad=True) for _ in range(3)]
    averages = [p.detach().clone() for p in params]
    for _ in range(4):
        calls.clear()
        with torch.no_grad():
            for p, e in zip(params, averages, strict=True):
                e.mul_(0.9).add_(p, alpha=0.1)
                p -= 0.5 * e
        local.rec.flush()
    assert calls == []
    assert [p._version for p in params] == [4] * 3
    assert [e._version for e in averages] == [8] * 3


def test_floats_that_vary_are_looked_up(calls):
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    for step in range(6):
        calls.clear()
        y = nn.functional.elu(nn.functional.leaky_relu(x, 0.1 + step / 20), step + 0.5)
        y = nn.functional.layer_norm(y, (2,), eps=10.0**-step)
        assert y.sum().item() == pytest.approx(0, abs=1e-5)
        y.sum().backward()
    assert calls == []


def test_integers_that_vary_are_looked_up(calls):
    x = torch.tensor([1.0, 2.0])
    for step in range(5):
        calls.clear()
        y = x * 2.0
        for i in range(1, 4):
            y = y * i + step
        assert y.tolist() == [x * 12 + 10 * step for x in (1.0, 2.0)]
    assert calls == []


def test_what_data_gives_is_looked_up(calls):
    params = [torch.ones(2, requires_grad=True) for _ in range(3)]
    targets = [torch.zeros(2) for _ in params]
    for _ in range(4):
        calls.clear()
        for p, t in zip(params, targets, strict=True):
            t.data.copy_(0.5 * p.data + 0.5 * t.data)
            p.data.add_(t, alpha=-0.5).clamp_(-1.0, 1.0)
        local.rec.flush()
    assert calls == []
    assert [p._version for p in params] == [0] * 3
    assert [t.tolist() for t in targets] == [[0.3515625, 0.3515625]] * 3
    assert [p.tolist() for p in params] == [[-0.00390625, -0.00390625]] * 3


def test_what_numpy_holds_is_looked_up_as_it_is_now(calls):
    net = nn.Linear(3, 2)
    observed = np.zeros(3, np.float32)
    rows = np.zeros(2, np.int64)
    table = torch.arange(8.0)
    weight, bias = np.array([[1.0, 2, -1], [0.5, -2, 3]]), np.array([0.25, -1])
    net.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias)})
    for step in range(5):
        calls.clear()
        observed[:] = step, step + 1, step * step
        rows[:] = step, step + 2
        with torch.no_grad():
            found = net(torch.from_numpy(observed).unsqueeze(0))
            observed += 1  # is not seen by what was computed before
            again = net(torch.from_numpy(observed))
        picked = table[torch.from_numpy(rows)]
        local.rec.flush()
        assert picked.tolist() == [step, step + 2.0]
        np.testing.assert_array_equal(again, weight @ observed + bias)
        np.testing.assert_array_equal(found[0], weight @ (observed - 1) + bias)
    assert calls == []


def to_an_element(i, v, m, x):
    v[i] = 1.5


def to_an_element_from_behind(i, v, m, x):
    v[-1 - i] = x[1]


def what_is_computed(i, v, m, x):
    v[i] = x.sum() * i


def to_a_place(i, v, m, x):
    m[i % 5, i % 3] = 3.0


def to_a_row(i, v, m, x):
    m[i % 5] = x


def to_a_column(i, v, m, x):
    m[:, i % 5] = x * 2


def to_some_rows(i, v, m, x):
    m[i % 4 : i % 4 + 2] = 7


def through_a_view(i, v, m, x):
    m[i % 5][1] = 2.0


def from_row_to_row(i, v, m, x):
    m[i % 4 + 1][1] = m[i % 4][1] + 1


def adding_to_an_element(i, v, m, x):
    v[i] += 1


def adding_to_a_place(i, v, m, x):
    m[i % 5, i % 3] += x[2]


@pytest.mark.parametrize(
    "write",
    [
        to_an_element,
        to_an_element_from_behind,
        what_is_computed,
        to_a_place,
        to_a_row,
        to_a_column,
        to_some_rows,
        through_a_view,
        from_row_to_row,
        adding_to_an_element,
        adding_to_a_place,
    ],
)
@pytest.mark.parametrize("runs", [True, False])
def test_writes_at_another_place_each_time_are_looked_up(calls, compiled, write, runs):
    """`runs`: whether each of them is a recording of its own."""
    given = [np.zeros(8, np.float32), np.zeros((5, 5), np.float32)]
    given.append(np.arange(5, dtype=np.float32))
    tensors = [torch.tensor(a) for a in given]
    for step in range(7):
        if step == 4:
            calls.clear()
            before = compiled()
        write(step, *given)
        write(step, *tensors)
        if runs:
            local.rec.flush()
    if runs:
        assert calls == []
        assert compiled() == before
    for array, tensor in zip(given, tensors, strict=True):
        np.testing.assert_allclose(tensor, array)
    assert tensors[2]._version == 0


def test_one_tensor_on_numpys_memory_several_times():
    memory = np.zeros(2, np.float32)
    x = torch.from_numpy(memory)
    w = torch.tensor([1.0, 10.0])
    for step in range(4):
        memory[:] = step + 1
        first = x * w
        both = x + x
        view = x[:1] * w[:1]
        memory += 0.5
        later = x * w
        picked = x[1:] * w[1:]
        x.add_(1.0)  # NumPy sees it at once
        assert memory.tolist() == [step + 2.5] * 2
        last = x * w
        assert first.tolist() == [step + 1, 10 * (step + 1)]
        assert both.tolist() == [2 * (step + 1)] * 2
        assert view.tolist() == [step + 1]
        assert later.tolist() == [step + 1.5, 10 * (step + 1.5)]
        assert picked.tolist() == [10 * (step + 1.5)]
        assert last.tolist() == [step + 2.5, 10 * (step + 2.5)]


def test_memory_that_numpy_lets_go_of():
    w = torch.tensor([1.0, 10.0], requires_grad=True)
    for step in range(4):
        x = torch.from_numpy(np.full(2, step, np.float32))
        kept = np.full((2, 2), step, np.float32)
        y = torch.from_numpy(kept)[0]
        loss = (x * w + y * w).sum()
        del kept
        w.grad = None
        loss.backward()
        assert w.grad.tolist() == [2 * step] * 2
        x.mul_(2.0)
        assert (x * w).tolist() == [2 * step, 20 * step]


def test_steps_of_parameters_whose_views_are_gone_are_looked_up(calls):
    """One of them was alive when the recording ended, as a loop's variable is."""
    model = nn.Linear(2, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    average = {name: value.clone() for name, value in model.state_dict().items()}

    def follow():
        for name, value in model.state_dict().items():
            average[name].lerp_(value, 0.5)
        return average["bias"].sum().item()

    for _ in range(5):
        calls.clear()
        optimizer.zero_grad()
        model(torch.ones(2)).square().sum().backward()
        optimizer.step()
        stepped = list(calls)
        follow()
    assert stepped == []


def test_memory_that_numpy_has_let_go_of_enters_twice():
    """Its first entrance finds that out, and the second one gives the value back."""
    for shared in (True, True, False, False):
        x = torch.tensor([1.0, 2.0])
        array = x.numpy()
        if not shared:
            del array
        assert (x * x).tolist() == [1.0, 4.0]
        array = None
