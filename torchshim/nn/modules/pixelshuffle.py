"""Channels as pixels, and back."""

from __future__ import annotations

from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules.module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """(N, C * r * r, H, W) to (N, C, H * r, W * r). Follows ``torch.nn.PixelShuffle``.

    >>> import torchshim as torch
    >>> torch.nn.PixelShuffle(3)(torch.zeros(1, 9, 4, 4)).shape
    torch.Size([1, 1, 12, 12])
    """

    __constants__ = ["upscale_factor"]  # noqa: RUF012

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The reverse of `PixelShuffle`. Follows ``torch.nn.PixelUnshuffle``.

    >>> import torchshim as torch
    >>> torch.nn.PixelUnshuffle(3)(torch.zeros(1, 1, 12, 12)).shape
    torch.Size([1, 9, 4, 4])
    """

    __constants__ = ["downscale_factor"]  # noqa: RUF012

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
