"""What programs that extend `nn.Module` ask PyTorch's C++ side."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["_parse_to"]


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What a call of ``Module.to`` asks for: device, dtype, non_blocking, format."""
    reading = importlib.import_module("torchshim.nn.modules._parse_to")
    return reading.parse_to(*args, **kwargs)
