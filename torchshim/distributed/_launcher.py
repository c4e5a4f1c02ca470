"""Processes of a script that are started, watched and ended together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Failure", "Launch"]

# How long processes have to end after a signal, in seconds.
_GRACE = 30.0
_PAUSE = 0.05


@dataclass
class Failure:
    """The first process that failed."""

    rank: int
    local_rank: int
    code: int
    pid: int

    def __str__(self) -> str:
        how = f"exitcode  : {self.code}"
        if self.code < 0:
            how += f" ({signal.Signals(-self.code).name})"
        return (
            f"rank      : {self.rank} (local_rank: {self.local_rank})\n"
            f"{how} (pid: {self.pid})"
        )


@dataclass
class Launch:
    """What is started: `command(local_rank)`, `count` times on this node.

    `first` is the rank of the first of them, `world` the number on all nodes.
    """

    command: Callable[[int], list[str]]
    environment: dict[str, str]
    count: int
    first: int
    world: int
    restarts: int = 0

    def run(self) -> Failure | None:
        """Runs the processes to their end, again as often as `restarts` says."""
        for attempt in range(self.restarts + 1):
            failure = self._once(attempt)
            if failure is None:
                return None
        return failure

    def _once(self, attempt: int) -> Failure | None:
        sys.stdout.flush()
        processes = [
            subprocess.Popen(self.command(local), env=self._told(local, attempt))
            for local in range(self.count)
        ]
        try:
            while True:
                codes = [process.poll() for process in processes]
                for local, code in enumerate(codes):
                    if code:
                        pid = processes[local].pid
                        return Failure(self.first + local, local, code, pid)
                if all(code == 0 for code in codes):
                    return None
                time.sleep(_PAUSE)
        finally:
            _end(processes)

    def _told(self, local: int, attempt: int) -> dict[str, str]:
        rank = str(self.first + local)
        return {
            **os.environ,
            **self.environment,
            "RANK": rank,
            "ROLE_RANK": rank,
            "LOCAL_RANK": str(local),
            "WORLD_SIZE": str(self.world),
            "ROLE_WORLD_SIZE": str(self.world),
            "LOCAL_WORLD_SIZE": str(self.count),
            "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(self.restarts),
        }


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ends those that still run: by a signal first, then by force."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    end = time.monotonic() + _GRACE
    for process in running:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
