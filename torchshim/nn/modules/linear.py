"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn import init
from torchshim.nn.modules._base import weight_and_bias
from torchshim.nn.modules.lazy import LazyModuleMixin
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter, UninitializedParameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


def new_parameter(shape: Any, device: Any, dtype: Any) -> Parameter:
    """A parameter that is to be initialised."""
    return Parameter(torchshim.empty(shape, device=device, dtype=dtype))


class Identity(Module):
    """Gives its input; takes and ignores any arguments. Follows ``torch.nn.Identity``.

    >>> from torchshim import nn
    >>> nn.Identity(54, unused=True)
    Identity()
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """``x @ weight.T + bias`` over the last dimension. Follows ``torch.nn.Linear``.

    >>> import torchshim as torch
    >>> m = torch.nn.Linear(20, 30)
    >>> m
    Linear(in_features=20, out_features=30, bias=True)
    >>> m(torch.zeros(128, 20)).shape
    torch.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]  # noqa: RUF012

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = new_parameter((out_features, in_features), device, dtype)
        if bias:
            self.bias = new_parameter(out_features, device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, between ``±1 / sqrt(in_features)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        init_bias(self.bias, self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, *weight_and_bias(self))

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def init_bias(bias: Tensor | None, weight: Tensor) -> None:
    """Draws a bias within one over the root of the weight's number of inputs."""
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


class NonDynamicallyQuantizableLinear(Linear):
    """A linear layer within attention, under PyTorch's name for it."""


class Bilinear(Module):
    """``x1 @ weight[k] @ x2 + bias[k]`` for each output. Follows ``nn.Bilinear``.

    >>> import torchshim as torch
    >>> m = torch.nn.Bilinear(20, 30, 40)
    >>> m(torch.zeros(128, 20), torch.zeros(128, 30)).shape
    torch.Size([128, 40])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]  # noqa: RUF012

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = out_features, in1_features, in2_features
        self.weight = new_parameter(shape, device, dtype)
        if bias:
            self.bias = new_parameter(out_features, device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, between ``±1 / sqrt(in1_features)``."""
        if self.in1_features <= 0:
            raise ValueError(
                f"in1_features must be > 0, but got (in1_features={self.in1_features})"
            )
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes `in_features` from its first input.

    >>> import torchshim as torch
    >>> m = torch.nn.LazyLinear(3)
    >>> m(torch.zeros(2, 5)).shape, m
    (torch.Size([2, 3]), Linear(in_features=5, out_features=3, bias=True))
    """

    cls_to_become = Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Gives weight and bias their shapes, and draws them."""
        if self.has_uninitialized_params():
            with torchshim.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not "
                    "equal to in_features from self.weight: "
                    f"{self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]
