"""Functions traced for many sizes, and calls that NumPy computes by such traces."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import torchshim as torch
from torchshim._core import avals, host_kernels, stepwise
from torchshim._core.interpret import NoRule, plan
from torchshim._core.polymorphic import (
    Polymorphic,
    least_of,
    symbols_between,
    with_products,
)
from torchshim._core.program import CACHE

F = torch.nn.functional
FLOAT = np.dtype(np.float32)


def traced(function, *shapes, numbers=()):
    """`function(numbers)` gives a function of arrays of these shapes."""
    return Polymorphic(function, (*shapes, numbers), [FLOAT] * len(shapes))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: x.sum(0) / x.shape[0], [("a", 3)]),
        (lambda x: jnp.mean(x * x), [("a", "b")]),
        (lambda x: x.reshape(-1), [("a", "b", 2)]),
        (lambda x: x.reshape(x.shape[0] // 2, 2), [("a",)]),
        (lambda x: jnp.concatenate([x, x[1:]]), [("a", 3)]),
        (lambda x, y: x @ y, [("a", "b"), ("b", 3)]),
        (lambda x: jnp.tril(x @ x.T), [("a", 3)]),
        (lambda x: jax.nn.softmax(x), [(3, "a")]),
        (lambda x: jnp.flip(x)[None] * jnp.arange(x.shape[0]), [("a",)]),
        (lambda x: jnp.pad(x, (1, x.shape[0])), [("a",)]),
        (lambda x: jnp.full((x.shape[0] % 3 + x.shape[0] ** 2,), x.size), [("a",)]),
        (lambda x: jax.grad(lambda y: jnp.sin(y).sum())(x), [("a", 4)]),
        (lambda x: jax.lax.scan(lambda c, y: (c + y, c * y), x[0], x), [("a", 4)]),
    ],
)
def test_for_each_size_as_traced_for_it_alone(function, shapes):
    many = traced(lambda numbers: function, *shapes)
    for a, b in (8, 5), (6, 10), (20, 14):
        sizes = {"a": a, "b": b}
        own = [tuple(sizes.get(n, n) for n in shape) for shape in shapes]
        arrays = [np.random.default_rng(a).random(s, FLOAT) for s in own]
        found = many.sizes_in([*own, ()])
        assert found == {n: sizes[n] for n in found}
        mine = many.plan(found)(*arrays)
        assert many.results(found) == [(x.shape, x.dtype) for x in mine]
        alone = plan(function, [jax.ShapeDtypeStruct(s, FLOAT) for s in own])(*arrays)
        for x, y in zip(mine, alone, strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype


def test_numbers_of_the_function_itself():
    many = traced(lambda n: lambda x: x.reshape(n) * n[1], ("a",), numbers=(2, "b"))
    found = many.sizes_in([(14,), (2, 7)])
    assert found == {"a": 14, "b": 7}
    x = np.arange(14, dtype=FLOAT)
    (made,) = many.plan(found)(x)
    np.testing.assert_array_equal(made, x.reshape(2, 7) * 7)


def test_what_differs_from_size_to_size_is_not_traced_for_many():
    for function in (
        lambda x: x + 1 if x.shape[0] > 9 else x,
        lambda x: x * float(x.shape[0]),
        lambda x: x.reshape(3, -1),
        lambda x: jax.lax.scan(lambda c, y: (c + y, c), x, x[:3])[1],
    ):
        with pytest.raises(NoRule):
            traced(lambda numbers, function=function: function, ("a",))


def test_symbols_stand_for_sizes_that_nothing_else_has():
    many = traced(lambda numbers: lambda x, y: x.sum() * y, ("a", 4), ("b",))
    assert many.sizes_in([(5, 4), (6,), ()]) == {"a": 5, "b": 6}
    for other in [(5, 3), (6,)], [(5, 4), (5,)], [(4, 4), (6,)], [(5, 4), (1,)]:
        assert many.sizes_in([*other, ()]) is None


def test_symbols_between_shapes():
    names = [f"size_{letter}" for letter in "abcdefgh"]
    a, b, *_ = names
    assert symbols_between([(2, 5), (5,)], [(2, 6), (6,)]) == ((2, a), (a,))
    assert symbols_between([(5, 5)], [(6, 7)]) == ((a, b),)
    assert symbols_between([(5, 1)], [(6, 2)]) is None
    assert symbols_between([tuple(range(2, 12))], [tuple(range(3, 13))]) is None
    eight = (*range(2, 10), 9), (*range(3, 11), 10)
    assert symbols_between([eight[0]], [eight[1]]) == ((*names, names[-1]),)


def test_symbols_that_are_products_of_others():
    shapes, others = [(24, 5), (4, 6, 5)], [(35, 5), (5, 7, 5)]
    a, b, c = "size_a", "size_b", "size_c"
    symbols = symbols_between(shapes, others)
    assert symbols == ((a, 5), (b, c, 5))
    assert with_products(shapes, others, symbols) == (
        (f"1*{b}*{c}", 5),
        (b, c, 5),
    )
    for few in ([(6,), (4,)], [(9,), (6,)]), ([(7,), (4,)], [(8,), (6,)]):
        assert with_products(*few, symbols_between(*few)) is None
    double = [(4, 8)], [(5, 10)]
    assert with_products(*double, symbols_between(*double)) == ((a, f"2*{a}"),)


def test_shapes_that_others_tell():
    def make(numbers):
        return lambda x, y: (x[2:] * y).sum() + y

    def derive(numbers, arrays):
        return [(arrays[0].shape[0] - 2,)]

    shapes, dtypes = (("a",), ("b",), ()), [FLOAT, FLOAT]
    with pytest.raises(NoRule):
        Polymorphic(make, shapes, dtypes)
    many = Polymorphic(make, shapes, dtypes, None, derive, [1])
    assert many.sizes_in([(7,), (5,), ()]) == {"a": 7}
    assert many.sizes_in([(7,), (4,), ()]) is None
    assert many.results({"a": 7}) == [((5,), FLOAT)]
    for hidden in (("1*a*b",), ("b",), ()), ((4,), ("b",), ()):
        with pytest.raises(NoRule):  # nothing else tells what `b` is
            Polymorphic(make, hidden, dtypes, None, derive, [1])


def test_least_sizes():
    def make(numbers):
        return lambda x: x.sum() if x.shape[0] >= 4 else x

    with pytest.raises(NoRule):
        traced(make, ("a",))
    many = Polymorphic(make, (("a",), ()), [FLOAT], {"a": 8})
    assert many.sizes_in([(9,), ()]) == {"a": 9}
    assert many.sizes_in([(7,), ()]) is None
    a, b = "size_a", "size_b"
    symbols = symbols_between([(9, 40)], [(15, 80)])
    assert least_of(symbols, [(9, 40)], [(15, 80)]) == {a: 8, b: 32}


def test_traced_with_products():
    many = traced(lambda n: lambda x: x.reshape(n), ("2*a*b",), numbers=("a", "b", 2))
    found = many.sizes_in([(70,), (5, 7, 2)])
    assert {n: found[n] for n in "ab"} == {"a": 5, "b": 7}
    assert many.results(found) == [((5, 7, 2), FLOAT)]
    x = np.arange(70, dtype=FLOAT)
    np.testing.assert_array_equal(many.plan(found)(x)[0], x.reshape(5, 7, 2))
    assert many.sizes_in([(71,), (5, 7, 2)]) is None
    assert many.sizes_in([(8,), (2, 2, 2)]) is None


# -- calls -----------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def by_numpy(monkeypatch):
    """All recordings are computed by NumPy, and nothing is known of other tests'."""
    monkeypatch.setattr(stepwise, "_LEAST_EVENTS", 0)
    monkeypatch.setattr(stepwise, "_COMPILE", 1e6)
    monkeypatch.setattr(stepwise, "HOST_KERNELS", OrderedDict())
    monkeypatch.setattr(host_kernels, "FORMS", OrderedDict())
    monkeypatch.setattr(CACHE, "_programs", OrderedDict())


def gradient(function, x):
    x = x.clone().requires_grad_()
    made = function(x)
    return torch.autograd.grad(made, x, made.detach().cos())[0]


def kernels():
    """How many were traced for their sizes alone, and how many were not."""
    found = [kernel.traced for kernel in stepwise.HOST_KERNELS.values()]
    return found.count(True), found.count(False)


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x.softmax(0),
        lambda x: x.view(-1, 1),
        lambda x: x.view(1, len(x)),
        lambda x: torch.arange(len(x)) * x,
        lambda x: torch.full((3, len(x)), 7.0) * x,
        lambda x: torch.cat([x, x[:1]]),
        lambda x: torch.nn.functional.gelu(x),
        lambda x: x.outer(x).tril(),
        lambda x: x[torch.arange(len(x) - 1) + 1],
        lambda x: x.outer(x)[:, torch.arange(len(x) - 1)],
        lambda x: gradient(lambda y: y.sum(), x),
        lambda x: gradient(lambda y: (y[:, None] - y.cos()).abs(), x),
        lambda x: gradient(lambda y: y.outer(y).sin().max(1).values, x),
        lambda x: gradient(lambda y: y.outer(y.cos()).reshape(-1) ** 2, x),
        lambda x: gradient(lambda y: (y / 20).sigmoid().cumsum(0), x),
        lambda x: gradient(lambda y: torch.stack([y, y.sin()]).log_softmax(1), x),
        lambda x: gradient(lambda y: F.max_pool1d(y[None] / 9, 2).exp(), x),
        lambda x: gradient(lambda y: F.conv1d(y[None, None], y.new_ones(1, 1, 3)), x),
        lambda x: gradient(lambda y: F.pad(y[None], (1, 2)).diff() ** 2, x),
    ],
)
def test_the_third_size_is_the_last_to_be_traced(run, monkeypatch):
    def both(n):
        x = torch.tensor(np.arange(n) + 0.5, dtype=torch.float32)
        mine = run(x.double() * 1.5).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(stepwise, "_LEAST_EVENTS", 1 << 30)
            patch.setattr(CACHE, "_programs", OrderedDict())
            np.testing.assert_allclose(mine, run(x.double() * 1.5).tolist(), rtol=1e-12)

    for n in 6, 8, 10:
        both(n)
    alone, other = kernels()
    assert alone > 0
    for n in 12, 14:
        both(n)
    assert kernels()[0] == alone
    assert kernels()[1] > other


def test_results_of_calls_that_are_known_are_not_traced(monkeypatch):
    traces = []
    trace = avals._trace
    monkeypatch.setattr(
        avals, "_trace", lambda *given: traces.append(1) or trace(*given)
    )
    for n in 6, 8, 10, 12, 14:
        x = torch.tensor(np.arange(n) + 0.5)
        x.outer(x).std(1).tolist()
        traces.append(0)
    assert sum(traces)
    assert traces[-3:] == [0, 0, 0]  # none of the last two
    with pytest.raises(IndexError, match=r"expected to be in range of \[-1, 0\]"):
        x.std(1)


def test_sizes_in_texts_are_those_of_the_call():
    for n in range(5, 10):
        x = torch.ones(n)
        late = x.gather(0, torch.tensor([n]) + 0)
        text = f"index {n} is out of bounds for dimension 0 with size {n}"
        with pytest.raises(RuntimeError, match=text):
            late.tolist()
    assert kernels()[1] >= 2


def test_sizes_in_texts_that_are_computed_are_traced_for_each_size(monkeypatch):
    monkeypatch.setattr(host_kernels, "told", lambda text, sizes: text)
    for n in 5, 6, 7, 8:
        late = torch.ones(n).gather(0, torch.tensor([n]) + 0)
        with pytest.raises(RuntimeError, match=f"dimension 0 with size {n}"):
            late.tolist()


def test_a_trace_that_gives_something_else_is_dropped(monkeypatch):
    monkeypatch.setattr(host_kernels, "_alike", lambda x, y: False)
    for n in range(5, 12):
        assert torch.ones(n, 3).sum().item() == 3 * n
    assert kernels()[1] == 0
    assert max(form.failures for form in host_kernels.FORMS.values()) <= 2


def test_kernels_that_were_forgotten_are_traced_again(monkeypatch):
    for _ in range(4):
        monkeypatch.setattr(stepwise, "HOST_KERNELS", OrderedDict())
        monkeypatch.setattr(CACHE, "_programs", OrderedDict())
        assert torch.ones(3, 5).sum().item() == 15
    assert kernels() == (1, 0)


def test_a_trace_that_fails_keeps_no_tensors(monkeypatch):
    traces = []
    make = Polymorphic.__init__

    def counted(*given):
        traces.append(None)
        make(*given)
        traces.pop()

    monkeypatch.setattr(Polymorphic, "__init__", counted)

    def step(n):
        held = torch.arange(float(n), requires_grad=True)
        held.exp().prod().backward()
        held.grad.tolist()
        return weakref.ref(held)

    gc.disable()
    try:
        assert [step(n)() for n in (3, 4, 5, 6)] == [None] * 4
    finally:
        gc.enable()
    assert traces  # some failed


def test_forms_are_bounded(monkeypatch):
    monkeypatch.setattr(host_kernels, "_FORMS", 4)
    for n in range(1, 9):
        assert torch.ones([1] * n).sum().item() == 1
    assert len(host_kernels.FORMS) == 4
