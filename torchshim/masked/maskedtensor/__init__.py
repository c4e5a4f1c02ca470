"""Masked tensors: data and a mask that act as one tensor. See `core`."""

from torchshim.masked.maskedtensor.core import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]
