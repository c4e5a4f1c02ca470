"""Helpers of PyTorch's tracer, as far as scripts name them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import torchshim

__all__ = ["counters", "is_compile_supported"]

#: What the tracer counted; nothing is traced here.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


def is_compile_supported(device_type: Any) -> bool:
    """Whether functions on a kind of device can be compiled."""
    kind = torchshim.device(device_type).type
    return kind == "cpu" or kind == getattr(
        torchshim.accelerator.current_accelerator(), "type", None
    )
