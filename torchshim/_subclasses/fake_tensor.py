"""Fake tensors need `__torch_dispatch__`, which is not supported."""

from torchshim._errors import unsupported

__all__ = ["FakeTensor", "FakeTensorConverter", "FakeTensorMode"]

_REASON = "tensors on the device meta take their place"
FakeTensor = unsupported("_subclasses.fake_tensor.FakeTensor", _REASON)
FakeTensorConverter = unsupported(
    "_subclasses.fake_tensor.FakeTensorConverter", _REASON
)
FakeTensorMode = unsupported("_subclasses.fake_tensor.FakeTensorMode", _REASON)
