"""Functions run in several processes at once (``torch.multiprocessing.spawn``)."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

from torchshim import _warnings as warnings
from torchshim._logging import logger

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

_NAME = "torch.multiprocessing.spawn"
#: Where it is "1", processes from a fork server are started at the same time.
ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"


class ProcessException(Exception):
    """One of the processes failed; `error_index` tells which."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid
        self.pid = error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception, whose traceback is the message."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal, or exited with a code."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        where = self.error_index, self.error_pid
        return type(self), (self.msg, *where, self.exit_code, self.signal_name)


def _call(fn: Callable[..., Any], i: int, args: tuple[Any, ...], file: str) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted as well
    except Exception:
        with open(file, "wb") as errors:
            pickle.dump(traceback.format_exc(), errors)
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(
        self, timeout: float | None = None, grace_period: float | None = None
    ) -> bool:
        """Whether all have ended; when one fails, ends the others and raises."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        if grace_period is not None:
            self._wait(grace_period)
        for process in self.processes:
            if process.is_alive():
                text = "Terminating process %s via signal SIGTERM"
                logger(_NAME).warning(text, process.pid)
                process.terminate()
        self._wait(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                logger(_NAME).warning(
                    "Unable to shutdown process %s via SIGTERM , forcefully exiting "
                    "via SIGKILL",
                    process.pid,
                )
                process.kill()
            process.join()
        self._raise(failed)
        return False

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        try:
            with open(self.error_files[index], "rb") as errors:
                told = pickle.load(errors)
        except (OSError, EOFError):
            told = None
        if told is not None:
            text = f"\n\n-- Process {index:d} terminated with the following error:\n"
            raise ProcessRaisedException(text + told, index, process.pid)
        code, name = process.exitcode, None
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
        end = f"signal {name}" if name else f"exit code {code:d}"
        raise ProcessExitedException(
            f"process {index:d} terminated with {end}", index, process.pid, code, name
        )


class SpawnContext(ProcessContext):
    """What `spawn` returns with ``join=False``."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` in `nprocs` processes, started in the way that is asked.

    With `join` it waits, and raises ProcessRaisedException or ProcessExitedException
    when one fails; without, it returns the context to join.
    """
    context = multiprocessing.get_context(start_method)
    kind: Any = context.Process  # type: ignore[attr-defined]
    folder = tempfile.mkdtemp()
    files = [os.path.join(folder, f"{i}.pickle") for i in range(nprocs)]

    def start(i: int) -> Any:
        process = kind(target=_call, args=(fn, i, args, files[i]), daemon=daemon)
        process.start()
        return process

    if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START) == "1":
        from concurrent.futures import ThreadPoolExecutor  # a millisecond

        with ThreadPoolExecutor(max_workers=nprocs) as threads:
            processes = list(threads.map(start, range(nprocs)))
    else:
        processes = [start(i) for i in range(nprocs)]
    made = SpawnContext(processes, files)
    if not join:
        return made
    while not made.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` in `nprocs` fresh processes; see `start_processes`."""
    if start_method != "spawn":
        warnings.warn(
            "This method only supports start_method=spawn (got: "
            f"{start_method}).\nTo use a different start_method use:\n\t\t "
            "torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
