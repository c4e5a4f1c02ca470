"""`Variable`: the name that tensors with history once had."""

from __future__ import annotations

from typing import Any

from torchshim._tensor import Tensor

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """Makes every tensor an instance of `Variable`."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """Calling it gives a tensor that shares the data of the one it is given.

    https://docs.pytorch.org/docs/2.13/autograd.html#variable-deprecated

    >>> import torchshim as torch
    >>> Variable(torch.tensor(1.0), requires_grad=True)
    tensor(1., requires_grad=True)
    """

    def __new__(
        cls, data: Any, requires_grad: bool = False, volatile: Any = None
    ) -> Any:
        tensor = data.detach()
        if requires_grad:
            tensor.requires_grad_()
        return tensor
