"""`ChannelShuffle` under the name of PyTorch's module."""

from torchshim._tensor import Tensor as Tensor
from torchshim.nn.modules.module import Module as Module
from torchshim.nn.modules.shuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
