"""Windows of images as columns, and back."""

from __future__ import annotations

from typing import Any

from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.common_types import _size_any_t as _size_any_t
from torchshim.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]


class _Windows(Module):
    def _set(self, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Unfold(_Windows):
    """Every window of (N, C, H, W) as a column. Follows ``torch.nn.Unfold``.

    >>> import torchshim as torch
    >>> torch.nn.Unfold(2)(torch.zeros(1, 3, 4, 4)).shape
    torch.Size([1, 12, 9])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]  # noqa: RUF012

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self._set(kernel_size, dilation, padding, stride)

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(
            input, self.kernel_size, self.dilation, self.padding, self.stride
        )


class Fold(_Windows):
    """Columns added up as windows of an image. Follows ``torch.nn.Fold``.

    >>> import torchshim as torch
    >>> torch.nn.Fold((4, 4), 2)(torch.zeros(1, 12, 9)).shape
    torch.Size([1, 3, 4, 4])
    """

    __constants__ = [  # noqa: RUF012
        "output_size",
        "kernel_size",
        "dilation",
        "padding",
        "stride",
    ]

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self._set(kernel_size, dilation, padding, stride)

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input,
            self.output_size,
            self.kernel_size,
            self.dilation,
            self.padding,
            self.stride,
        )

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"
