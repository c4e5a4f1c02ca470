"""Custom functions that PyTorch offers itself: `torch.autograd._functions`."""

from torchshim.autograd._functions.tensor import Resize

__all__ = ["Resize"]
