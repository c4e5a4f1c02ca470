"""`ChannelShuffle` under the name of PyTorch's module."""

from torchshim.nn.modules.shuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
