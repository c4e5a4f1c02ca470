"""Programs made shorter, as long as they differ."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def reduce(
    lines: list[str], differs: Callable[[list[str]], Any], seconds: float
) -> list[str]:
    """Leaves out lines, halves of the program first, for so many seconds."""
    end = time.time() + seconds
    size = max(len(lines) // 2, 1)
    if not differs(lines):
        return lines
    while time.time() < end:
        at, smaller = 0, False
        while at < len(lines) and time.time() < end:
            candidate = lines[:at] + lines[at + size :]
            if candidate and differs(candidate):
                lines, smaller = candidate, True
            else:
                at += size
        if size > 1:
            size //= 2
        elif not smaller:
            break
    return lines
