"""A waiter looks for a moment, then sleeps; looks that were in vain become rare."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import torchshim as torch
from torchshim._core import waiting
from torchshim._core.record import local
from torchshim._core.waiting import Waiter


class Computing:
    """An array that is ready when it has been looked at so many times."""

    def __init__(self, looks: float, platform: str = "cpu") -> None:
        self.left = looks
        self.looks = 0
        self.device = SimpleNamespace(platform=platform)

    def is_deleted(self) -> bool:
        return False

    def is_ready(self) -> bool:
        self.looks += 1
        self.left -= 1
        return self.left < 0


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(waiting, "MOMENT", 1e9)


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(waiting, "MOMENT", -1.0)


def test_it_looks_until_the_array_is_ready(patient):
    array = Computing(5)
    Waiter().wait(array)
    assert array.looks == 6


def test_what_is_ready_is_looked_at_once(patient):
    array = Computing(0)
    Waiter().wait(array)
    assert array.looks == 1


def test_other_devices_are_not_looked_at(patient):
    array = Computing(5, "gpu")
    Waiter().wait(array)
    assert array.looks == 1


def test_after_a_moment_in_vain_it_sleeps_ever_longer(hurried):
    waiter = Waiter()
    looked = []
    for _ in range(600):
        array = Computing(float("inf"))
        waiter.wait(array)
        # Once to see whether it is ready, and once more where it looks for a moment.
        looked.append(array.looks > 1)
    found = [i for i, value in enumerate(looked) if value]
    assert found == [0, 2, 6, 14, 30, 62, 126, 254, 510]


def test_a_look_that_was_worth_it_ends_the_sleeping(hurried, monkeypatch):
    waiter = Waiter()
    for _ in range(6):
        waiter.wait(Computing(float("inf")))
    assert (waiter.vain, waiter.sleeps) == (3, 0)
    monkeypatch.setattr(waiting, "MOMENT", 1e9)
    waiter.wait(Computing(3))
    assert (waiter.vain, waiter.sleeps) == (0, 0)


def test_arrays_of_numpy_and_deleted_ones_are_left_alone(patient):
    # jaxlib crashes when it is asked whether a deleted array is ready.
    Waiter().wait(np.arange(3))
    array = jnp.arange(3)
    array.delete()
    Waiter().wait(array)
    with pytest.raises(RuntimeError, match="deleted"):
        local.rec.host(array)


@pytest.fixture
def waited(monkeypatch):
    """The arrays that a waiter was asked for."""
    asked = []
    monkeypatch.setattr(Waiter, "wait", lambda self, array: asked.append(array))
    return asked


def test_it_waits_only_where_no_other_thread_donates(waited):
    x = torch.arange(3.0)
    (x + 1).tolist()
    assert len(waited) == 1
    begun, end = threading.Event(), threading.Event()

    def other():
        torch.ones(2) + 1
        begun.set()
        end.wait()

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    (x + 2).tolist()
    assert len(waited) == 1
    end.set()
    thread.join()
    (x + 3).tolist()
    assert len(waited) == 2


@pytest.mark.parametrize("read", ["item", "tolist", "numpy", "__bool__", "__repr__"])
def test_every_read_of_a_result_waits(waited, read):
    getattr(torch.arange(3.0).sum() + 1, read)()
    assert waited


def test_so_do_checks_of_data(waited):
    x = torch.arange(3.0)[torch.tensor([2]) + 1]
    with pytest.raises(IndexError):
        x.tolist()
    assert waited[0].dtype == np.int64


AT_THE_END = """
import atexit

held = []
# What is registered first is called last.
atexit.register(lambda: print(held[0].is_ready()))
import torchshim as torch
from torchshim._core.record import local

x = torch.rand(1500, 1500)
x.sum().item()
for _ in range(20):
    x = (x @ x).tanh()
local.rec.flush()
held.append(x._array)
print(held[0].is_ready())
del x
{after}
"""


@pytest.mark.parametrize("after", ["", "(torch.ones(3) + 1).tolist()"])
def test_a_process_ends_after_its_programs(after):
    """XLA's threads crash where the process ends while they compute."""
    text = AT_THE_END.format(after=after)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["False", "True"]
