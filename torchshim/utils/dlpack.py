"""Tensors exchanged with other libraries: `torch.utils.dlpack`."""

from __future__ import annotations

from typing import Any

from torchshim._derived import namespace as _namespace
from torchshim._functions._arguments import tensor_argument
from torchshim._functions.interop import DLDeviceType
from torchshim._tensor import Tensor

__all__ = ["DLDeviceType", "from_dlpack"]

from_dlpack = _namespace("torch")["from_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that another library's `from_dlpack` takes."""
    tensor_argument("_to_dlpack", "data", 1, tensor)
    return tensor.detach().__dlpack__()
