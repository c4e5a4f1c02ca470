"""Numbers that programs draw, as on accelerators: here on the CPU, by force."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchshim as torch
from torchshim._core import record
from torchshim._core.random import default_generator
from torchshim._core.threefry import Threefry

N = 4000


@pytest.fixture(autouse=True)
def counter(monkeypatch):
    """The CPU's generator is one as accelerators have."""
    monkeypatch.setattr(default_generator, "engine", Threefry(0))


def check_moments(cases):
    """(numbers, mean, variance): all of them read at once."""
    made = [numbers.double() for numbers, _, _ in cases]
    found = torch.stack([torch.stack([x.mean(), x.var()]) for x in made]).tolist()
    for (mean, variance), (_, expected, spread) in zip(found, cases, strict=True):
        assert abs(mean - expected) < 5 * math.sqrt(spread / N)
        assert abs(variance - spread) < 0.15 * spread


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_continuous_distributions(dtype):
    def fill(name, *parameters):
        return getattr(torch.empty(N, dtype=dtype), name)(*parameters)

    low = fill("uniform_", 2, 4)
    cases = [(torch.rand(N, dtype=dtype), 0.5, 1 / 12), (low, 3, 1 / 3)]
    cases += [(torch.randn(N, dtype=dtype), 0, 1), (fill("normal_", 2, 3), 2, 9)]
    if dtype == torch.float32:
        cases += [
            (fill("exponential_", 2), 0.5, 0.25),
            (fill("geometric_", 0.5), 2, 2),
            (fill("log_normal_", 0, 0.5), math.exp(0.125), 0.3647),
            (fill("bernoulli_", 0.3), 0.3, 0.21),
            (fill("cauchy_").abs().log(), 0, math.pi**2 / 4),
        ]
    assert all(made.dtype == dtype and made.shape == (N,) for made, _, _ in cases)
    check_moments(cases)
    assert low.min() >= 2 and low.max() < 4


def test_integers_and_orders():
    made = torch.randint(3, 7, (N,))
    wide = torch.empty(N, dtype=torch.int64).random_(-(2**63), None)
    small = torch.empty(N, dtype=torch.uint8).random_()
    orders = torch.randperm(1000), torch.randperm(1000)
    made, wide, small, first, second = (x.numpy() for x in (made, wide, small, *orders))
    assert made.dtype == np.int64
    assert (abs(np.bincount(made) / N - [0, 0, 0, *[0.25] * 4]) < 0.04).all()
    assert wide.min() < -(2**62) and wide.max() > 2**62
    assert len(set(small)) == 256
    assert sorted(first) == list(range(1000)) != first.tolist() != second.tolist()
    assert torch.randperm(0).shape == (0,) and torch.rand(0, 3).shape == (0, 3)


def test_numbers_with_tensors_as_parameters():
    ones, weights = torch.ones(N), torch.tensor([1.0, 0, 1])
    simplex = torch._sample_dirichlet(torch.full((N, 2), 1.5))
    drawn = torch.multinomial(torch.tensor([0.1, 0.2, 0, 0.7]).expand(99, 4), 3)
    check_moments(
        [
            (torch.bernoulli(ones * 0.3), 0.3, 0.21),
            (torch.zeros(N).bernoulli_(torch.tensor(0.3)), 0.3, 0.21),
            (torch.normal(ones * 2, ones * 3), 2, 9),
            (torch.normal(ones, 2.0), 1, 4),
            (torch.poisson(ones * 3), 3, 3),
            (torch.binomial(ones * 10, ones * 0.3), 3, 2.1),
            (torch._standard_gamma(ones * 2), 2, 2),
            (simplex[:, 0], 0.5, 1 / 16),
            (torch.multinomial(weights, N, True), 1, 1),
            (torch.multinomial(weights.expand(N, 3), 1), 1, 1),
        ]
    )
    torch.testing.assert_close(simplex.sum(-1), torch.ones(N))
    assert set(map(tuple, drawn.sort(-1).values.tolist())) == {(0, 1, 3)}


def test_seeds_and_states():
    torch.manual_seed(3)
    first = torch.rand(4), torch.randn(2), torch.randperm(9)
    state = torch.get_rng_state()
    later = torch.rand(4)
    torch.manual_seed(3)
    assert torch.initial_seed() == 3
    for a, b in zip(
        first, (torch.rand(4), torch.randn(2), torch.randperm(9)), strict=True
    ):
        assert a.equal(b)
    torch.set_rng_state(state)
    assert later.equal(torch.rand(4)) and not later.equal(torch.rand(4))
    # The bytes of PyTorch's CUDA generator: the seed, and four for each draw.
    assert state.view(torch.int64).tolist() == [3, 12]
    with torch.random.fork_rng():
        forked = torch.rand(4)
    assert forked.equal(torch.rand(4))
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        torch.set_rng_state(state[:5])
    with pytest.raises(RuntimeError, match="multiple of 4"):
        torch.set_rng_state(torch.tensor([3, 2]).view(torch.uint8))


def test_errors_are_those_of_the_cpu():
    for call, text in [
        (lambda: torch.empty(2).uniform_(3, 2), "uniform_ expects to return"),
        (lambda: torch.empty(2).normal_(0, -1), "normal expects std >= 0.0"),
        (lambda: torch.randint(3, 3, (2,)), "less than 'to'"),
        (lambda: torch.bernoulli(torch.tensor([2.0])).tolist(), "p_in >= 0"),
        (lambda: torch.poisson(torch.tensor([-1.0])).tolist(), "Poisson rate"),
        (lambda: torch.multinomial(torch.zeros(2), 1).tolist(), "sum of probab"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_a_step_is_one_program(monkeypatch):
    weight = torch.ones(3, requires_grad=True)

    def step():
        noise = torch.randn(4, 3) + torch.rand(4, 3) * torch.randint(3, (4, 1))
        x = torch.nn.functional.dropout(noise, 0.5)
        chosen = torch.bernoulli(torch.sigmoid(x @ weight))
        loss = (x @ weight * chosen).sum() + torch.normal(weight, 1.0).sum()
        loss.backward()
        return float(loss.detach())

    step()
    step()
    flush, before, runs = record.flush, torch.explain(), []
    monkeypatch.setattr(record, "flush", lambda rec: runs.append(rec) or flush(rec))
    losses = [step() for _ in range(3)]
    assert len(runs) == 3 and len(torch.explain(before).programs) == 0
    assert len(set(losses)) == 3


def test_layouts_and_leaves():
    x = torch.empty(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert torch.rand_like(x).stride() == x.stride()
    leaf = torch.randn(3, requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad
    column = torch.zeros(3, 4)
    column[:, 1].uniform_()
    assert (column != 0).sum() == 3
    assert torch.rand(2, dtype=torch.complex64).imag.ne(0).all()
    base = torch.ones(5, requires_grad=True) * 2
    base.mul(1).normal_().sum().backward()


def test_examples_of_a_batch():
    x = torch.zeros(3, 4)

    def noisy(row):
        return row + torch.rand(4), torch.bernoulli(row + 0.5), torch.randperm(4)

    for made in torch.vmap(noisy, randomness="different")(x):
        assert made.shape == (3, 4)
    made = torch.vmap(lambda row: row + torch.rand(4), randomness="different")(x)
    assert not made[0].equal(made[1])
    made = torch.vmap(lambda row: row + torch.rand(4), randomness="same")(x)
    assert made[0].equal(made[1])
    rates = torch.vmap(torch.poisson, randomness="different")(x + 50)
    assert rates.unique().numel() > 2


def test_layers_that_draw():
    q = torch.randn(2, 5, 4)
    made = torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
    assert made.shape == q.shape
    slopes = torch.nn.functional.rrelu(-torch.ones(N), 0.1, 0.3, training=True)
    assert abs(float(slopes.mean()) + 0.2) < 0.01
    linear = torch.nn.Linear(400, 300)
    bound = 1 / math.sqrt(400)
    assert np.isclose(float(linear.weight.detach().abs().max()), bound, rtol=0.01)
