"""`torch.multiprocessing`: processes, queues of tensors, failures."""

from __future__ import annotations

import os

import torchshim
import torchshim.multiprocessing as mp
from tests.oracle import attempt, case


def double(i, queue, x):
    queue.put((i, x * 2))


def fails(i):
    if i == 1:
        raise ValueError("no")


def leaves(i):
    os._exit(3)


@case
def strategies(torch):
    import importlib

    ours = importlib.import_module(f"{torch.__name__}.multiprocessing")
    yield ours.get_sharing_strategy(), sorted(ours.get_all_sharing_strategies())
    ours.set_sharing_strategy("file_system")
    yield ours.get_sharing_strategy()
    ours.set_sharing_strategy("file_descriptor")


def test_start_processes():
    queue = mp.get_context("fork").Queue()
    x = torchshim.arange(3.0)
    context = mp.start_processes(double, (queue, x), 2, join=False, start_method="fork")
    while not context.join():  # raises what ended a process
        pass
    found = dict(queue.get(timeout=60) for _ in range(2))
    assert {i: t.tolist() for i, t in found.items()} == {0: [0, 2, 4], 1: [0, 2, 4]}
    error = attempt(mp.start_processes, fails, (), 2, start_method="fork")
    assert type(error) is mp.ProcessRaisedException and error.error_index == 1
    assert "-- Process 1 terminated with the following error" in str(error)
    assert str(error).rstrip().endswith("ValueError: no")
    error = attempt(mp.start_processes, leaves, (), 1, start_method="fork")
    assert (
        str(error) == "process 0 terminated with exit code 3" and error.exit_code == 3
    )
