"""One engine on one case, in a process of its own, so that thread pools don't mix.

The parent writes a line for each sample it wants and reads a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path

from ._case import TORCH, Case

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = {"torch", "torchshim", "jax", "jaxlib", "optax"}


def find(benchmark: str, case: str) -> Case:
    cases = import_module(f"benchmarks.{benchmark}").CASES
    return next(candidate for candidate in cases if candidate.name == case)


class EngineError(Exception):
    """The engine failed on the case; `missing` if it isn't installed at all."""

    def __init__(self, message: str, missing: bool):
        super().__init__(message)
        self.missing = missing


class Worker:
    """The parent's end: starts the process and asks it for samples."""

    def __init__(self, benchmark: str, case: str, engine: str):
        # A compilation cache on disk would make the second round's compilations free.
        environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
        if engine == TORCH:
            # Unbound, its threads may wake on one core and spin against each other,
            # which made a step 20 times slower.
            environment.setdefault("OMP_PROC_BIND", "true")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._worker", benchmark, case, engine],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self._answer()
        except EngineError:
            self.close()
            raise

    def sample(self) -> float:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("sample\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        return self._answer()

    def close(self) -> None:
        # The end of its input ends the worker.
        self.process.communicate()

    def _answer(self) -> float:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            raise EngineError(f"the process ended with status {code}", missing=False)
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"], answer["missing"])
        return answer["value"]


def serve(benchmark: str, case: str, engine: str) -> None:
    """The child's end."""
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**content: object) -> None:
        print(json.dumps(content), file=answers, flush=True)

    try:
        measure = find(benchmark, case).engines[engine]()
        answer(value=0.0)
        for _ in sys.stdin:
            answer(value=float(measure()))
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL
        last = traceback.format_exception_only(error)[-1].strip()
        answer(error=last, missing=missing)


if __name__ == "__main__":
    serve(*sys.argv[1:])
