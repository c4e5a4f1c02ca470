"""`DataLoader(num_workers=...)` against PyTorch: batches, seeds, errors, ends."""

from __future__ import annotations

import gc
import os
import random
import re
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import torchshim
from tests.oracle import attempt, case
from torchshim._functions import memory
from torchshim._functions.ahead import send_ahead, sent_ahead
from torchshim.utils.data import _iterators, _workers
from torchshim.utils.data._utils import companion
from torchshim.utils.data._utils.pin_memory import pin_memory


def text_of(error: Any) -> Any:
    """An error without what differs from run to run."""
    if not isinstance(error, BaseException):
        return error
    lines = str(error).rstrip().split("\n")
    cause = None if error.__cause__ is None else numberless(str(error.__cause__))
    return type(error).__name__, numberless(lines[0]), numberless(lines[-1]), cause


def numberless(text: str) -> str:
    return re.sub(r"pid(\(s\))? \d+", "pid N", text)


def dataset(torch: Any, get: Any, length: int = 7) -> Any:
    class Data(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return length

        def __getitem__(self, index: int) -> Any:
            return get(index)

    return Data()


def stream(torch: Any, make: Any) -> Any:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(make())

    return Stream()


@case
def batches(torch):
    loader = torch.utils.data.DataLoader
    rows = torch.arange(28.0).reshape(7, 4)
    wide = torch.arange(7 * 5000).reshape(7, 5000)  # travels in shared memory

    def get(i):
        return rows[i], {"t": torch.tensor(i), "n": np.float32(i)}, (str(i), i / 2)

    yield list(loader(dataset(torch, get), batch_size=3, num_workers=2))
    (whole,) = loader(dataset(torch, lambda i: wide[i]), batch_size=7, num_workers=1)
    yield whole.sum(), whole[:, 0], whole.is_contiguous()
    whole[0, 0] = 5  # the memory is our own
    yield whole[0, :2]
    kinds = [torch.bool, torch.uint8, torch.bfloat16, torch.complex64, torch.float64]
    data = dataset(torch, lambda i: [torch.ones(2).to(kinds[i])], 5)
    yield list(loader(data, batch_size=None, num_workers=2))
    marked = dataset(torch, lambda i: torch.nn.Parameter(torch.full((2,), float(i))), 2)
    yield list(loader(marked, batch_size=None, num_workers=1))
    data = torch.utils.data.TensorDataset(rows, torch.arange(7))
    generator = torch.Generator().manual_seed(3)
    options = {"num_workers": 2, "shuffle": True, "generator": generator}
    yield list(loader(data, batch_size=2, drop_last=True, **options))
    yield list(loader(torch.utils.data.Subset(data, [5, 1]), 2, num_workers=1))
    yield list(loader(dataset(torch, lambda i: i), 2, num_workers=1, prefetch_factor=1))
    yield list(loader(dataset(torch, lambda i: i, 0), num_workers=1))
    together = loader(dataset(torch, lambda i: i), 4, num_workers=1, collate_fn=tuple)
    yield list(together), len(together)


@case
def seeds(torch):
    def get(_):
        info = torch.utils.data.get_worker_info()
        drawn = torch.rand(2), torch.randint(100, (2,)), random.random()
        named = info.id, info.num_workers, info.worker_method, info.rng
        told = info.seed, named, len(info.dataset), torch.get_num_threads()
        return *drawn, np.random.rand(), *told

    def started(worker_id):
        random.seed(worker_id)

    loader = torch.utils.data.DataLoader
    options = {"batch_size": None, "num_workers": 2}
    torch.manual_seed(11)
    yield list(loader(dataset(torch, get, 4), **options))
    yield list(loader(dataset(torch, get, 2), worker_init_fn=started, **options))
    yield torch.rand(1), torch.utils.data.get_worker_info()


@case
def streams(torch):
    def make():
        info = torch.utils.data.get_worker_info()
        return range(info.id, 11, info.num_workers)

    loader = torch.utils.data.DataLoader
    yield list(loader(stream(torch, make), batch_size=2, num_workers=2))
    yield list(loader(stream(torch, make), batch_size=None, num_workers=2))
    yield list(loader(stream(torch, make), batch_size=4, num_workers=2, drop_last=True))
    yield list(loader(stream(torch, lambda: range(3)), batch_size=2, num_workers=2))
    kept = loader(
        stream(torch, make), batch_size=2, num_workers=2, persistent_workers=True
    )
    yield list(kept), list(kept)
    yield next(iter(kept)), list(kept)


@case
def workers_that_stay(torch):
    def get(i):
        return i, os.getpid()

    kept = torch.utils.data.DataLoader(
        dataset(torch, get, 4), num_workers=2, persistent_workers=True
    )
    first, second = list(kept), list(kept)
    yield [i for i, _ in first], [i for i, _ in second]
    yield {int(p) for _, p in first} == {int(p) for _, p in second}
    begun = iter(kept)
    next(begun)
    yield iter(kept) is begun, [i for i, _ in kept]


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@case
def errors(torch):
    def get(i):
        if i == 1:
            raise ValueError("bad row")
        if i == 2:
            raise KeyError("key")
        if i == 3:
            raise Odd(1, 2)
        return i

    loader = torch.utils.data.DataLoader
    rows = iter(loader(dataset(torch, get, 5), num_workers=2))
    for _ in range(6):
        yield text_of(attempt(next, rows))

    def refuse(worker_id):
        raise RuntimeError("not today")

    rows = iter(loader(dataset(torch, get, 2), num_workers=1, worker_init_fn=refuse))
    yield text_of(attempt(next, rows))
    broken = stream(torch, lambda: 1 / 0)
    yield text_of(attempt(list, loader(broken, num_workers=1)))
    uneven = dataset(torch, lambda i: torch.ones(i))
    yield text_of(attempt(list, loader(uneven, 2, num_workers=1)))


@case
def too_late(torch):
    data = dataset(torch, lambda i: time.sleep(0.6))
    late = torch.utils.data.DataLoader(data, num_workers=1, timeout=0.2)
    with pytest.MonkeyPatch.context() as patch:
        # PyTorch waits for as long as this for a worker to end, three times.
        patch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 0.1)
        return text_of(attempt(next, iter(late)))


def test_deaths():
    # PyTorch's texts; which of its own errors it shows depends on the moment.
    def killed(i):
        if i == 2:
            os.kill(os.getpid(), 9)
        return i

    loader = torchshim.utils.data.DataLoader
    rows = iter(loader(dataset(torchshim, killed), num_workers=1))
    assert [int(next(rows)), int(next(rows))] == [0, 1]
    text = "DataLoader worker (pid N) exited unexpectedly"
    cause = "DataLoader worker (pid N) is killed by signal: Killed. "
    gc.collect()  # what other tests left ends its workers in its own time
    begun = time.monotonic()
    assert text_of(attempt(next, rows)) == ("RuntimeError", text, text, cause)
    assert time.monotonic() - begun < 4
    leaving = dataset(torchshim, lambda i: os._exit(3))
    found = text_of(attempt(list, loader(leaving, num_workers=2)))
    assert found[1] == text and "with exit code 3. Details are lost" in found[3]


@case
def refusals(torch):
    loader, data = torch.utils.data.DataLoader, dataset(torch, lambda i: i)
    yield attempt(loader, data, num_workers=-1)
    yield attempt(loader, data, num_workers=1, multiprocessing_context="thread")
    forked = loader(data, num_workers=1, multiprocessing_context="fork")
    yield list(forked)
    spawned = loader(data, num_workers=1, multiprocessing_context="spawn")
    yield text_of(attempt(iter, spawned))[0]


def in_order_or_not(torch: Any, in_order: bool) -> list[int]:
    def get(i):
        time.sleep(0.3 if i == 0 else 0)
        return i

    loader = torch.utils.data.DataLoader(
        dataset(torch, get, 4), batch_size=None, num_workers=2, in_order=in_order
    )
    return list(loader)


def test_order():
    assert in_order_or_not(torchshim, True) == [0, 1, 2, 3]
    found = in_order_or_not(torchshim, False)
    assert sorted(found) == [0, 1, 2, 3] and found[0] != 0


def test_a_pass_that_is_left_early_ends_its_workers():
    big = dataset(torchshim, lambda i: torchshim.zeros(100_000), 50)
    rows = iter(torchshim.utils.data.DataLoader(big, num_workers=2))
    next(rows)
    workers, prefix = rows._workers, rows._prefix
    begun = time.monotonic()
    del rows
    assert time.monotonic() - begun < 10
    assert not any(worker.is_alive() for worker in workers)
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(prefix)]


def test_a_pass_that_the_collector_finds_ends_its_workers():
    # It finalizes the pipes of such a pass in an order of its own.
    for _ in range(3):
        data = dataset(torchshim, lambda i: torchshim.zeros(100_000), 50)
        rows = iter(torchshim.utils.data.DataLoader(data, num_workers=2))
        next(rows)
        rows.itself, workers = rows, list(rows._workers)
        begun = time.monotonic()
        del rows
        gc.collect()
        assert time.monotonic() - begun < 4
        assert [worker.exitcode for worker in workers] == [0, 0]


def test_shared_memory_that_is_full(monkeypatch):
    from torchshim.utils.data._utils import transport

    monkeypatch.setattr(transport, "SHARED_FOLDER", "/nowhere")
    data = dataset(torchshim, lambda i: torchshim.full((9000,), i), 2)
    loader = torchshim.utils.data.DataLoader(data, num_workers=1)
    assert [int(batch.sum()) for batch in loader] == [0, 9000]


def without_companion(get):
    """What a worker gives, and whether it started no process of its own."""

    def told(i):
        value = get(torchshim.arange(12.0).reshape(3, 4) + i)
        return value.tolist(), companion.Companion._started is None

    rows = torchshim.utils.data.DataLoader(
        dataset(torchshim, told, 2), batch_size=None, num_workers=1
    )
    return list(rows)


def test_what_numpy_computes_in_a_worker(monkeypatch):
    def scaled(x):
        weight = torchshim.full((4,), 2.0, requires_grad=True)
        pooled = torchshim.nn.functional.avg_pool2d(x[None, None] * weight, 2)
        pooled.sum().backward()
        return torchshim.cat([pooled.flatten(), weight.grad, x[x > 9 + x[0, 0]]])

    def expected(i):
        first, columns = [5.0, 9.0], [4.0, 6, 8, 10]
        grad = [(c + 2 * i) / 4 for c in columns]
        return [n + 2 * i for n in first] + grad + [10.0 + i, 11.0 + i]

    found = without_companion(scaled)
    assert found == [[expected(i), True] for i in range(2)]
    with pytest.raises(IndexError, match="out of bounds"):
        without_companion(lambda x: x[0][torchshim.tensor([4])])
    # What NumPy has no rule for, and what it has computed for long, is the companion's.
    lacking = without_companion(lambda x: torchshim.special.i1e(x[:2, :2] * 0)[0])
    assert lacking == [[[0.0, 0.0], False]] * 2
    monkeypatch.setattr(companion, "_LONG", 0.0)
    assert [there for _, there in without_companion(scaled)] == [True, False]
    assert [value for value, _ in without_companion(scaled)] == [v for v, _ in found]


SCRIPT = """
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __init__(self):
        self.scale = torch.nn.Linear(3, 1, bias=False)
        torch.nn.init.constant_(self.scale.weight, 2.0)
        self.rows = (torch.arange(12.0) * 2).reshape(4, 3)
    def __len__(self):
        return 4
    def __getitem__(self, i):
        row = self.rows[i].sin().where(self.rows[i] > 3, torch.tensor(0.0))
        y = self.scale(row)  # programs of a worker, with gradients and checks
        y.sum().backward()
        grad, self.scale.weight.grad = self.scale.weight.grad, None
        return y.detach(), grad, self.rows[i][torch.tensor([2, 0])]

for y, grad, picked in DataLoader(Data(), batch_size=2, num_workers=1):
    print(y, grad, picked)
try:
    class Wrong(Data):
        def __getitem__(self, i):
            return self.rows[i][torch.tensor([i + 1])] * 2
    for row in DataLoader(Wrong(), num_workers=1):
        print(row)
except IndexError as error:
    print("IndexError", str(error).split(chr(10))[0])
left = iter(DataLoader(Data(), num_workers=1))
print("end")
"""


def test_scripts_without_a_guard_compute_in_workers(tmp_path):
    # Classes of a script, lambdas, and programs that a worker cannot run itself.
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    found = subprocess.run(
        [sys.executable, "-m", "torchshim", str(path)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    torch = torchshim
    rows = (torch.arange(12.0) * 2).reshape(4, 3)
    seen = rows.sin().where(rows > 3, torch.tensor(0.0))
    for k in (0, 2):
        pair = seen[k : k + 2]
        y = (pair * 2).sum(1, keepdim=True)
        text = f"{y} {pair.reshape(2, 1, 3)} {rows[k : k + 2][:, [2, 0]]}"
        for line in text.splitlines():
            assert line in lines
    assert "IndexError Caught IndexError in DataLoader worker process 0." in lines
    assert lines[-1] == "end"
    assert found.stderr == ""


WARNING = """
import warnings, torch
from torch.utils.data import DataLoader

for _ in range(3):
    warnings.warn("told once")
    print(list(DataLoader(range(2), num_workers=1)))
"""


def test_workers_make_no_warning_come_again(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(WARNING)
    found = subprocess.run(
        [sys.executable, "-m", "torchshim", str(path)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert found.stdout == "[tensor([0]), tensor([1])]\n" * 3
    assert found.stderr.count("UserWarning") == 1, found.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start(method):
    data = torchshim.utils.data.TensorDataset(torchshim.arange(4.0))
    loader = torchshim.utils.data.DataLoader(
        data, batch_size=2, num_workers=1, multiprocessing_context=method
    )
    assert [batch.tolist() for (batch,) in loader] == [[0.0, 1.0], [2.0, 3.0]]


def test_batches_are_sent_to_the_device_ahead(monkeypatch):
    """The next batch is on its way while the one before is computed with."""
    sent: list[Any] = []
    monkeypatch.setattr(_iterators, "_has_accelerator", lambda: True)
    monkeypatch.setattr(memory, "current_accelerator", lambda: torchshim.device("cpu"))
    data = torchshim.utils.data.TensorDataset(torchshim.arange(12.0))
    loader = torchshim.utils.data.DataLoader(data, 2, num_workers=2, pin_memory=True)

    def pin(batch):
        sent.append(batch[0].tolist())
        return pin_memory(batch)

    monkeypatch.setattr(_workers, "pinned", pin)
    ahead, given = 0, []
    for (batch,) in loader:
        time.sleep(0.1)  # the step
        given.append(batch.tolist())
        ahead += sent[-1] != given[-1]
        assert sent_ahead(batch, torchshim.device("cpu")) is not None
        assert sent_ahead(batch, torchshim.device("cpu")) is None
    assert given == sent == [[i, i + 1] for i in range(0, 12, 2)]
    assert ahead >= 3


def test_a_copy_is_taken_only_if_it_is_the_value():
    cpu, x = torchshim.device("cpu"), torchshim.arange(3.0)
    send_ahead(x, cpu)
    x.add_(1)
    assert sent_ahead(x, cpu) is None
    send_ahead(x, torchshim.device("meta"))
    assert sent_ahead(x, cpu) is None
    assert x.tolist() == [1, 2, 3]
