"""A process that checks entries, one after the other, for `pool`.

Its arguments are the package (`operators`, `modules` …) and the options as JSON. It
reads lines of JSON (an entry's name) and writes them: `{"started": …}` for each part
of an entry, `{"done": …}` with the result.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import traceback
from dataclasses import asdict
from typing import Any, TextIO

#: A worker that uses more memory than this (bytes) ends after the running entry.
MEMORY_LIMIT = 5 << 30


def main() -> None:
    """Checks what comes in on standard input until it ends."""
    package, options = sys.argv[1], json.loads(sys.argv[2])
    # Standard output is for messages alone: what operators print goes elsewhere.
    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import jax

    import torchshim
    from compat_suite.operators.results import Entry, Failure

    checks = importlib.import_module(f"compat_suite.{package}.checks")
    database = importlib.import_module(f"compat_suite.{package}.database")
    if real := sys.modules.get("torch"):
        real.set_num_threads(1)
    chosen = checks.Options(
        **{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    )
    send(messages, ready=True)
    for line in sys.stdin:
        name = json.loads(line)
        start = time.perf_counter()
        try:
            result = checks.check(
                database.by_name()[name],
                chosen,
                lambda part: send(messages, started=part),
            )
        except Exception as error:
            result = Entry(name, database.namespace_of(name))
            result.count("errors", "")
            cause = f"the check itself: {type(error).__name__}: {error}"
            result.failures = [
                Failure("errors", "", "", cause, traceback.format_exc()[-1500:])
            ]
        result.seconds = time.perf_counter() - start
        jax.clear_caches()
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        last = used > MEMORY_LIMIT
        try:
            torchshim.ones(1).add(1).item()
        except Exception as error:
            cause = f"later calls fail, too: {type(error).__name__}: {error}"
            result.failures.append(Failure("forward", "", "", cause))
            last = True
        send(messages, done=asdict(result), last=last)
        if last:
            break


def send(messages: TextIO, **message: Any) -> None:
    """One message to the pool."""
    messages.write(json.dumps(message) + "\n")
    messages.flush()


if __name__ == "__main__":
    main()
