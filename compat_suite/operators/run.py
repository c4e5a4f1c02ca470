"""Runs a database and shows what came of it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import jax

from compat_suite.operators.pool import Pool, Progress
from compat_suite.operators.results import (
    Entry,
    Results,
    differing,
    grouped,
    kept,
    table,
)


def run(
    package: str,
    match: str,
    options: dict[str, Any],
    *,
    jobs: int,
    seconds: float,
    written: Path | None,
    keep: bool,
) -> int:
    """Checks the entries of `compat_suite.<package>` that are chosen by `match`.

    1 when one of them does not agree that is not known to differ. `keep` puts the
    results in the place of those that the repository has of the same entries.
    """
    database = importlib.import_module(f"compat_suite.{package}.database")
    names = [database.name_of(e) for e in database.entries(match)]
    results = Results(
        {"torch": database.torch_version(), "jax": jax.__version__}, {**options}, []
    )
    progress = Progress(len(names))
    left_out = database.left_out()

    def done(entry: Entry) -> None:
        entry.reason = left_out.get(entry.name, entry.reason)
        progress(entry)
        results.entries.append(entry)
        if written is not None and len(results.entries) % 20 == 0:
            results.write(written)

    command = ("-m", "compat_suite.operators.worker", package)
    pool = Pool(options, jobs, seconds, done, command)
    results.entries = pool.run(names, database.namespace_of)
    if written is not None:
        results.write(written)
    if keep:
        place = kept(package)
        older = Results.read(place) if place.exists() else results
        results.onto(older).write(place)
    judged = [e for e in results.entries if not e.reason]
    print(grouped(judged))
    print()
    print(table(results.entries))
    known = differing()
    return 1 if any(e.failures and e.name not in known for e in judged) else 0
