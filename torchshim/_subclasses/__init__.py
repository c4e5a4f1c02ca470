"""Tensors without data: the device meta has them; fake tensors are refused."""

from torchshim._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from torchshim._subclasses.fake_utils import (
    CrossRefFakeMode,  # pyright: ignore[reportAttributeAccessIssue]
)

__all__ = [
    "CrossRefFakeMode",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
]
