"""Channels rearranged."""

from __future__ import annotations

from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Channels dealt out over groups. Follows ``torch.nn.ChannelShuffle``.

    >>> import torchshim as torch
    >>> x = torch.arange(4.0).reshape(1, 4, 1, 1)
    >>> torch.nn.ChannelShuffle(2)(x).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    __constants__ = ["groups"]  # noqa: RUF012

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
