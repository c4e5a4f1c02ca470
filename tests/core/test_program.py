"""How programs are compiled: optimized, or fast where they may run only once."""

from __future__ import annotations

import itertools
import sys
import threading
import time
import types

import jax
import pytest

import torchshim as torch
from torchshim._core import program
from torchshim._core.program import CACHE, FAST_RUNS
from torchshim._core.record import local
from torchshim._core.state import ROOT, State

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="XLA's options are those for CPUs"
)


@pytest.fixture
def small_bounds(monkeypatch):
    monkeypatch.setattr(program, "SMALL", 3)
    monkeypatch.setattr(program, "QUARTER", 0)  # nothing is light


def last():
    """The program that ran last."""
    return next(reversed(CACHE._programs.values()))


def many(x, length):
    for _ in range(length):
        x = x.sin()
    return x


def test_options_are_known():
    gone = {"xla_cpu_use_fusion_emitters"}  # newer releases always use them
    assert program._FAST.keys() - program.fast_options().keys() <= gone
    many, fewer = (
        program.options(program.MANY_DIMENSIONS - k, frozenset()) for k in (0, 1)
    )
    assert many == fewer | program._WITHOUT_YNNPACK
    assert fewer in (
        {},
        program.fast_options(),
    )  # as the tests' own programs are compiled


def test_options_for_convolutions():
    plain = program.options(4, set())
    single = program.options(4, {torch.float32, torch.bfloat16})
    assert single == plain | program._OWN_CONVOLUTIONS
    assert program.options(4, {torch.float32, torch.float64}) == plain
    x, w = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3, requires_grad=True)
    torch.nn.functional.conv2d(x, w).sum().backward()
    assert w.grad.sum() == 36
    assert last().lowered.convolved == {torch.float32}


def test_products_and_sums_of_many_dimensions():
    # Upsampling by learned weights, as for optical flow: XLA's kernels crashed.
    weights = torch.rand(1, 1, 9, 4, 4, 6, 8, requires_grad=True)
    flow = torch.rand(1, 2, 1, 1, 1, 6, 8, requires_grad=True)
    for _ in range(3):
        weights.grad = None
        (weights * flow.expand(1, 2, 9, 1, 1, 6, 8)).sum(2).abs().mean().backward()
        wanted = flow.detach().sum(1, keepdim=True).expand_as(weights) / 1536
        assert torch.allclose(weights.grad, wanted)


def test_what_updates_nothing_is_compiled_fast_first(small_bounds):
    # Of a rank that no other test has: shapes that vary are another matter.
    x = torch.linspace(0, 1, 500).view(500, *[1] * 7).clone()
    x.tolist()  # an input, however it was made
    found = []
    for run in range(FAST_RUNS + 3):
        before = torch.explain()
        found.append(many(x, 16)[:5].view(-1).tolist())
        new = torch.explain(before).programs
        if run == 0:
            [first] = new
        elif run == FAST_RUNS:
            [again] = new
            assert again.reason == "run 3 times: compiled again, optimized"
            assert (again.events, again.line) == (first.events, first.line)
            assert again.seconds > 0
        else:
            assert not new
    for values in found[1:]:
        assert values == pytest.approx(found[0], rel=1e-5)


def test_runs_that_failed_count_as_well(small_bounds, monkeypatch):
    x = torch.linspace(0, 1, 500).view(500, *[1] * 6).clone()
    x.tolist()

    def failing(function, arguments):
        raise jax.errors.JaxRuntimeError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(program, "itertools", types.SimpleNamespace(starmap=failing))
        for _ in range(FAST_RUNS):
            with pytest.raises(jax.errors.JaxRuntimeError, match="no room"):
                many(x, 16)[:5].view(-1).tolist()
    before = torch.explain()
    assert many(x, 16)[:5].view(-1).tolist()[0] == 0.0
    [again] = torch.explain(before).programs
    assert again.reason.endswith("compiled again, optimized") and again.seconds > 0


def test_light_programs_are_optimized_when_they_have_run_often(monkeypatch):
    monkeypatch.setattr(program, "QUARTER", 1000)
    monkeypatch.setattr(program, "LIGHT_RUNS", 5)

    def updated(elements, runs):
        """How many fast runs are left after each, and why it was compiled."""
        x = torch.linspace(0, 1, elements).view(-1, *[1] * 7).clone()
        x.tolist()
        before = torch.explain()
        left = []
        for _ in range(runs):
            x += many(x, 3) * 1e-9
            local.rec.flush()
            left.append(max(last()._optimized_at - last().runs, 0))
        return left, [p.reason for p in torch.explain(before).programs][1:]

    # Five operators on 200 elements, of which the sum reads twice as many.
    left, reasons = updated(200, 15)
    assert left == [*range(12, -1, -1), 0, 0]
    assert reasons == ["run 13 times: compiled again, optimized"]
    assert updated(1000, 3) == ([0, 0, 0], [])


@pytest.mark.parametrize(
    ("elements", "runs"), [(200, 150), (1000, 4 * 30), (20_000, 4), (10**6, FAST_RUNS)]
)
def test_fast_runs_cost_no_more_than_optimizing(monkeypatch, elements, runs):
    monkeypatch.setattr(program, "QUARTER", 1000)
    lowered = types.SimpleNamespace(size=20, elements=elements)
    assert program.fast_runs(lowered, updates=False, rare=False) == runs


def test_what_updates_its_inputs_is_compiled_once(small_bounds):
    x = torch.linspace(0, 1, 500)
    for run in range(FAST_RUNS + 2):
        before = torch.explain()
        x += many(x, 16) * 1e-9
        x[0].item()
        assert run < 2 or not torch.explain(before).programs


def test_steps_on_shapes_that_vary_are_compiled_fast(
    small_bounds, all_compiled, monkeypatch
):
    monkeypatch.setattr(program, "RARE_RUNS", 3)
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], 1e-3, momentum=0.9)
    reasons = []
    for size in [3, 4, 5, 6, 7, 7, 7, 7, 7]:
        before = torch.explain()
        x = torch.ones(size, *[1] * 8)  # of a rank of its own, as above
        x.tolist()
        optimizer.zero_grad()
        many(x * w, 6).sum().backward()
        optimizer.step()
        assert torch.isfinite(w).item()
        reasons.append([p.reason for p in torch.explain(before).programs][-1:])
    assert not last()._optimized_at
    assert reasons[4] and not reasons[5] and not reasons[6]
    assert reasons[7:] == [["run 4 times: compiled again, optimized"], []]


def test_shapes_that_vary_are_compiled_fast(small_bounds, all_compiled):
    for length, first, then in ((6, FAST_RUNS, program.RARE_RUNS), (2, 0, 0)):
        fast = []
        for size in range(3, 11):
            # Of a rank that no other test has, so that all its shapes are from here.
            x = torch.ones(size, *[1] * 9)
            x.tolist()
            many(x, length).sum().item()
            fast.append(max(last()._optimized_at - 1, 0))
        assert fast[0] == first
        assert fast[-1] == then
        assert fast == sorted(fast)


def test_backward_is_cut_where_shapes_that_vary_end(all_compiled):
    # The loss is about so many rows as the data say; what comes before is not.
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    x = torch.randn(16, 8)
    sizes = []
    for n in (*range(1, 8), 6):
        h = net(x)
        h.sum().item()
        loss = h[:n].square().sum(1).exp().sum() / n
        loss.item()
        (expected,) = torch.autograd.grad(
            (net(x)[:n].square().sum(1).exp().sum() / n), [net[0].bias]
        )
        expected = expected.tolist()
        start = program.count()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sizes.append([entry.events for entry in program.compiled_since(start)])
        assert net[0].bias.grad.tolist() == pytest.approx(expected, rel=1e-5)
    whole = sizes[2][0]
    assert sizes[:3] == [sizes[0], [whole], [whole]]
    # From here on the part before is one program, the part that varies a small one.
    part, rest = sizes[3]
    assert max(part, rest) < whole
    assert sizes[4:] == [[part]] * 3 + [[]]


def test_integers_of_one_line_are_learnt_where_their_values_decide_no_error(
    all_compiled,
):
    def compiled(x, n):
        start = program.count()
        (x.sin() ** n if x.is_floating_point() else x**n).tolist()
        return program.count() - start

    # Shapes differ, too: no recording repeats another's events.
    floats = [compiled(torch.ones(n, n + 1), n) for n in (2, 3, 4, 5, 5)]
    assert floats == [1, 1, 1, 1, 0]
    assert [compiled(torch.ones(6, 7), n) for n in (6, 7, 8)] == [1, 0, 0]
    for n in (2, 3, 4):
        compiled(torch.arange(n), n)
    with pytest.raises(RuntimeError, match="negative integer powers"):
        compiled(torch.arange(3), -1)


def test_threads_share_the_cache():
    cache = program.ProgramCache(bound=50)
    states = [State(None, ROOT, None) for _ in range(60)]
    end = time.monotonic() + 0.3

    def change():
        while time.monotonic() < end:
            for state in states:
                cache.add((state,), types.SimpleNamespace())

    threads = [threading.Thread(target=change) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for state in itertools.cycle(states):
            if time.monotonic() > end:
                break
            cache.get((state,))
            cache.variants_of(state)
            cache.forget(None, {id(other) for other in states if other is not state})
    finally:
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert len(cache) <= 51


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam])
def test_large_parameters_are_overwritten_without_a_copy(monkeypatch, make):
    given = []
    call = program.Program.__call__

    def spy(self, scalars, inputs, result):
        gifts, kept = self.inputs
        shapes = [
            [jax.ShapeDtypeStruct(inputs[p].shape, inputs[p].dtype) for p in positions]
            for positions in (gifts, kept)
        ]
        given[:] = self, scalars, *shapes
        return call(self, scalars, inputs, result)

    monkeypatch.setattr(program.Program, "__call__", spy)
    model = torch.nn.Sequential(torch.nn.Linear(4, 512), torch.nn.Linear(512, 512))
    optimizer = make(model.parameters(), lr=0.1)
    before = model[1].weight.sum().item()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    ran, *arguments = given
    with jax.enable_x64(True):
        memory = ran._jitted.lower(*arguments).compile().memory_analysis()
    # The backward of the second layer reads its weight, of 1 MiB.
    assert memory.temp_size_in_bytes < 1 << 19
    assert model[1].weight.sum().item() != before


@pytest.mark.parametrize("first", ["held", "alone"])
def test_small_arrays_held_elsewhere_need_no_other_program(compiled, first):
    def turn(held):
        array = a._array if held else None
        before = a.tolist()
        a.mul_(2).add_(1)
        assert a.tolist() == [2 * x + 1 for x in before]
        assert array is None or array.tolist() == before

    a = torch.arange(4.0) * 3
    a.tolist()
    made = compiled()
    for held in (first == "held", first != "held", True, False):
        turn(held)
    assert compiled() == made + 1


def test_large_arrays_held_elsewhere_do(compiled):
    a = torch.zeros(1 << 20) + 1
    a.sum().item()
    made = compiled()
    a.mul_(2)
    local.rec.flush()
    held = a._array
    a.mul_(2)
    local.rec.flush()
    assert compiled() == made + 2
    assert held[-1] == 2 and a[-1] == 4


def test_what_is_known_of_a_state_goes_with_its_programs():
    cache = program.ProgramCache(bound=2)
    first, second = (State(None, ROOT, name) for name in ("a", "b"))
    cache.add((first, (0,), ()), "one")
    cache.add((first, (1,), (2,)), "two")
    assert cache.variants_of(first) == [((0,), ()), ((1,), (2,))]
    cache.add((second, (0,), ()), "three")
    assert cache.variants_of(first) == [((1,), (2,))]
    cache.add((second, (0,), ()), "again")
    assert cache.variants_of(second) == [((0,), ())]
    cache.forget(None, {id(second)})
    assert cache.variants_of(first) == []
    assert list(cache._variants) == [second]
    assert cache.get((second, (0,), ())) == "again"
