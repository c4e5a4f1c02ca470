"""Fake tensors need `__torch_dispatch__`, which is not supported."""

from typing import Any

from torchshim._errors import unsupported

__all__ = ["FakeTensor", "FakeTensorConverter", "FakeTensorMode", "is_fake"]

_REASON = "tensors on the device meta take their place"
FakeTensor = unsupported("_subclasses.fake_tensor.FakeTensor", _REASON)
FakeTensorConverter = unsupported(
    "_subclasses.fake_tensor.FakeTensorConverter", _REASON
)
FakeTensorMode = unsupported("_subclasses.fake_tensor.FakeTensorMode", _REASON)


def is_fake(x: Any) -> bool:
    """Whether something is a fake tensor: nothing is."""
    return False
