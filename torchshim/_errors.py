"""The kinds of errors that PyTorch has of its own."""

from __future__ import annotations

__all__ = ["AcceleratorError", "OutOfMemoryError"]


class OutOfMemoryError(RuntimeError):
    """A device has no room left."""


class AcceleratorError(RuntimeError):
    """A device failed."""


for _kind in (OutOfMemoryError, AcceleratorError):
    _kind.__module__ = "torch"
