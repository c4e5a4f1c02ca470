"""`torch.multiprocessing`: processes, queues of tensors, failures."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import threading
import time
from concurrent import futures

import pytest

import torchshim
import torchshim.multiprocessing as mp
from tests.oracle import attempt, case
from torchshim._core.shared import Shared
from torchshim.multiprocessing import _fork


def double(i, queue, x):
    queue.put((i, (x * 2).tolist()))  # its memory would go with this process


def fails(i):
    if i == 1:
        raise ValueError("no")


def leaves(i):
    os._exit(3)


def fails_or_stays(i):
    if i == 1:
        raise ValueError("no")
    time.sleep(60)


class Told(logging.Handler):
    """Keeps the texts of messages, without numbers of processes."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(re.sub(r"\d+", "N", record.getMessage()))


def test_processes_that_are_ended_are_told():
    told = Told()
    log = logging.getLogger("torch.multiprocessing.spawn")
    log.addHandler(told)
    with pytest.raises(mp.ProcessRaisedException):
        mp.start_processes(fails_or_stays, nprocs=2, start_method="fork")
    log.removeHandler(told)
    assert told.texts == ["Terminating process N via signal SIGTERM"]


@case
def strategies(torch):
    import importlib

    ours = importlib.import_module(f"{torch.__name__}.multiprocessing")
    yield ours.get_sharing_strategy(), sorted(ours.get_all_sharing_strategies())
    ours.set_sharing_strategy("file_system")
    yield ours.get_sharing_strategy()
    ours.set_sharing_strategy("file_descriptor")


def total(x):
    return (x * 2).sum().item()


def test_every_kind_of_fork_computes():
    torchshim.ones(2).sum().item()  # the runtime runs
    context = mp.get_context("fork")
    x = [torchshim.ones(2), torchshim.arange(3.0)]
    with context.Pool(2) as pool:
        assert pool.map(total, x) == [4.0, 6.0]
    with futures.ProcessPoolExecutor(1, context) as pool:
        assert list(pool.map(total, x)) == [4.0, 6.0]
    queue = context.SimpleQueue()
    process = context.Process(target=double, args=(0, queue, x[1]))
    process.start()
    assert queue.get()[1] == [0, 2, 4]
    process.join()
    assert process.exitcode == 0
    child = os.fork()
    if not child:
        os._exit(int(total(x[1])))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6
    assert (x[1] + 1).tolist() == [1, 2, 3]


def test_forks_where_jax_does_not_tell_whether_it_runs(monkeypatch):
    x = torchshim.arange(3.0)
    x.sum().item()
    monkeypatch.setattr(_fork, "xla_bridge", None)
    child = os.fork()
    if not child:
        os._exit(int(total(x)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6


def test_start_processes():
    queue = mp.get_context("fork").Queue()
    x = torchshim.arange(3.0)
    context = mp.start_processes(double, (queue, x), 2, join=False, start_method="fork")
    while not context.join():  # raises what ended a process
        pass
    found = dict(queue.get(timeout=60) for _ in range(2))
    assert found == {0: [0, 2, 4], 1: [0, 2, 4]}
    error = attempt(mp.start_processes, fails, (), 2, start_method="fork")
    assert type(error) is mp.ProcessRaisedException and error.error_index == 1
    assert "-- Process 1 terminated with the following error" in str(error)
    assert str(error).rstrip().endswith("ValueError: no")
    error = attempt(mp.start_processes, leaves, (), 1, start_method="fork")
    assert (
        str(error) == "process 0 terminated with exit code 3" and error.exit_code == 3
    )


@pytest.mark.parametrize("asked", ["0", "1"])
def test_a_fork_server_starts_processes_together(monkeypatch, asked):
    monkeypatch.setenv(mp.ENV_VAR_PARALLEL_START, asked)
    threads = []

    class Process:
        sentinel, exitcode = 0, 0

        def __init__(self, **options):
            self.options = options

        def start(self):
            threads.append(threading.current_thread())

    context = type("Context", (), {"Process": Process})
    monkeypatch.setattr(multiprocessing, "get_context", {"forkserver": context}.get)
    made = mp.start_processes(leaves, (), 2, join=False, start_method="forkserver")
    assert [p.options["args"][1] for p in made.processes] == [0, 1]
    assert all((t is threading.main_thread()) == (asked == "0") for t in threads)


def written(kind):
    x = torchshim.ones(4, dtype=kind)
    x[1:] = 3
    x[2:].mul_(2)
    torchshim.add(x, x, out=x)
    return x.tolist()


def test_writes_in_a_fork_that_numpy_does_not_compute():
    torchshim.ones(2).sum().item()  # the runtime runs
    with mp.get_context("fork").Pool(1) as pool:
        for kind in (torchshim.float32, torchshim.bfloat16):
            assert pool.apply(written, (kind,)) == [2, 6, 12, 12]


def test_a_write_leaves_what_others_write_meanwhile(monkeypatch):
    """Another process may write to other elements while a program computes."""
    x = torchshim.zeros(2, 3).share_memory_()
    memory = x.numpy()
    store = Shared.store

    def late(self, *args):
        memory[1, 2] = 7
        store(self, *args)

    monkeypatch.setattr(Shared, "store", late)

    def after(write):
        memory[...] = 0
        write()
        return memory.tolist()

    index = torchshim.tensor([1])

    def add():
        x[0, 1] += 1

    assert after(add) == [[0, 1, 0], [0, 0, 7]]
    assert after(lambda: x[0].copy_(torchshim.ones(3))) == [[1, 1, 1], [0, 0, 7]]
    assert after(lambda: x[:, 0].fill_(2)) == [[2, 0, 0], [2, 0, 7]]
    assert after(lambda: x.T[0].mul_(2).add_(1)) == [[1, 0, 0], [1, 0, 7]]
    assert after(lambda: x.index_add_(1, index, torchshim.ones(2, 1))) == [
        [0, 1, 0],
        [0, 1, 7],
    ]
    single = torchshim.zeros(()).share_memory_()
    assert single.add_(1).item() == single.numpy() == 1
    assert after(lambda: x.fill_(3)) == [[3, 3, 3], [3, 3, 3]]


def count(i, x, barrier):
    barrier.wait()
    for _ in range(20):
        x[i] += 1


def test_processes_write_to_elements_of_one_tensor():
    context = mp.get_context("fork")
    barrier = context.Barrier(3)
    x = torchshim.zeros(3).share_memory_()
    processes = [context.Process(target=count, args=(i, x, barrier)) for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert x.tolist() == [20, 20, 20]
