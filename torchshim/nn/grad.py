"""Gradients of convolutions, as `torch.nn.grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules.utils import _pair as _pair
from torchshim.nn.modules.utils import _single as _single
from torchshim.nn.modules.utils import _triple as _triple


def _gradients(name: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def gradient(
        other: Tensor, size: Sequence[int], grad: Tensor, first: bool, args: Any
    ) -> Tensor:
        wanted = torchshim.zeros(size, dtype=grad.dtype, device=grad.device)
        recorded = torchshim.is_grad_enabled()
        with torchshim.enable_grad():
            wanted.requires_grad_()
            pair = (wanted, other) if first else (other, wanted)
            output = getattr(F, name)(*pair, None, *args)
            return torchshim.autograd.grad(output, wanted, grad, create_graph=recorded)[
                0
            ]

    def of_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        args = stride, padding, dilation, groups
        return gradient(weight, input_size, grad_output, True, args)

    def of_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        args = stride, padding, dilation, groups
        return gradient(input, weight_size, grad_output, False, args)

    of_input.__name__ = of_input.__qualname__ = f"{name}_input"
    of_input.__doc__ = f"The gradient of `{name}` with respect to its input."
    of_weight.__name__ = of_weight.__qualname__ = f"{name}_weight"
    of_weight.__doc__ = f"The gradient of `{name}` with respect to its weight."
    return of_input, of_weight


conv1d_input, conv1d_weight = _gradients("conv1d")
conv2d_input, conv2d_weight = _gradients("conv2d")
conv3d_input, conv3d_weight = _gradients("conv3d")
