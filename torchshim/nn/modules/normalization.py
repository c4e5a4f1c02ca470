"""Normalizations of each sample by itself."""

from __future__ import annotations

import numbers
from numbers import Number as Number
from typing import Any

from torchshim._core.meta import Size as Size
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn import init
from torchshim.nn.modules._base import weight_and_bias
from torchshim.nn.modules._functions import CrossMapLRN2d as _cross_map_lrn2d
from torchshim.nn.modules.linear import new_parameter
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter as Parameter

_shape_t = int | list[int] | Size

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divides each channel by a function of its neighbours' squares.

    Follows ``torch.nn.LocalResponseNorm``.

    >>> from torchshim import nn
    >>> nn.LocalResponseNorm(2)
    LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)
    """

    __constants__ = ["size", "alpha", "beta", "k"]  # noqa: RUF012

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """`LocalResponseNorm` as Lua's Torch had it, for (N, C, H, W).

    Follows ``torch.nn.CrossMapLRN2d``, whose windows keep the first channel.

    >>> from torchshim import nn
    >>> nn.CrossMapLRN2d(3)
    CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=1)
    """

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1
    ) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Tensor:
        sizes = self.size, self.alpha, self.beta, self.k
        return _cross_map_lrn2d.apply(input, *sizes)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, numbers.Integral) else tuple(shape)  # type: ignore[return-value]


class _Affine(Module):
    """A weight of ones and a bias of zeros, where they are asked for."""

    def _make_affine(
        self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, there in (("weight", weight), ("bias", weight and bias)):
            value = new_parameter(shape, device, dtype) if there else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Puts the weight to ones and the bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """The last dimensions of each sample to mean 0 and variance 1, scaled and shifted.

    `normalized_shape`: the sizes of those dimensions. Follows ``torch.nn.LayerNorm``.

    >>> import torchshim as torch
    >>> torch.nn.LayerNorm(2)(torch.tensor([1.0, 3.0])).tolist()[1] > 0.99
    True
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]  # noqa: RUF012

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_affine(
            self.normalized_shape, elementwise_affine, bias, device, dtype
        )

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = weight_and_bias(self)
        return F.layer_norm(input, self.normalized_shape, weight, bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(_Affine):
    """Groups of channels to mean 0 and variance 1, each channel scaled and shifted.

    ValueError where the groups do not divide the channels. Follows
    ``torch.nn.GroupNorm``.

    >>> import torchshim as torch
    >>> torch.nn.GroupNorm(3, 6)(torch.zeros(2, 6, 5, 5)).shape
    torch.Size([2, 6, 5, 5])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]  # noqa: RUF012

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_affine(num_channels, affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = weight_and_bias(self)
        return F.group_norm(input, self.num_groups, weight, bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The last dimensions of each sample divided by their root mean square, scaled.

    Follows ``torch.nn.RMSNorm``.

    >>> import torchshim as torch
    >>> torch.nn.RMSNorm(2)(torch.tensor([3.0, 3.0])).tolist()
    [1.0, 1.0]
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]  # noqa: RUF012

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = new_parameter(self.normalized_shape, device, dtype)
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Puts the weight to ones."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )
