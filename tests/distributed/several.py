"""Programs of several processes, run under PyTorch or torchshim."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
LIMIT = 100


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


def run(torch: Any, count: int, name: str, *arguments: str) -> list[str]:
    """What each of `count` processes prints that run a program together.

    An AssertionError says what was written on standard error if one of them fails.
    """
    port = free_port()
    command = [*python(torch), str(PROGRAMS / f"{name}.py"), *arguments]
    processes = []
    for rank in range(count):
        told = environment(
            RANK=rank, WORLD_SIZE=count, MASTER_ADDR="127.0.0.1", MASTER_PORT=port
        )
        pipe = subprocess.PIPE
        processes.append(
            subprocess.Popen(command, env=told, stdout=pipe, stderr=pipe, text=True)
        )
    try:
        found = [process.communicate(timeout=LIMIT) for process in processes]
    finally:
        for process in processes:
            process.kill()
    codes = [process.returncode for process in processes]
    assert codes == [0] * count, "\n".join(errors for _, errors in found)
    return [text for text, _ in found]
