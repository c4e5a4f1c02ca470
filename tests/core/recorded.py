"""Expressions whose results are compared with PyTorch's below the package root.

`table(name)` gives what PyTorch 2.13 answered, as recorded in `tests/expected`;
`python -m tests.core.recorded` asks it again and rewrites the files. `LIVE` is the
torch module where it is installed, else None.
"""

from __future__ import annotations

import gzip
import importlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.oracle import find_torch

EXPECTED = Path(__file__).parents[1] / "expected"
LIVE: Any = find_torch()
MODULES = ("dtypes", "promotion", "device")

Table = dict[str, str]


def outcome(function: Callable[[], Any]) -> str:
    """The repr of a result, or the type and text of the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(function())
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def evaluate(lines: tuple[str, ...], names: dict[str, Any]) -> Table:
    """The outcome of each line; "a; b" runs a, then shows b."""
    found = {}
    for line in lines:
        *before, last = line.split("; ")
        scope = dict(names)

        def run(before: list[str] = before, last: str = last, s: Any = scope) -> Any:
            for statement in before:
                exec(statement, s)
            return eval(last, s)

        found[line] = outcome(run)
    return found


def path(name: str) -> Path:
    return EXPECTED / f"core_{name}.json.gz"


def table(name: str) -> Table:
    """PyTorch's recorded answers."""
    return json.loads(gzip.decompress(path(name).read_bytes()))


def differences(expected: Table, actual: Table) -> list[str]:
    """One line for each entry that differs; a missing entry differs too."""
    return [
        f"{key}\n  expected {expected.get(key)}\n  actual   {actual.get(key)}"
        for key in expected | actual
        if expected.get(key) != actual.get(key)
    ]


def main() -> None:
    if LIVE is None:
        raise SystemExit("recording needs torch")
    for name in MODULES:
        module = importlib.import_module(f"tests.core.test_{name}")
        text = json.dumps(module.theirs(LIVE), indent=0, ensure_ascii=False)
        path(name).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
