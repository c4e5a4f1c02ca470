"""Convolutions and transposed convolutions."""

from __future__ import annotations

import functools
import math
from types import FunctionType
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn import init
from torchshim.nn.common_types import _size_1_t as _size_1_t
from torchshim.nn.common_types import _size_2_t as _size_2_t
from torchshim.nn.common_types import _size_3_t as _size_3_t
from torchshim.nn.modules._base import weight_and_bias
from torchshim.nn.modules._own import of_each
from torchshim.nn.modules.lazy import LazyModuleMixin as LazyModuleMixin
from torchshim.nn.modules.linear import init_bias, new_parameter
from torchshim.nn.modules.module import Module
from torchshim.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from torchshim.nn.modules.utils import _pair as _pair
from torchshim.nn.modules.utils import _single as _single
from torchshim.nn.modules.utils import _triple as _triple
from torchshim.nn.parameter import Parameter
from torchshim.nn.parameter import UninitializedParameter as UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]


class _ConvNd(Module):
    __constants__ = [  # noqa: RUF012
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    # Number of spatial dimensions, and the function.
    _dims: int
    _function: str

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            names = {"same", "valid"}
            if padding not in names:
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {names}"
                )
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError(
                    "padding='same' is not supported for strided convolutions"
                )
        modes = {"zeros", "reflect", "replicate", "circular"}
        if padding_mode not in modes:
            raise ValueError(
                f"padding_mode must be one of {modes}, but got "
                f"padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pads()
        if transposed:
            channels = in_channels, out_channels // groups
        else:
            channels = out_channels, in_channels // groups
        self.weight = new_parameter((*channels, *kernel_size), device, dtype)
        if bias:
            self.bias = new_parameter(out_channels, device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pads(self) -> Any:
        """The padding in the form that `F.pad` takes."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        pads: list[int] = []
        sizes = zip(self.dilation, self.kernel_size, strict=True)
        for d, k in reversed(list(sizes)):
            total = d * (k - 1) if self.padding == "same" else 0
            pads += [total // 2, total - total // 2]
        return pads

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, within one over the root of a kernel's inputs."""
        with torchshim.no_grad():
            weight = self.weight
            if weight.is_contiguous():
                init.kaiming_uniform_(weight, a=math.sqrt(5))
            else:
                # Random numbers are drawn in the order of the dimensions.
                drawn = torchshim.empty_like(
                    weight, memory_format=torchshim.contiguous_format
                )
                weight.copy_(init.kaiming_uniform_(drawn, a=math.sqrt(5)))
            init_bias(self.bias, weight)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}"
        ]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "padding_mode"):
            self.padding_mode = "zeros"


def _own_errors(cls: Any) -> Any:
    """Lets errors about the arguments of a class name it, not where they stand."""
    init = cls.__init__
    name = f"{cls.__name__}.__init__"
    made = FunctionType(
        init.__code__.replace(co_qualname=name),
        init.__globals__,
        "__init__",
        init.__defaults__,
        init.__closure__,
    )
    cls.__init__ = functools.wraps(init)(made)
    del made.__wrapped__
    made.__qualname__ = name
    return cls


class _Conv(_ConvNd):
    """A convolution; sizes are one number, or one for each dimension."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            padding if isinstance(padding, str) else sizes(padding),
            sizes(dilation),
            False,
            sizes(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Any) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(
                input, self._reversed_padding_repeated_twice, mode=self.padding_mode
            )
            padding = (0,) * self._dims
        return getattr(F, self._function)(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )

    @of_each
    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, *weight_and_bias(self))


@_own_errors
class Conv1d(_Conv):
    """A convolution over sequences: (N, C, L) or (C, L). Follows ``torch.nn.Conv1d``.

    >>> import torchshim as torch
    >>> m = torch.nn.Conv1d(16, 33, 3, stride=2)
    >>> m(torch.zeros(20, 16, 50)).shape
    torch.Size([20, 33, 24])
    """

    _dims = 1
    _function = "conv1d"


@_own_errors
class Conv2d(_Conv):
    """A convolution over images: (N, C, H, W) or (C, H, W). Follows ``nn.Conv2d``.

    >>> import torchshim as torch
    >>> m = torch.nn.Conv2d(3, 8, 3, padding=1)
    >>> m
    Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> m(torch.zeros(2, 3, 5, 5)).shape
    torch.Size([2, 8, 5, 5])
    """

    _dims = 2
    _function = "conv2d"


@_own_errors
class Conv3d(_Conv):
    """A convolution over volumes: (N, C, D, H, W) or (C, D, H, W).

    >>> import torchshim as torch
    >>> torch.nn.Conv3d(2, 4, 3)(torch.zeros(1, 2, 5, 5, 5)).shape
    torch.Size([1, 4, 3, 3, 3])
    """

    _dims = 3
    _function = "conv3d"


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution, as a layer."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}'
            )
        sizes = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            sizes(padding),
            sizes(dilation),
            True,
            sizes(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:
        """The padding of the output that gives it the size asked for."""
        if output_size is None:
            return self.output_padding
        dims = num_spatial_dims
        others = 2 if input.ndim == dims + 2 else 1
        if len(output_size) == others + dims:
            output_size = output_size[others:]
        if len(output_size) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.ndim}D input, output_size must have "
                f"{dims} or {others + dims} elements (got {len(output_size)})"
            )
        least = [
            (input.shape[d + others] - 1) * stride[d]
            - 2 * padding[d]
            + (1 if dilation is None else dilation[d]) * (kernel_size[d] - 1)
            + 1
            for d in range(dims)
        ]
        most = [size + stride[d] - 1 for d, size in enumerate(least)]
        for size, low, high in zip(output_size, least, most, strict=True):
            if not low <= size <= high:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range "
                    f"from {least} to {most} (for an input of {input.shape[2:]})"
                )
        return [size - low for size, low in zip(output_size, least, strict=True)]

    @of_each
    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        if self.padding_mode != "zeros":
            raise ValueError(
                f"Only `zeros` padding mode is supported for ConvTranspose{self._dims}d"
            )
        output_padding = self._output_padding(
            input,
            output_size,
            self.stride,
            self.padding,
            self.kernel_size,
            self._dims,
            self.dilation,
        )
        return getattr(F, self._function)(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )


@_own_errors
class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution over sequences. Follows ``torch.nn.ConvTranspose1d``.

    >>> import torchshim as torch
    >>> torch.nn.ConvTranspose1d(2, 4, 3, stride=2)(torch.zeros(1, 2, 5)).shape
    torch.Size([1, 4, 11])
    """

    _dims = 1
    _function = "conv_transpose1d"


@_own_errors
class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over images. Follows ``torch.nn.ConvTranspose2d``.

    >>> import torchshim as torch
    >>> m = torch.nn.ConvTranspose2d(2, 4, 3, stride=2)
    >>> m(torch.zeros(1, 2, 5, 5), output_size=[12, 12]).shape
    torch.Size([1, 4, 12, 12])
    """

    _dims = 2
    _function = "conv_transpose2d"


@_own_errors
class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution over volumes. Follows ``torch.nn.ConvTranspose3d``.

    >>> import torchshim as torch
    >>> torch.nn.ConvTranspose3d(2, 4, 3)(torch.zeros(1, 2, 5, 5, 5)).shape
    torch.Size([1, 4, 7, 7, 7])
    """

    _dims = 3
    _function = "conv_transpose3d"


class _ConvTransposeMixin(_ConvTransposeNd):
    """The old name of what transposed convolutions have in common."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`_ConvTransposeMixin` is a deprecated internal class. Please consider "
            "using public APIs.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)
