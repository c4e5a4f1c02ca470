"""`torch.monitor`: events, their handlers, statistics over windows of time."""

from __future__ import annotations

import gc
import importlib
import time
from datetime import datetime, timedelta

from tests.oracle import attempt, case


def _monitor(torch):
    return importlib.import_module(f"{torch.__name__}.monitor")


@case
def events(torch):
    monitor = _monitor(torch)
    seen = []
    handle = monitor.register_event_handler(seen.append)
    data = {"a": 1, "b": True, "c": "x", "d": 2.5}
    event = monitor.Event("n", datetime(2020, 1, 1, 2, 3, 4, 5), data)
    monitor.log_event(event)
    yield event.name, event.timestamp, sorted(event.data.items()), len(seen)
    event.name, event.data, event.timestamp = "z", {"q": 1}, datetime(2021, 1, 1)
    yield event.name, event.timestamp, event.data
    yield type(attempt(monitor.Event, "n", datetime(2020, 1, 1), {"a": [1]})).__name__

    def fails(event):
        raise ValueError("no")

    other = monitor.register_event_handler(fails)
    yield attempt(monitor.log_event, event), len(seen)
    monitor.unregister_event_handler(other)  # twice crashes PyTorch
    monitor.log_event(event)
    monitor.unregister_event_handler(handle)
    monitor.log_event(event)
    yield len(seen)


@case
def statistics(torch):
    monitor = _monitor(torch)
    kinds = monitor.Aggregation
    seen = []
    handle = monitor.register_event_handler(seen.append)

    def told(stat):
        return sorted((k.name, v) for k, v in stat.get().items()), stat.count, len(seen)

    every = [kinds.MEAN, kinds.COUNT, kinds.SUM, kinds.MAX, kinds.MIN]
    stat = monitor.Stat("a", every, timedelta(hours=1), 3)
    yield stat.name, told(stat)
    for value in (1, 5, 3.5, 7, 1, 1, 1):
        stat.add(value)
        yield told(stat)
    yield seen[-1].name, sorted(seen[-1].data.items())
    stat = monitor.Stat("b", (kinds.MEAN,), timedelta(milliseconds=20))
    stat.add(2)
    time.sleep(0.05)
    yield told(stat)
    stat.add(4)
    yield told(stat)
    del stat
    gc.collect()
    yield len(seen), seen[-1].data
    monitor.unregister_event_handler(handle)
    yield [(kind.name, int(kind.value)) for kind in every]


@case
def handlers_of_tensorboard(torch):
    monitor = _monitor(torch)
    written = []

    class Writer:
        def add_scalar(self, *args, **kwargs):
            written.append((args, kwargs))

    handler = monitor.TensorboardEventHandler(Writer())
    handler(monitor.Event(monitor.STAT_EVENT, datetime(2020, 1, 1), {"a.mean": 2}))
    handler(monitor.Event("other", datetime(2020, 1, 1), {"a": 1}))
    yield written
    counter = monitor._WaitCounter("k")
    with counter.guard() as inside:
        yield inside
