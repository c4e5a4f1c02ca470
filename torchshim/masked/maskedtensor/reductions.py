"""Names of the reductions that masked tensors have."""

from __future__ import annotations

__all__: list[str] = []

REDUCE_NAMES = "sum mean amin amax argmin argmax prod all norm var std".split()
