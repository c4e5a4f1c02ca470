"""All classes of the old constructors of tensors, as `torch._tensor_classes`."""

from __future__ import annotations

from typing import Any

from torchshim import sparse
from torchshim._functions.legacy import CUDA_TENSOR_TYPES, TENSOR_TYPES

_tensor_classes: set[Any] = {
    *TENSOR_TYPES.values(),
    *CUDA_TENSOR_TYPES.values(),
    *(getattr(sparse, name) for name in TENSOR_TYPES if hasattr(sparse, name)),
}
