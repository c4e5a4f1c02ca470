"""A tensor with a history on the device meta: no gradient comes back from there."""

from __future__ import annotations

from typing import Any, NoReturn

from torchshim._functions import convert
from torchshim._tensor import Tensor
from torchshim.autograd.function import Function, built_in


@built_in("ToCopyBackward0")
class _ToCopy(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> NoReturn:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def _with_history(tensor: Tensor) -> Tensor:
    """A tensor of the device meta, as a copy of one elsewhere that requires grad.

    An event has one device: the history begins here, and a gradient ends in PyTorch's
    error before it would leave.
    """
    return _ToCopy.apply(tensor.requires_grad_())


convert.with_history.append(_with_history)
