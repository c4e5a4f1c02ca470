"""Profilers that were never started, that have ended, and that go through cycles."""

from __future__ import annotations

from tests.oracle import attempt, case


def _profile(torch, **options):
    activities = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=activities, **options)


@case(raises=AssertionError).over("key_averages", "events", "stop", "step")
def never_started(torch, name):
    yield attempt(lambda: str(getattr(_profile(torch), name)()))


@case
def after_the_end(torch):
    with _profile(torch) as p:
        torch.ones(2).exp()
    yield str(p.current_action), p.step_num
    p.step()
    p.step()
    yield str(p.current_action), p.step_num
    yield p.key_averages()[0].key
    with _profile(torch) as q:
        torch.zeros(2).exp()
    yield q.key_averages()[0].key, p.key_averages()[0].key
    q.stop()


@case(warnings=False).over(steps=range(7), acc_events=[False, True])
def cycles(torch, steps, acc_events):
    def ready(p):
        print("ready", p.step_num, p.current_action)

    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with _profile(
        torch, schedule=plan, on_trace_ready=ready, acc_events=acc_events
    ) as p:
        for _ in range(steps):
            torch.ones(2) + 1
            p.step()
    yield str(p.current_action), p.step_num
    events = [e for e in p.events() if "Step" in e.name]
    yield [(e.name, e.key, e.trace_name) for e in events]


@case(warnings=False)
def two_steps_recorded(torch):
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
    with _profile(torch, schedule=plan) as p:
        for _ in range(3):
            p.step()
    yield str(p.current_action), [e.name for e in p.events()]
