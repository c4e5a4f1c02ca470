"""What checking entries came to: as JSON, as a table, and failures by cause."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The packages with a database.
PACKAGES = ("operators", "modules", "optimizers")
#: `name: reason` on each line, for the entries of operators that are left out.
LEFT_OUT = Path(__file__).with_name("left_out.txt")
NAMESPACES = (
    "nn.functional",
    "linalg",
    "fft",
    "special",
    "masked",
    "signal",
    "sparse",
    "ops.aten",
)
#: The kinds of checks of operators, in the order they are shown.
KINDS = (
    "forward",
    "grad",
    "gradgrad",
    "method",
    "in-place",
    "out=",
    "errors",
    "layouts",
    "tangents",
    "vmap",
    "third",
)
#: Those that are made only where they are asked for.
MORE = ("layouts", "tangents", "vmap", "third")
VARIANTS = ("method", "in-place", "out=")


def kept(package: str) -> Path:
    """Where the results of a package's database are kept in the repository."""
    return Path(__file__).parents[1] / package / "recorded.json.gz"


def namespace_of(name: str) -> str:
    """The part of the table an operator is counted in."""
    name = name.removeprefix("torch.")
    for namespace in NAMESPACES:
        if name.startswith(namespace + "."):
            return namespace
    return "Tensor" if name.startswith("__") else "torch"


def _reasons() -> dict[str, str]:
    lines = LEFT_OUT.read_text().splitlines()
    pairs = (x.partition(": ") for x in lines if x and not x.startswith("#"))
    return {name: reason for name, _, reason in pairs}


def left_out() -> dict[str, str]:
    """What need not agree, operators or `NAME DTYPE`, each with its reason."""
    return {n: r for n, r in _reasons().items() if not n.startswith("~")}


def differing() -> dict[str, str]:
    """Operators that are compared and known to differ somewhere, with the reason."""
    found = _reasons().items()
    return {n.removeprefix("~"): r for n, r in found if n.startswith("~")}


@dataclass
class Failure:
    """One check that did not pass."""

    kind: str
    dtype: str
    sample: str
    cause: str
    details: str = ""


@dataclass
class Entry:
    """What became of one entry of the database."""

    name: str
    namespace: str
    #: kind -> dtype -> the number of checks made.
    made: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    #: Why the entry is left out, or "".
    reason: str = ""
    seconds: float = 0.0

    def count(self, kind: str, dtype: str) -> None:
        """One more check was made."""
        of_kind = self.made.setdefault(kind, {})
        of_kind[dtype] = of_kind.get(dtype, 0) + 1

    def failed(self, kind: str) -> bool:
        """Whether a check of this kind did not pass."""
        return any(f.kind == kind for f in self.failures)

    def state(self, kind: str) -> str:
        """ "ok", "failed", or "" where there was nothing to check."""
        if self.failed(kind):
            return "failed"
        return "ok" if kind in self.made else ""

    def dtypes(self) -> dict[str, bool]:
        """The dtypes that were compared, and whether everything agreed."""
        wrong = {f.dtype for f in self.failures}
        return {d: d not in wrong for k in self.made for d in self.made[k] if d}


@dataclass
class Results:
    """A run of many entries."""

    versions: dict[str, str]
    options: dict[str, Any]
    entries: list[Entry]

    def write(self, path: Path) -> None:
        """Keeps the run as JSON; compressed where the file's name says so."""
        if path.suffix == ".gz":
            text = json.dumps(asdict(self), separators=(",", ":"))
            # Without the time, so that the same run is the same file.
            path.write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    def onto(self, older: Results) -> Results:
        """These results, and the older ones of other entries."""
        made = {e.name: e for e in older.entries} | {e.name: e for e in self.entries}
        return Results(self.versions, self.options, list(made.values()))

    @classmethod
    def read(cls, path: Path) -> Results:
        """A run that was kept."""
        raw = path.read_bytes()
        data = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        entries = [
            Entry(**e | {"failures": [Failure(**f) for f in e["failures"]]})
            for e in data["entries"]
        ]
        return cls(data["versions"], data["options"], entries)


def table(entries: Iterable[Entry]) -> str:
    """How many entries of each namespace pass, by kind of check."""
    entries = list(entries)
    seen = dict.fromkeys(kind for entry in entries for kind in entry.made)
    kinds = [*(k for k in KINDS if k in seen), *(k for k in seen if k not in KINDS)]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        for row in (entry.namespace, "all"):
            count = counts[row]
            count["entries"] += 1
            if entry.reason:
                count["left out"] += 1
                continue
            for kind in kinds:
                if state := entry.state(kind):
                    count[f"{kind} made"] += 1
                    count[f"{kind} ok"] += state == "ok"
            of_dtypes = entry.dtypes()
            count["dtypes made"] += len(of_dtypes)
            count["dtypes ok"] += sum(of_dtypes.values())
    rows = [["", "entries", "left out", *kinds, "dtypes"]]
    for name in sorted(counts, key=lambda n: (n == "all", n)):
        count = counts[name]
        row = [name, str(count["entries"]), str(count["left out"] or "")]
        for kind in (*kinds, "dtypes"):
            made, ok = count[f"{kind} made"], count[f"{kind} ok"]
            row.append(f"{ok}/{made}" if made else "")
        rows.append(row)
    shares = ["passed", "", ""]
    for kind in (*kinds, "dtypes"):
        made, ok = counts["all"][f"{kind} made"], counts["all"][f"{kind} ok"]
        shares.append(f"{100 * ok / made:.1f} %" if made else "")
    rows.append(shares)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if i else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def by_cause(entries: Iterable[Entry]) -> dict[str, list[tuple[str, Failure]]]:
    """The failures by cause, the causes that concern most entries first."""
    groups: dict[str, list[tuple[str, Failure]]] = defaultdict(list)
    for entry in entries:
        for failure in entry.failures:
            cause = failure.cause
            if not cause.startswith("missing"):
                cause = _NUMBERS.sub("#", cause)
            groups[cause].append((entry.name, failure))
    concerned = {c: len({name for name, _ in found}) for c, found in groups.items()}
    return {c: groups[c] for c in sorted(groups, key=lambda c: (-concerned[c], c))}


def grouped(entries: Iterable[Entry], examples: int = 3) -> str:
    """The failures grouped by cause, as text, with the reasons that are known."""
    known = differing()
    missing: list[str] = []
    lines: list[str] = []
    for cause, found in by_cause(entries).items():
        names = sorted({name for name, _ in found})
        kinds = ", ".join(
            f"{k} {n}" for k, n in Counter(f.kind for _, f in found).items()
        )
        if cause.startswith("missing"):
            missing.append(f"{cause}  ({len(names)}: {', '.join(names)})")
            continue
        lines.append(f"\n{cause}\n  {len(names)} entries ({kinds}): {', '.join(names)}")
        shown: set[str] = set()
        for name, failure in found:
            if name not in shown and len(shown) < examples:
                shown.add(name)
                details = failure.details.replace("\n", " ")[:300]
                lines.append(
                    f"    {name} {failure.kind} {failure.dtype} {failure.sample[:300]}"
                    f"\n      {details}"
                )
                if name in known:
                    lines.append(f"      known: {known[name]}")
    return "\n".join([*missing, *lines])
