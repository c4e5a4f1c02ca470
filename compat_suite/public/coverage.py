"""Which of PyTorch's public names torchshim has, lacks, or leaves out for a reason."""

from __future__ import annotations

import fnmatch
import functools
import importlib
from pathlib import Path
from typing import Any

from compat_suite.public import listing

REFUSED = Path(__file__).with_name("refused.txt")
HAS, LACKS = "has", "lacks"


def refusals() -> list[tuple[str, str]]:
    """The patterns of names that are left out, with the reasons."""
    lines = REFUSED.read_text().splitlines()
    pairs = (x.partition(": ") for x in lines if x and not x.startswith("#"))
    return [(pattern, reason) for pattern, _, reason in pairs]


def coverage() -> dict[str, dict[str, str]]:
    """For each module or class, for each of its names: `HAS`, `LACKS` or a reason."""
    reasons = refusals()
    found: dict[str, dict[str, str]] = {}
    for path, names in listing.read().items():
        owner = _resolve(path)
        found[path] = {name: _state(owner, path, name, reasons) for name in names}
    return found


def _state(owner: Any, path: str, name: str, reasons: list[tuple[str, str]]) -> str:
    if owner is not None and _has(owner, name):
        return HAS
    for pattern, reason in reasons:
        if fnmatch.fnmatchcase(f"{path}.{name}", pattern):
            return reason
    return LACKS


def _has(owner: Any, name: str) -> bool:
    if hasattr(owner, name):
        return True
    return (
        not isinstance(owner, type) and _module(f"{owner.__name__}.{name}") is not None
    )


@functools.cache
def _module(path: str) -> Any:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        return None


def _resolve(path: str) -> Any:
    """The module or class of torchshim for one of PyTorch's; None if it lacks it."""
    path = path.replace("torch", "torchshim", 1)
    found = _module(path)
    if found is None:
        parent, _, name = path.rpartition(".")
        found = getattr(_module(parent), name, None)
    return found


def table(found: dict[str, dict[str, str]]) -> str:
    """How many names there are, are lacking and are left out, by module or class."""
    lines = [f"{'':34}{'names':>7}{'has':>7}{'lacks':>7}{'left out':>10}{'share':>9}"]
    rows = [(path, list(states.values())) for path, states in found.items()]
    rows.append(("all", [state for _, states in rows for state in states]))
    for path, states in rows:
        has, lacks = states.count(HAS), states.count(LACKS)
        rest = len(states) - has - lacks
        share = f"{100 * has / max(len(states), 1):.1f} %"
        lines.append(f"{path:34}{len(states):7}{has:7}{lacks:7}{rest:10}{share:>9}")
    return "\n".join(lines)
