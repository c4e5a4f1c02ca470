"""What scripts print under torchshim beside what they print under PyTorch.

`python -m compat_suite scripts --keep` keeps it; the report shows the numbers that a
script prints again and again (losses, mostly) as curves.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from compat_suite.script import Failure, Script
from compat_suite.text import NUMBER

#: The last outputs that were kept in the repository.
KEPT = Path(__file__).with_name("outputs.json.gz")
#: A line must be printed so often, with other numbers, to be a curve.
POINTS = 3
#: Curves of a script that are shown.
SHOWN = 4


@dataclass
class Output:
    """What a script printed."""

    name: str
    printed: str
    #: How it failed, or "".
    failure: str = ""


@dataclass
class Curve:
    """A number that a script prints again and again."""

    label: str
    expected: list[float]
    actual: list[float]


def keep(script: Script) -> None:
    """Runs a script and keeps its output; raises `Failure` if it differs."""
    made = {o.name: o for o in read()}
    try:
        printed = script.run(shim=True)
    except Failure as failure:
        made[script.name] = Output(script.name, "", str(failure)[-1000:])
        _write(made)
        raise
    made[script.name] = output = Output(script.name, printed)
    try:
        script.compare(script.expected_path.read_text(), printed)
    except Failure as failure:
        output.failure = str(failure)[:1000]
        raise
    finally:
        _write(made)


def _write(made: dict[str, Output]) -> None:
    content = [asdict(made[name]) for name in sorted(made)]
    text = json.dumps(content, separators=(",", ":"))
    KEPT.write_bytes(gzip.compress(text.encode(), mtime=0))


def read() -> list[Output]:
    """The outputs that were kept."""
    if not KEPT.exists():
        return []
    return [Output(**o) for o in json.loads(gzip.decompress(KEPT.read_bytes()))]


def curves(expected: str, actual: str) -> list[Curve]:
    """The numbers of lines that differ in nothing else, of both outputs."""
    found = _series(actual)
    pairs = [
        Curve(label, series, found.get(label, []))
        for label, series in _series(expected).items()
    ]
    return pairs[:SHOWN]


def _series(text: str) -> dict[str, list[float]]:
    """Numbers with a point, by the words before them, of lines that say the same."""
    made: dict[tuple[str, int, str], list[float]] = {}
    for line in text.splitlines():
        if "tensor(" in line or re.match(r"\s*\[\s*-?\d+\.", line):
            continue
        frame, end = NUMBER.sub("#", line), 0
        for column, match in enumerate(NUMBER.finditer(line)):
            before, end = line[end : match.start()], match.end()
            value = match.group()
            # What follows a comma belongs to a list.
            if ("." in value or "e" in value) and before.strip() != ",":
                label = _words(before) or _words(line[:end]) or "value"
                made.setdefault((label, column, frame), []).append(float(value))
    return _named(
        {
            key: series
            for key, series in made.items()
            if len(series) >= POINTS and len(set(series)) > 1
        }
    )


def _words(text: str) -> str:
    return " ".join(re.findall(r"[A-Za-z_]+", text)[-3:])


def _named(made: dict[tuple[str, int, str], list[float]]) -> dict[str, list[float]]:
    """Series by their labels, numbered where several have the same."""
    found: dict[str, list[float]] = {}
    for (label, _, _), series in made.items():
        name, count = label, 1
        while name in found:
            count += 1
            name = f"{label} {count}"
        found[name] = series
    return found
