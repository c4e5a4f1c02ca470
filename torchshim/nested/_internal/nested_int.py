"""Sizes of ragged dimensions, as PyTorch keeps them in a `SymInt`."""

from torchshim._core.ragged import NestedIntNode

__all__ = ["NestedIntNode"]
