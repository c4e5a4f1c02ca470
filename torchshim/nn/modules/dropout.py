"""Dropout."""

from __future__ import annotations

from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules._own import of_each
from torchshim.nn.modules.module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]  # noqa: RUF012

    _function: str

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(
                f"dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"

    @of_each
    def forward(self, input: Tensor) -> Tensor:
        function = getattr(F, self._function)
        return function(input, self.p, self.training, self.inplace)


class Dropout(_DropoutNd):
    """In training, zeroes each element with probability `p` and scales the others.

    ValueError for a `p` outside [0, 1]. Follows ``torch.nn.Dropout``.

    >>> import torchshim as torch
    >>> torch.nn.Dropout(1.0)(torch.ones(2)).tolist()
    [0.0, 0.0]
    """

    _function = "dropout"


class Dropout1d(_DropoutNd):
    """As `Dropout`, for whole channels of (N, C, L). Follows ``nn.Dropout1d``."""

    _function = "dropout1d"


class Dropout2d(_DropoutNd):
    """As `Dropout`, for whole channels of (N, C, H, W). Follows ``nn.Dropout2d``."""

    _function = "dropout2d"


class Dropout3d(_DropoutNd):
    """As `Dropout`, for whole channels of (N, C, D, H, W). Follows ``nn.Dropout3d``."""

    _function = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance, for `SELU`. Follows ``nn.AlphaDropout``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """As `AlphaDropout`, for whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
