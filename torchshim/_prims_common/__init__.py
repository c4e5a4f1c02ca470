"""Questions about tensors that PyTorch's own functions ask."""

from __future__ import annotations

from typing import Any

from torchshim._core.layout import channels_last, channels_last_3d, contiguous_format


def suggest_memory_format(x: Any) -> Any:
    """The format in which a tensor's strides are ordered."""
    for dims, found in ((4, channels_last), (5, channels_last_3d)):
        ordered = x.dim() == dims and x.is_contiguous(memory_format=found)
        if ordered and not x.is_contiguous():
            return found
    return contiguous_format
