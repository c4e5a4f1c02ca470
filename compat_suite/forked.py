"""Runs scripts, each in a process forked from one that has imported PyTorch, or
torchshim.

Importing takes longer than most scripts do. `python -m compat_suite.forked torch` reads
lines of JSON from its standard input: a script with its arguments, and what to add to
the environment. It answers with such lines, too.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from types import TracebackType
from typing import Any, NamedTuple

from compat_suite.script import TIME_LIMIT, Failure, Script, environment


class Ended(NamedTuple):
    """How a script's process ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


class Runner:
    """A process that runs scripts under "torch" or "torchshim", as a context."""

    def __init__(self, engine: str, **told: str) -> None:
        self._engine, self._told = engine, told

    def __enter__(self) -> Runner:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "compat_suite.forked", self._engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # On one thread: tests run side by side.
            env=environment() | {"OMP_NUM_THREADS": "1"} | self._told,
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
        ended = self.execute([str(script.path)])
        if ended.status:
            raise Failure(f"exit status {ended.status}\n\n{ended.stderr}")
        return ended.stdout

    def execute(self, command: list[str], **told: str) -> Ended:
        """Runs a script with its arguments, `told` in its environment."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([command, told]), file=self._process.stdin, flush=True)
        return Ended(*json.loads(self._process.stdout.readline()))


def main() -> None:
    """Answers until its input ends."""
    importlib.import_module(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(_run(*json.loads(line))), flush=True)


def _run(command: list[str], told: dict[str, str]) -> Ended:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            os.environ.update(told)
            _be(command, out.fileno(), errors.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, errors):
            file.seek(0)
        return Ended(status, out.read(), errors.read())


def _be(command: list[str], out: int, errors: int) -> None:
    """Makes the process that of a script, as if Python had been started with it."""
    signal.alarm(TIME_LIMIT)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(errors, 2)
    engine, path = sys.argv[1], command[0]
    sys.argv, sys.path[0] = command, os.path.dirname(path)
    status: Any = 0
    try:
        if engine == "torch":
            runpy.run_path(path, run_name="__main__")
        else:  # `python -m torchshim`
            sys.argv = [engine, *command]
            runpy.run_module(engine, run_name="__main__", alter_sys=True)
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
