"""Run benchmarks: `python -m benchmarks [names ...] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from ._case import ENGINES, TORCHSHIM, Case
from ._measure import Summary, paired
from ._worker import EngineError, Worker

NAMES = (
    "record",
    "step",
    "read_first",
    "hooks",
    "compile",
    "startup",
    "memory",
    "conv",
    "models",
    "operators",
    "trees",
    "letters",
    "sizes",
)


def measure(
    benchmark: str, case: Case, engines: list[str], rounds: int
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The samples of each engine, taken in turns, and the errors of those that fail."""
    samples: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    workers: dict[str, Worker] = {}
    wanted = [engine for engine in case.engines if engine in engines]

    def drop(engine: str, error: EngineError) -> None:
        wanted.remove(engine)
        samples.pop(engine, None)
        if not error.missing:
            errors[engine] = str(error)

    def start(engine: str) -> None:
        try:
            workers[engine] = Worker(benchmark, case.name, engine)
        except EngineError as error:
            drop(engine, error)

    for engine in tuple(wanted):
        if not case.fresh:
            start(engine)
    for _ in range(min(rounds, case.rounds or rounds)):
        for engine in tuple(wanted):
            if case.fresh:
                start(engine)
            if engine not in workers:
                continue
            time.sleep(0.02)  # the threads of the engine before go to sleep
            try:
                samples.setdefault(engine, []).append(workers[engine].sample())
            except EngineError as error:
                drop(engine, error)
            if case.fresh:
                workers.pop(engine).close()
    for worker in workers.values():
        worker.close()
    return samples, errors


def row(
    benchmark: str,
    case: Case,
    samples: dict[str, list[float]],
    errors: dict[str, str],
) -> dict[str, Any]:
    """One result, as it stands in the JSON file."""
    own = samples.get(TORCHSHIM)
    ratios, goals = {}, []
    for engine, others in samples.items():
        if own and engine != TORCHSHIM and all(others):
            ratios[engine] = paired(own, others, lambda a, b: a / b).as_json()
    for goal in case.goals:
        value = None
        if own and goal.against is None:
            value = Summary.of(own).median
        elif own and goal.against in samples:
            value = paired(own, samples[goal.against], goal.combine).median
        reached = None if value is None else value <= goal.limit
        goals.append({"goal": str(goal), "value": value, "reached": reached})
    return {
        "benchmark": benchmark,
        "case": case.name,
        "unit": case.unit,
        "engines": {name: Summary.of(s).as_json() for name, s in samples.items()},
        "ratios": ratios,
        "goals": goals,
        "errors": errors,
    }


def number(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def spread(summary: dict[str, Any] | None) -> str:
    """The median and, if there are several samples, the interquartile range."""
    if summary is None:
        return "-"
    text = number(summary["median"])
    if summary["q3"] > summary["q1"]:
        text += f" [{number(summary['q1'])}..{number(summary['q3'])}]"
    return text


def goal_text(goal: dict[str, Any]) -> str:
    mark = {None: "", True: " yes", False: f" NO ({number(goal['value'] or 0)})"}
    return goal["goal"] + mark[goal["reached"]]


HEADERS = ("", "unit", *ENGINES, "/torch", "/jax", "goal")


def cells(result: dict[str, Any]) -> tuple[str, ...]:
    engines, ratios = result["engines"], result["ratios"]
    values = [
        "error" if name in result["errors"] else spread(engines.get(name))
        for name in ENGINES
    ]
    return (
        result["case"],
        result["unit"],
        *values,
        spread(ratios.get("torch")),
        spread(ratios.get("jax")),
        "; ".join(map(goal_text, result["goals"])),
    )


def print_table(benchmark: str, results: list[dict[str, Any]]) -> None:
    """A table that reads well on a terminal and pastes into a Markdown page."""
    rows = [(benchmark, *HEADERS[1:]), *map(cells, results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    to_the_left = {0, 1, len(widths) - 1}
    for index, texts in enumerate(rows):
        padded = [
            text.ljust(width) if place in to_the_left else text.rjust(width)
            for place, (text, width) in enumerate(zip(texts, widths, strict=True))
        ]
        print(f"| {' | '.join(padded)} |")
        if index == 0:
            rules = [
                "-" * width if place in to_the_left else "-" * (width - 1) + ":"
                for place, width in enumerate(widths)
            ]
            print(f"| {' | '.join(rules)} |")
    for result in results:
        for engine, error in result["errors"].items():
            print(f"  {result['case']}, {engine}: {error}")
    print(flush=True)


def machine() -> dict[str, Any]:
    versions = {}
    for name in (*ENGINES, "jaxlib", "optax", "numpy"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}; default all"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results here")
    parser.add_argument("--rounds", type=int, default=9, help="samples an engine")
    parser.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=list(ENGINES), metavar="engine"
    )
    parser.add_argument("--long", action="store_true", help="the long cases as well")
    options = parser.parse_args()
    for name in options.names:
        if name not in NAMES:
            parser.error(f"no benchmark {name!r}; there are {', '.join(NAMES)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    about = machine()
    print(json.dumps(about), end="\n\n")
    if about["load"] and about["load"] > about["cores"] / 2:
        print(f"the machine is busy (load {about['load']:.2f}): expect scatter\n")
    results: list[dict[str, Any]] = []
    for name in options.names or NAMES:
        of_this = []
        for case in import_module(f"benchmarks.{name}").CASES:
            if case.long and not options.long:
                continue
            if sys.stderr.isatty():
                print(f"\r\033[K{name}: {case.name}", end="", file=sys.stderr)
            samples, errors = measure(name, case, options.engines, options.rounds)
            of_this.append(row(name, case, samples, errors))
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        print_table(name, of_this)
        results += of_this
    if options.json:
        content = {"machine": about, "results": results}
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
