"""`torch.profiler` and `torch.autograd.profiler`."""

import gzip
import importlib
import json

import pytest

from tests.oracle import attempt, case

# What PyTorch's collector prints to stdout goes past these cases.


@case
def schedules(torch):
    schedule = torch.profiler.schedule
    for options in (
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 1},
        {"wait": 1, "warmup": 1, "active": 2, "skip_first": 2, "skip_first_wait": 1},
        {"wait": 0, "warmup": 0, "active": 1},
        {"wait": 2, "warmup": 1, "active": 1, "repeat": 2},
    ):
        plan = schedule(**options)
        yield [plan(step).name for step in range(14)]
    yield attempt(plan, -1)
    yield attempt(lambda: schedule(wait=-1, warmup=0, active=1))
    yield attempt(lambda: schedule(wait=0, warmup=0, active=0))


@case
def errors_and_names(torch):
    profiler = torch.profiler
    yield attempt(lambda: profiler.profile(activities=[]))
    yield attempt(profiler.profile().key_averages)
    yield attempt(profiler.profile().events)
    yield repr(torch.autograd.profiler.profile())
    yield (
        [a.name for a in profiler.ProfilerAction],
        list(profiler.ProfilerActivity.__members__),
    )
    with torch.autograd.profiler.profile(enabled=False) as nothing:
        yield nothing
    with torch.autograd.profiler.emit_nvtx(enabled=False) as nothing:
        yield nothing

    @profiler.record_function("named")
    def f(x):
        """Its text."""
        return x + 1

    yield f.__name__, f.__doc__, f(1)


def test_marks_for_intels_tools_are_refused():
    itt = importlib.import_module("torchshim.profiler").itt
    assert not itt.is_available()
    for call in (itt.range_pop, lambda: itt.range_push("a"), lambda: itt.mark("a")):
        with pytest.raises(RuntimeError, match="ITT functions not installed"):
            call()
    with pytest.raises(RuntimeError, match="ITT functions not installed"):
        with itt.range("step {}", 1):
            pass


@case
def steps_of_optimizers(torch):
    w = torch.ones(2, requires_grad=True)
    optimizer, other = torch.optim.SGD([w], lr=0.1), torch.optim.LBFGS([w], lr=0.1)

    def closure():
        other.zero_grad()
        loss = (w * 2).sum()
        loss.backward()
        return loss

    with torch.profiler.profile() as found:
        (w * 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        other.step(closure)
    yield [e.name for e in found.events() if e.name.startswith("Optimizer")][:6]
    optimizer.step()
    yield w.grad, w


@case
def is_it_on(torch):
    enabled = torch.autograd._profiler_enabled
    yield enabled()
    with torch.profiler.profile():
        yield enabled()
    with torch.autograd.profiler.profile():
        yield enabled()
        torch.autograd._disable_profiler()
        yield enabled()
    torch.autograd._disable_profiler()
    yield enabled()


@case
def what_is_counted(torch):
    x = torch.ones(2, 3, requires_grad=True)
    with torch.profiler.profile(record_shapes=True) as found:
        with torch.profiler.record_function("block"):
            for _ in range(3):
                y = torch.relu(x)
        y.exp()
    averages = {e.key: e for e in found.key_averages()}
    yield [(k, averages[k].count) for k in ("block", "aten::relu", "aten::exp")]
    yield averages["block"].cpu_time_total >= averages["aten::relu"].cpu_time_total
    events = [e for e in found.events() if e.name == "aten::relu"]
    yield [(e.input_shapes, e.cpu_parent.name) for e in events]
    table = found.key_averages().table(sort_by="cpu_time_total", row_limit=1)
    lines = table.splitlines()
    yield lines[1].split(), lines[0].replace("-", "").strip(), len(lines)
    yield attempt(found.key_averages().table, "nothing")


@case
def grouped_by_shape(torch):
    with torch.autograd.profiler.profile(record_shapes=True) as found:
        for rows in (1, 2, 2):
            torch.ones(rows, 3).exp()
    for flags in ({}, {"group_by_input_shape": True}):
        averages = found.key_averages(**flags)
        shown = [(e.count, e.input_shapes) for e in averages if e.key == "aten::exp"]
        yield sorted(shown, key=str)
    yield attempt(found.key_averages, group_by_input_shapes=True)


@case
def fields_of_events(torch):
    kinds = torch.profiler.DeviceType
    known = sorted(kinds.__members__.values(), key=int)
    yield [(repr(kind), str(kind), int(kind)) for kind in known]
    yield kinds.CUDA == kinds(1), kinds is torch.autograd.DeviceType
    yield kinds is torch._C._autograd.DeviceType
    with torch.profiler.profile() as found:
        with torch.profiler.record_function("block"):
            torch.ones(2).exp()
    events = {e.name: e for e in found.events()}
    outer, inner = events["block"].time_range, events["aten::exp"].time_range
    yield outer.start <= inner.start <= inner.end <= outer.end
    yield inner.elapsed_us() == inner.end - inner.start
    yield [
        (e.device_type, e.use_device) for e in (events["block"], events["aten::exp"])
    ]
    yield [e.device_type for e in found.key_averages() if e.key == "aten::exp"]


@case
def memory_and_operations(torch):
    x, weight = torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3)
    nn = torch.nn.functional
    with torch.profiler.profile(profile_memory=True, with_flops=True) as found:
        with torch.profiler.record_function("block"):
            y = nn.conv2d(x, weight, stride=2, padding=1)
            z = nn.linear(y.flatten(1), torch.ones(5, 64), torch.ones(5))
        kept = [z.mul(3), z + 1, torch.bmm(x[0], x[1]), z.max(1), z.add_(2)]
    averages = {e.key: e for e in found.key_averages()}
    for name in ("conv2d", "linear", "mul", "add", "bmm", "max", "flatten"):
        yield name, averages[f"aten::{name}"].cpu_memory_usage
    yield len(kept)
    for name in ("conv2d", "mul", "bmm"):
        yield name, averages[f"aten::{name}"].flops
    table = found.key_averages().table()
    yield [name in table for name in ("CPU Mem", "Self CPU Mem", "Total FLOPs")]
    module = importlib.import_module(f"{torch.__name__}.autograd.profiler_util")
    yield [module._format_memory(n) for n in (0, 12, 1536, -5 << 20, 3 << 30)]


@case
def steps(torch):
    done = []

    def ready(prof):
        names = {e.key for e in prof.key_averages()}
        done.append((prof.step_num, sorted(n for n in names if "Step" in n)))

    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(10):
            torch.ones(2).add(1)
            prof.step()
    yield done, prof.step_num
    with torch.profiler.profile(schedule=plan, acc_events=True) as prof:
        for _ in range(10):
            torch.ones(2).add(1)
            prof.step()
    yield [(e.key, e.count) for e in prof.key_averages() if "Step" in e.key]


def step():
    import torchshim as torch

    w = torch.ones(4, 4, requires_grad=True)
    x = torch.ones(3, 4)

    def run():
        loss = torch.tanh(x @ w).sum()
        loss.backward()
        return loss.item()

    return run


def test_programs_and_gradients_are_timed():
    from torchshim.autograd import profiler

    run = step()
    with profiler.profile(with_stack=True) as first:
        run()
    run()
    with profiler.profile() as second:
        run()
    names = [e.name for e in second.function_events]
    assert sum(n.startswith("XLA program") for n in names) == 1
    assert not any("compilation" in n for n in names)
    assert "autograd::engine::evaluate_function: TanhBackward0" in names
    program = next(e for e in first.function_events if "XLA" in e.name)
    assert program.cpu_parent.name == "aten::item"
    assert "test_profiler.py" in program.stack[0]
    assert program.cpu_time_total > 0
    text = first.key_averages(group_by_stack_n=1).table(sort_by="self_cpu_time_total")
    assert "XLA" in text and "Source Location" in text


def test_nothing_stays_behind():
    from torchshim._core import program, walk
    from torchshim._core.record import local
    from torchshim.autograd import profiler

    run = step()
    run()
    with pytest.raises(ZeroDivisionError), profiler.profile():
        run()
        raise ZeroDivisionError
    assert not walk.watcher and not program.watchers
    mode = local.rec.mode
    local.rec.set_mode()
    assert local.rec.mode == mode == local.rec.bits
    with profiler.profile() as outer, pytest.raises(RuntimeError, match="already"):
        profiler.profile().__enter__()
    assert outer.function_events == []


def test_anomaly_mode_within_a_profile():
    import torchshim as torch
    from torchshim.autograd import profiler

    x = torch.zeros(1, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True), profiler.profile():
        with pytest.warns(UserWarning, match="SqrtBackward0"):
            with pytest.raises(RuntimeError, match="nan"):
                (x.sqrt() * 0).sum().backward()


def test_traces(tmp_path):
    import torchshim as torch

    run = step()
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "a"), "me", True)
    with torch.profiler.profile(on_trace_ready=handler, with_stack=True) as prof:
        with torch.profiler.record_function("mine"):
            run()
        prof.add_metadata_json("more", "[1]")
    (file,) = (tmp_path / "a").iterdir()
    assert file.name.startswith("me.") and file.name.endswith(".pt.trace.json.gz")
    trace = json.loads(gzip.decompress(file.read_bytes()))
    assert trace["more"] == [1]
    found = {e["name"]: e for e in trace["traceEvents"]}
    inner, outer = found["aten::tanh"], found["mine"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    prof.export_stacks(str(tmp_path / "stacks"))
    assert "test_profiler.py" in (tmp_path / "stacks").read_text()


def test_what_is_not_supported_says_so():
    import torchshim as torch

    with pytest.raises(NotImplementedError, match="use_cpu"):
        torch.autograd.profiler.profile(use_cpu=False)
    with pytest.raises(NotImplementedError, match=r"jax\.profiler"):
        torch.autograd.profiler.emit_nvtx().__enter__()


@case
def while_it_runs(torch):
    for module in (torch.profiler, torch.autograd.profiler):
        profile = module.profile()
        yield attempt(profile.key_averages)
        with profile:
            torch.ones(2)
            yield list(profile.key_averages()), type(profile.key_averages()).__name__
        yield "aten::ones" in [each.key for each in profile.key_averages()]
