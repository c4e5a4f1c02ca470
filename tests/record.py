"""Record PyTorch's results of the cases: `python -m tests.record [module ...]`.

Runs under an interpreter that has the torch version named in `tests.oracle`. Modules
are given as `test_x`, `tests.test_x` or `tests/test_x.py`; none means all.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.oracle import (
    ROOT,
    SUSPICIOUS,
    TORCH_VERSION,
    Case,
    cases_of,
    expected_path,
    expected_records,
    find_torch,
    write_expected,
)
from tests.outcome import Record, compare


def main(arguments: list[str] | None = None) -> int:
    """Record, or check (`--check`), or show (`--show`); 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.record", description=__doc__)
    parser.add_argument("modules", nargs="*")
    parser.add_argument(
        "--check", action="store_true", help="compare with torch; write nothing"
    )
    parser.add_argument(
        "--show", metavar="TEXT", help="print what torch gives for cases named so"
    )
    parser.add_argument("--errors", action="store_true", help="list cases that raise")
    options = parser.parse_args(arguments)
    torch = find_torch()
    if torch is None:
        print(f"recording needs torch {TORCH_VERSION}", file=sys.stderr)
        return 1
    bad = 0
    for name in [_module_name(m) for m in options.modules] or all_modules():
        try:
            module = importlib.import_module(name)
        except Exception as error:  # one broken module is not to stop the others
            print(f"{name}: cannot be imported: {type(error).__name__}: {error}")
            bad += 1
            continue
        cases = list(cases_of(module))
        if options.show is not None:
            show([case for case in cases if options.show in case.name], torch)
        elif options.check:
            bad += check_module(name, cases, torch)
        elif cases:
            bad += record_module(name, cases, torch, options.errors)
        else:
            expected_path(name).unlink(missing_ok=True)
    return 1 if bad else 0


def all_modules() -> list[str]:
    """Every test module, by its dotted name."""
    return [_module_name(str(path)) for path in sorted(ROOT.rglob("test_*.py"))]


def _module_name(text: str) -> str:
    if text.endswith(".py"):
        relative = Path(text).resolve().relative_to(ROOT.parent)
        return ".".join(relative.with_suffix("").parts)
    return text if text.startswith("tests.") else f"tests.{text}"


def record_module(name: str, cases: list[Case], torch: Any, errors: bool) -> int:
    """Record one module and give the number of cases that look wrong."""
    records: dict[str, Record] = {}
    raising = 0
    problems: list[str] = []
    for case in cases:
        outcome = case.observe(torch)
        if outcome.error is not None:
            raising += 1
            line = f"  {case.name}: {type(outcome.error).__name__}: {outcome.error}"
            if errors:
                print(line)
            if looks_wrong(case, outcome.error):
                problems.append(line)
                continue
        records[case.name] = outcome.record
    path = write_expected(name, records)
    size = path.stat().st_size / 1024
    print(f"{name}: {len(records)} cases ({raising} end in an error), {size:.1f} KiB")
    if problems:
        print("  not recorded: a mistake in the case, or else it needs `raises=`")
        print("\n".join(problems))
    return len(problems)


def looks_wrong(case: Case, error: Exception) -> bool:
    """Whether the error is of a kind that a case must announce with `raises=`."""
    return isinstance(error, SUSPICIOUS) and not any(
        kind.__name__ in case.options.raises for kind in type(error).__mro__
    )


def check_module(name: str, cases: list[Case], torch: Any) -> int:
    """Compare the recorded results with torch and give the number that differ."""
    recorded = expected_records(name)
    stale = sorted(set(recorded) - {case.name for case in cases})
    problems = [f"  {gone}: recorded, but there is no such case" for gone in stale]
    for case in cases:
        if case.name not in recorded:
            problems.append(f"  {case.name}: not recorded")
            continue
        record = json.loads(json.dumps(case.observe(torch).record))
        problems += [
            f"  {case.name}: {difference}"
            for difference in compare(recorded[case.name], record, case.options)
        ]
    if problems:
        print(name, *problems, sep="\n")
    return len(problems)


def show(cases: list[Case], torch: Any) -> None:
    """Print what torch gives, as it would be recorded."""
    for case in cases:
        print(case.name)
        for part, record in case.observe(torch).record.items():
            text = record if isinstance(record, str) else json.dumps(record)
            print("  " + f"{part}: {text}".rstrip("\n").replace("\n", "\n  "))


if __name__ == "__main__":
    sys.exit(main())
