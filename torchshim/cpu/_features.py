"""What the processor says of itself, on Linux."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def _information() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    first = text.partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def features() -> frozenset[str]:
    """The processor's flags in Linux's words; empty where there is no such list."""
    known = _information()
    return frozenset(known.get("flags", known.get("Features", "")).split())


def model() -> str:
    """The processor's name; empty where it is not told."""
    return _information().get("model name", "")
