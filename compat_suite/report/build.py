"""Builds the page from the results that are kept in the repository."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from compat_suite import outputs
from compat_suite.features import running
from compat_suite.operators import results
from compat_suite.operators.results import KINDS, Entry, Results
from compat_suite.public.coverage import HAS, LACKS, coverage
from compat_suite.script import Script, scripts

PLACE = Path(__file__).resolve().parent
#: Failures shown of one entry, the rest is counted.
SHOWN = 6
#: The parts that the page is put together from.
PARTS = ("page.css", "page.js", "tables.js", "curves.js")


@dataclass
class Kept:
    """All that the page shows."""

    #: By package: "operators", "modules", "optimizers".
    databases: dict[str, Results]
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    features: list[running.Feature] = field(default_factory=list)
    run: running.Run = field(default_factory=lambda: running.Run("", {}, []))
    #: Scripts with PyTorch's and torchshim's outputs.
    scripts: list[tuple[str, str, outputs.Output]] = field(default_factory=list)


def kept(operators: Path | None = None) -> Kept:
    """What the repository has; `operators` is another run of the operators."""
    paths = {package: results.kept(package) for package in results.PACKAGES}
    if operators is not None:
        paths["operators"] = operators
    run = running.RECORDED
    printed = {output.name: output for output in outputs.read()}
    return Kept(
        {name: Results.read(path) for name, path in paths.items() if path.exists()},
        coverage(),
        running.features(),
        running.Run.read(run) if run.exists() else running.Run("", {}, []),
        [_pair(s, printed[s.name]) for s in scripts() if s.name in printed],
    )


def _pair(script: Script, printed: outputs.Output) -> tuple[str, str, outputs.Output]:
    return script.name, script.expected_path.read_text(), printed


def page(kept: Kept) -> str:
    """The page, complete in itself."""
    data = {
        "databases": {n: _database(n, r) for n, r in kept.databases.items()},
        "names": [
            _name(path, name, state)
            for path, states in kept.names.items()
            for name, state in states.items()
        ],
        "features": [_feature(each, kept.run) for each in kept.features],
        "samplers": [asdict(each) for each in kept.run.samplers],
        "scripts": [_script(*each) for each in kept.scripts],
    }
    # `<` must not end the script element that the data stands in.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    made = (PLACE / "page.html").read_text(encoding="utf-8")
    for name in PARTS:
        content = (PLACE / name).read_text(encoding="utf-8")
        made = made.replace(f"{{{{ {name} }}}}", content)
    return made.replace("{{ data }}", text)


def _database(package: str, found: Results) -> dict[str, Any]:
    seen = list(dict.fromkeys(kind for entry in found.entries for kind in entry.made))
    ordered = KINDS if package == "operators" else seen
    known = results.differing() if package == "operators" else {}
    return {
        "versions": found.versions,
        "options": found.options,
        "kinds": ordered,
        "entries": [_entry(e, ordered, known.get(e.name, "")) for e in found.entries],
    }


def _entry(entry: Entry, kinds: Any, known: str) -> dict[str, Any]:
    shown = [
        {
            "kind": f.kind,
            "dtype": f.dtype,
            "sample": f.sample[:200],
            "cause": f.cause[:300],
            "details": f.details[:400],
        }
        for f in entry.failures[:SHOWN]
    ]
    return {
        "name": entry.name,
        "namespace": entry.namespace,
        "reason": entry.reason,
        "known": known if entry.failures else "",
        "states": {kind: entry.state(kind) for kind in kinds},
        "dtypes": entry.dtypes(),
        "failures": shown,
        "more": len(entry.failures) - len(shown),
    }


def _name(path: str, name: str, state: str) -> dict[str, str]:
    known = state in (HAS, LACKS)
    return {
        "name": f"{path}.{name}",
        "owner": path,
        "state": state if known else "left out",
        "reason": "" if known else state,
    }


def _feature(feature: running.Feature, run: running.Run) -> dict[str, Any]:
    return {
        "name": feature.name,
        "tests": run.of(feature),
        "lacking": feature.lacking,
    }


def _script(name: str, expected: str, printed: outputs.Output) -> dict[str, Any]:
    return {
        "name": name,
        "state": "failed" if printed.failure else "ok",
        "failure": printed.failure,
        "same": expected == printed.printed,
        "expected": expected,
        "actual": printed.printed,
        "curves": [asdict(c) for c in outputs.curves(expected, printed.printed)],
    }
