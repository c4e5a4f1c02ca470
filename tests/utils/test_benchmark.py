"""`torch.utils.benchmark`."""

import importlib
import pickle
import re
from typing import Any

import pytest

from tests.oracle import attempt, case


def package(torch):
    """PyTorch has no attribute for it until it is imported."""
    return importlib.import_module(f"{torch.__name__}.utils.benchmark")


def text_of(measurement):
    """Without its address."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(measurement))


def measured(torch, times, number=1, **task: Any):
    benchmark = package(torch)
    options = {"stmt": "f(x)", "setup": "pass", **task}
    return benchmark.Measurement(number, times, benchmark.TaskSpec(**options))


@case.over(
    {
        "one": [2e-6],
        "few": [1e-4, 1.1e-4, 1.05e-4],
        "steady": [0.3, 0.301, 0.302, 0.3],
        "scattered": [3e-3, 5e-3, 2e-3, 9e-3, 4e-3],
        "fluctuating": [1.0, 1.1, 1.2, 1.05, 1.15],
        "tiny": [4e-9, 4.1e-9, 4e-9, 4e-9],
    }
)
def measurements(torch, times):
    for number in (1, 7):
        found = measured(torch, times, number, label="L", sub_label="s", num_threads=2)
        yield found.times, found.median, found.mean, found.iqr
        yield found.significant_figures, found.has_warnings, found.meets_confidence(0.3)
        yield text_of(found), found.title, found.as_row_name, found.num_threads


@case
def tasks(torch):
    spec = package(torch).TaskSpec
    for options in (
        {"stmt": "f(x)", "setup": "pass"},
        {"stmt": "f(x)", "setup": "x = 1", "sub_label": "s", "description": "d"},
        {"stmt": "a\nb", "setup": "x = 1\ny = 2", "description": "n\nm"},
        {"stmt": "a\nb", "setup": "", "sub_label": "s", "env": "E"},
        {"stmt": "a\nb", "setup": "", "label": "l", "env": "E"},
    ):
        task = spec(**options)
        yield task.title, task.setup_str(), task.summarize(), task == spec(**options)
        found = package(torch).Measurement(3, [1.0, 2.0], task)
        yield text_of(found), found.env, found.description
    yield attempt(getattr, found, "nothing")
    merged = package(torch).Measurement.merge([found, found])
    yield [(m.number_per_run, m.raw_times, m.metadata) for m in merged]


@case
def units(torch):
    benchmark = package(torch)
    for time in (3e-10, 2e-7, 1e-6, 1e-3, 0.5, 1.0, 300.0):
        yield benchmark.select_unit(time)
    yield [benchmark.unit_to_english(u) for u in ("ns", "us", "ms", "s")]
    for number, figures in ((3.14159, 2), (123456, 3), (-0.00456, 1), (1000.0, 2)):
        yield benchmark.trim_sigfig(number, figures)
    yield attempt(benchmark.trim_sigfig, 1.0, 1.5)
    yield benchmark.ordered_unique([3, 1, 3, 2, 1])
    before = torch.get_num_threads()
    with benchmark.set_torch_threads(1):
        yield torch.get_num_threads()
    yield torch.get_num_threads() == before
    yield [x.name for x in benchmark.Colorize], [x.name for x in benchmark.Language]


def results(torch, env=None):
    found = []
    for k, (row, threads) in enumerate(
        [("a", 1), ("b", 1), ("long name", 1), ("a", 4), ("b", 4)]
    ):
        for j, column in enumerate(["n = 1", "n = 1000000"]):
            time = 1e-5 * (k * k + 1) * (1 + 3 * j)
            options: dict[str, Any] = {
                "label": "sums",
                "sub_label": row,
                "description": column,
            }
            if env:
                options["env"] = env[k % 2]
            if (k, j) != (2, 1):
                times = [time, time * (1.02 + k / 10), time * 1.01, time * 1.3]
                one = measured(torch, times, num_threads=threads, **options)
                found.append(one)
    return found


@case
def tables(torch):
    compare = package(torch).Compare(results(torch))
    yield str(compare)
    compare.trim_significant_figures()
    yield str(compare)
    compare.highlight_warnings()
    yield str(compare)
    compare.colorize()
    yield str(compare)
    compare.colorize(rowwise=True)
    compare.extend_results([measured(torch, [2.0] * 5, description="d")])
    compare.print()
    yield str(package(torch).Compare(results(torch, env=["old", "newer"])))
    yield attempt(compare.extend_results, [1])


@case
def timers(torch):
    timer = package(torch).Timer
    yield attempt(timer, 3)
    yield attempt(lambda: timer(language="rust"))
    yield attempt(lambda: timer(global_setup="x"))
    yield attempt(lambda: timer("x = ("))
    yield attempt(timer().repeat)
    yield attempt(timer().autorange)
    yield attempt(lambda: timer("missing").timeit(2))
    found = timer(
        """
        y = x + k
        z = y * 2
        """,
        "k = 3",
        globals={"x": torch.ones(2)},
        label="mine",
    ).timeit(10)
    yield found.number_per_run, len(found.raw_times), found.mean > 0, found.stmt
    yield found.task_spec.label, found.title, found.setup
    seen = []
    found = timer("torch.ones(2) + 1").blocked_autorange(
        callback=lambda number, time: seen.append(number), min_run_time=0.01
    )
    yield set(seen) == {found.number_per_run}, len(seen) == len(found.times)
    found = timer("pass").adaptive_autorange(0.5, min_run_time=0.001, max_run_time=0.1)
    yield found.median < 1e-3
    yield found.median == pickle.loads(pickle.dumps(found)).median


@case
def fuzzing(torch):
    benchmark = package(torch)
    parameter, tensor = benchmark.FuzzedParameter, benchmark.FuzzedTensor
    alias = benchmark.ParameterAlias("k0")
    fuzzer = benchmark.Fuzzer(
        parameters=[
            parameter("k0", minval=2, maxval=16, distribution="loguniform"),
            [parameter("k1", minval=1, maxval=5, distribution="uniform", strict=True)],
            parameter("scale", minval=0.0, maxval=1.0, distribution="uniform"),
            parameter("step", minval=1, maxval=2, distribution="uniform"),
        ],
        tensors=[
            tensor("x", ("k0", "k1"), steps=("step", 1), min_elements=12),
            tensor("i", ("k1",), dtype=torch.int64, max_elements=5),
        ],
        constraints=[lambda params: params["k0"] > 2],
        seed=3,
    )
    for tensors, properties, params in fuzzer.take(3):
        yield tensors, params
        yield sorted((k, sorted(map(str, v.items()))) for k, v in properties.items())
    yield fuzzer.rejection_rate
    yield repr(alias)
    yield attempt(lambda: parameter("x", distribution="normal"))
    yield attempt(lambda: parameter("x", 1, 2, distribution={1: 0.5, 2: 0.4}))
    yield attempt(lambda: parameter("x", distribution={1: -0.5}))
    cycle = benchmark.Fuzzer([parameter("a", 1, 1, "uniform")], [], seed=0)
    yield attempt(cycle._resolve_aliases, {"a": benchmark.ParameterAlias("a")})
    yield attempt(
        lambda: benchmark.Fuzzer([parameter("a", 1, 1, "uniform")], [tensor("a", (2,))])
    )


@case(warnings=False)  # whether invariants are checked: only until somebody said so
def fuzzing_sparse(torch):
    benchmark = package(torch)
    parameter = benchmark.FuzzedParameter
    for coalesced in (True, False):
        fuzzer = benchmark.Fuzzer(
            [
                parameter("n", 3, 6, distribution="uniform"),
                parameter("density", 0.2, 0.6, distribution="uniform"),
                parameter("coalesced", coalesced, coalesced, distribution="uniform"),
            ],
            [benchmark.FuzzedSparseTensor("s", ("n", 4))],
            seed=1,
        )
        for tensors, properties, _ in fuzzer.take(1):
            yield tensors["s"].to_dense()
            yield sorted(map(str, properties["s"].items()))


def test_a_statement_is_run_each_time():
    """Its result is computed although nobody uses it, and computed again."""
    import torchshim as torch
    from torchshim._core import program

    runs = []
    watcher = lambda each, began, result: runs.append(each.lowered.n_events)  # noqa: E731
    program.watchers.append(watcher)
    try:
        x = torch.ones(3)
        torch.utils.benchmark.Timer("x.exp()", globals={"x": x}).timeit(5)
    finally:
        program.watchers.remove(watcher)
    assert len(runs) == 2 + 5


def test_what_is_not_supported():
    import torchshim as torch

    timer = torch.utils.benchmark.Timer
    with pytest.raises(NotImplementedError, match="C\\+\\+"):
        timer(language="c++")
    with pytest.raises(NotImplementedError, match="Callgrind"):
        timer().collect_callgrind()
    with pytest.raises(NotImplementedError, match="Callgrind"):
        torch.utils.benchmark.CallgrindStats()
