"""The named tuples that functions give: `torch.return_types.max` and its like."""

from __future__ import annotations

from typing import Any

from torchshim._bind import result_type
from torchshim._core.op import REGISTRY


def _kinds() -> dict[str, Any]:
    ops = [op for op in REGISTRY.values() if op.named_result]
    return {kind.__name__: kind for kind in map(result_type, ops)}


globals().update(_kinds())
# The registry has the names.
__all__ = [*_kinds()]  # pyright: ignore[reportUnsupportedDunderAll]
