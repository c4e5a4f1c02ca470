"""Groups of several processes, compared with PyTorch's of the backend Gloo."""

from __future__ import annotations

import subprocess
import tempfile

import pytest

import torchshim
from tests.distributed.several import PROGRAMS, environment, python, run
from tests.oracle import case

COUNTS = {"collectives": 3, "groups": 3}
SIMPLE = (
    "messages",
    "collectives",
    "refusals",
    "groups",
    "parallel",
    "sharing",
    "gradients",
)


@case(numbers_in_text=True).over(*SIMPLE)
def programs(torch, name):
    for text in run(torch, COUNTS.get(name, 2), name):
        print(text)


@case(numbers_in_text=True)
def stores(torch):
    with tempfile.TemporaryDirectory() as folder:
        for text in run(torch, 2, "stores", folder):
            print(text)


@case(numbers_in_text=True)
def tutorial(torch):
    with tempfile.TemporaryDirectory() as folder:
        print(run(torch, 1, "tutorial", folder)[0])


@case
def launcher(torch):
    """`torchrun`: what each process is told, and how it ends when one fails."""
    command = [*python(torch), "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command.append(str(PROGRAMS / "launched.py"))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command, folder],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        for rank in range(2):
            with open(f"{folder}/{rank}.txt") as told:
                yield told.read()
        yield done.returncode


@pytest.mark.parametrize("ending", ["left", "killed"])
def test_members_that_are_not_there(ending: str) -> None:
    """A clear error, and no process that waits for ever."""
    first, second = run(torchshim, 2, "failing", ending)
    late = "Timed out waiting 300ms for recv operation to complete"
    assert first.splitlines() == [
        f"all_reduce RuntimeError {late}",
        "all_reduce RuntimeError all_reduce: rank 1 is in broadcast meanwhile",
        "all_reduce RuntimeError all_reduce: rank 1 sent 4 bytes where 8 are expected",
        "all_reduce RuntimeError Connection closed by peer",
        "recv RuntimeError Connection closed by peer",
        "True",
    ], first
    assert second == "going\n"


def test_groups_at_one_place() -> None:
    expected = "0 2.0\n1 2.0\n2 2.0\n"
    assert run(torchshim, 2, "again") == [expected] * 2


def test_parts_that_do_not_add_up() -> None:
    """PyTorch's words. (PyTorch itself may tell it at the next operation.)"""
    name = "all_to_all_single RuntimeError"
    told = f"""{name} Split sizes doesn't match total dim 0 size
{name} Number of tensor splits not equal to group size
"""
    assert run(torchshim, 2, "splits") == [told] * 2
