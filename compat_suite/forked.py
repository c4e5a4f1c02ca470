"""Runs scripts under PyTorch, each in a process forked from one that has imported it.

Importing PyTorch takes longer than most scripts do. `python -m compat_suite.forked`
reads paths from its standard input, a line each, and answers with lines of JSON.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from types import TracebackType
from typing import Any

from compat_suite.script import TIME_LIMIT, Failure, Script, environment


class Runner:
    """A process that runs scripts, as a context."""

    def __enter__(self) -> Runner:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "compat_suite.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # On one thread: tests run side by side.
            env=environment() | {"OMP_NUM_THREADS": "1"},
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._process.communicate()  # closes its input: it ends then

    def run(self, script: Script) -> str:
        """A script's standard output; raises `Failure` if it does not end well."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(script.path, file=self._process.stdin, flush=True)
        found = json.loads(self._process.stdout.readline())
        if found["status"]:
            raise Failure(f"exit status {found['status']}\n\n{found['stderr']}")
        return found["stdout"]


def main() -> None:
    """Answers until its input ends."""
    import torch

    del torch
    for line in sys.stdin:
        print(json.dumps(_run(line.rstrip("\n"))), flush=True)


def _run(path: str) -> dict[str, Any]:
    """The exit status of a script, and what it printed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            _be(path, out.fileno(), errors.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = {"status": status}
        for name, file in (("stdout", out), ("stderr", errors)):
            file.seek(0)
            found[name] = file.read()
        return found


def _be(path: str, out: int, errors: int) -> None:
    """Makes the process that of a script, as if Python had been started with it."""
    signal.alarm(TIME_LIMIT)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(errors, 2)
    sys.argv, sys.path[0] = [path], os.path.dirname(path)
    status: Any = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        status = end.code or 0
        if not isinstance(status, int):
            print(status, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    main()
