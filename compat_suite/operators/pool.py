"""Many entries, checked by several processes that may crash or hang."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compat_suite.operators.results import Entry, Failure
from compat_suite.script import environment


@dataclass
class Pool:
    """Checks entries in `jobs` processes; each part of one may take `seconds`."""

    options: dict[str, Any]
    jobs: int
    seconds: float
    done: Callable[[Entry], None]
    #: What a process runs, with the options as its last argument.
    command: tuple[str, ...] = ("-m", "compat_suite.operators.worker", "operators")
    _waiting: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    results: list[Entry] = field(default_factory=list)

    def run(self, names: Sequence[str], namespace: Callable[[str], str]) -> list[Entry]:
        """The results of all entries, in the order of the names."""
        for name in names:
            self._waiting.put(name)
        threads = [
            threading.Thread(target=self._serve, args=(namespace,), daemon=True)
            for _ in range(min(self.jobs, len(names)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)  # lets an interrupt through
        place = {name: i for i, name in enumerate(names)}
        return sorted(self.results, key=lambda entry: place[entry.name])

    def _serve(self, namespace: Callable[[str], str]) -> None:
        worker: _Worker | None = None
        try:
            while True:
                try:
                    name = self._waiting.get_nowait()
                except queue.Empty:
                    return
                if worker is None:
                    worker = _Worker(self.command, self.options)
                entry = worker.check(name, self.seconds)
                if isinstance(entry, Failure):
                    failed = Entry(name, namespace(name))
                    failed.count(entry.kind, entry.dtype)
                    failed.failures = [entry]
                    entry = failed
                if worker.over:
                    worker.end()
                    worker = None
                with self._lock:
                    self.results.append(entry)
                    self.done(entry)
        finally:
            if worker is not None:
                worker.end()


class _Worker:
    """One process."""

    def __init__(self, command: tuple[str, ...], options: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *command, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment(),
        )
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=read, daemon=True)
            for read in (self._listen, self._collect)
        ]
        for reader in self._readers:
            reader.start()
        self.over = False
        self._part = "start"

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._messages.put(json.loads(line))
        self._messages.put(None)

    def _collect(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line)
            del self._errors[:-40]

    def check(self, name: str, seconds: float) -> Entry | Failure:
        """The result for an entry, or how the process failed at it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(name) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._failure("the process did not start")
        while True:
            try:
                message = self._messages.get(timeout=seconds)
            except queue.Empty:
                return self._failure(f"no end after {seconds:g} s")
            if message is None:
                self._process.wait()
                return self._failure(f"crash: exit status {self._process.returncode}")
            if "started" in message:
                self._part = message["started"]
            elif "done" in message:
                self.over = message["last"]
                data = message["done"]
                failures = [Failure(**f) for f in data["failures"]]
                return Entry(**data | {"failures": failures})

    def _failure(self, cause: str) -> Failure:
        self.end()
        self.over = True
        dtype, _, kind = self._part.rpartition(" ")
        if kind not in ("forward", "grad", "errors"):
            kind = "forward"
        return Failure(kind, dtype, "", cause, "".join(self._errors)[-2000:])

    def end(self) -> None:
        """Ends the process, after what it wrote has been read."""
        self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join(5)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Progress:
    """A line on standard error for each entry that is done."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._failed = total, 0, 0
        self._start = time.perf_counter()

    def __call__(self, entry: Entry) -> None:
        self._done += 1
        self._failed += bool(entry.failures)
        kinds = sorted({f.kind for f in entry.failures})
        said = f"FAILED ({', '.join(kinds)})" if kinds else "ok"
        elapsed = time.perf_counter() - self._start
        print(
            f"[{self._done}/{self._total}, {self._failed} failed, {elapsed:.0f} s] "
            f"{entry.name} ({entry.seconds:.1f} s): {said}",
            file=sys.stderr,
            flush=True,
        )


__all__ = ["Pool", "Progress"]
