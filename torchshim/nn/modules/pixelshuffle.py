"""`PixelShuffle` and its inverse under the name of PyTorch's module."""

from torchshim.nn.modules.shuffle import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
