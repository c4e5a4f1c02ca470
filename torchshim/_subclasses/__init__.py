"""Tensors without data: the device meta has them; fake tensors are refused."""

from torchshim._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
