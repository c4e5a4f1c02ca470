"""Builds the page from a run of the operator database and the list of names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compat_suite.operators.results import KINDS, Entry, Results
from compat_suite.public.coverage import HAS, LACKS

PLACE = Path(__file__).resolve().parent
#: Failures shown of one entry, the rest is counted.
SHOWN = 6


def page(results: Results, names: dict[str, dict[str, str]]) -> str:
    """The page, complete in itself."""
    data = {
        "versions": results.versions,
        "options": results.options,
        "kinds": KINDS,
        "operators": [_operator(entry) for entry in results.entries],
        "names": [
            _name(path, name, state)
            for path, states in names.items()
            for name, state in states.items()
        ],
    }
    # `<` must not end the script element that the data stands in.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    made = (PLACE / "page.html").read_text(encoding="utf-8")
    for name, content in (
        ("page.css", (PLACE / "page.css").read_text(encoding="utf-8")),
        ("page.js", (PLACE / "page.js").read_text(encoding="utf-8")),
        ("data", text),
    ):
        made = made.replace(f"{{{{ {name} }}}}", content)
    return made


def _operator(entry: Entry) -> dict[str, Any]:
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
        "states": {kind: entry.state(kind) for kind in KINDS},
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
