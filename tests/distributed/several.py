"""Programs of several processes, run under PyTorch or torchshim."""

from __future__ import annotations

import atexit
import functools
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from compat_suite.forked import Ended, Runner

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def python(torch: Any) -> list[str]:
    """The command that runs a script under a module's name."""
    shim = torch.__name__ != "torch"
    return [sys.executable, "-u", *(["-m", "torchshim"] if shim else [])]


def environment(**told: Any) -> dict[str, str]:
    """The environment of a process, in which nobody waits long for another."""
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "GLOG_minloglevel": "3"}
    quiet["TORCH_CPP_LOG_LEVEL"] = "FATAL"
    return {**os.environ, **quiet, **{name: str(v) for name, v in told.items()}}


@functools.cache
def runner(engine: str, rank: int) -> Runner:
    """What runs the programs of one rank, until the tests end."""
    found = Runner(engine, **environment())
    found.__enter__()
    atexit.register(found.__exit__, None, None, None)
    return found


def run(torch: Any, count: int, name: str, *arguments: str) -> list[str]:
    """What each of `count` processes prints that run a program together.

    An AssertionError says what was written on standard error if one of them fails.
    """
    told = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1"}
    told["MASTER_PORT"] = str(free_port())
    command = [str(PROGRAMS / f"{name}.py"), *arguments]

    def be(rank: int) -> Ended:
        process = runner(torch.__name__, rank)
        return process.execute(command, RANK=str(rank), **told)

    with ThreadPoolExecutor(count) as ranks:
        found = list(ranks.map(be, range(count)))
    assert not any(each.status for each in found), "\n".join(e.stderr for e in found)
    return [each.stdout for each in found]
