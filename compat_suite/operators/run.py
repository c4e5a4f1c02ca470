"""Runs a database and shows what came of it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import jax
import torch

from compat_suite.operators.pool import Pool, Progress
from compat_suite.operators.results import Entry, Results, grouped, table


def run(
    package: str,
    match: str,
    options: dict[str, Any],
    *,
    jobs: int,
    seconds: float,
    kept: Path | None,
) -> int:
    """Checks the entries of `compat_suite.<package>` that are chosen by `match`.

    1 when one of them does not agree.
    """
    database = importlib.import_module(f"compat_suite.{package}.database")
    names = [database.name_of(e) for e in database.entries(match)]
    results = Results(
        {"torch": torch.__version__, "jax": jax.__version__}, {**options}, []
    )
    progress = Progress(len(names))
    left_out = database.left_out()

    def done(entry: Entry) -> None:
        entry.reason = left_out.get(entry.name, "")
        progress(entry)
        results.entries.append(entry)
        if kept is not None and len(results.entries) % 20 == 0:
            results.write(kept)

    command = ("-m", "compat_suite.operators.worker", package)
    pool = Pool(options, jobs, seconds, done, command)
    results.entries = pool.run(names, database.namespace_of)
    if kept is not None:
        results.write(kept)
    judged = [e for e in results.entries if not e.reason]
    print(grouped(judged))
    print()
    print(table(results.entries))
    return 1 if any(e.failures for e in judged) else 0
