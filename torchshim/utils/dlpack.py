"""Tensors exchanged with other libraries: `torch.utils.dlpack`."""

from __future__ import annotations

from typing import Any

from torchshim._derived import namespace as _namespace
from torchshim._functions.interop import DLDeviceType
from torchshim._tensor import Tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]

from_dlpack = _namespace("torch")["from_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that another library's `from_dlpack` takes."""
    return tensor.detach().__dlpack__()
