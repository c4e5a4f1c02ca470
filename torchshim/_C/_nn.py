"""What programs that extend `nn.Module` ask PyTorch's C++ side."""

from __future__ import annotations

import importlib
from typing import Any

from torchshim._C._native import functions_of

__all__ = ["_parse_to"]

__getattr__ = functions_of(__name__)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What a call of ``Module.to`` asks for: device, dtype, non_blocking, format."""
    reading = importlib.import_module("torchshim.nn.modules._parse_to")
    return reading.parse_to(*args, **kwargs)
