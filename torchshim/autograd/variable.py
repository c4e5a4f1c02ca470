"""`Variable`: the name that tensors with history once had."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from torchshim._arguments import type_name
from torchshim._core.walk import walking
from torchshim._errors import warn
from torchshim._tensor import Tensor

__all__ = ["Variable", "VariableMeta"]


class ImperativeEngine:
    """What programs ask of the engine that walks back."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Has a function called when the running backward is done.

        RuntimeError outside of one.
        """
        stack = walking.stack
        if not stack:
            raise RuntimeError(
                "Final callbacks can only be installed during backward pass."
            )
        walk = stack[-1]
        if walk.at_end is None:
            walk.at_end = []
        walk.at_end.append(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether the running backward, if there is one, fills `.grad` of leaves."""
        stack = walking.stack
        return not stack or bool(stack[-1].accumulate)


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

    _execution_engine = ImperativeEngine()

    def __new__(
        cls,
        data: Any = None,
        requires_grad: bool = False,
        volatile: Any = None,
        _grad_fn: Any = None,
        name: str | None = None,
        **others: Any,
    ) -> Any:
        for each in others:
            raise TypeError(
                f"'{each}' is an invalid keyword argument for this function"
            )
        if not isinstance(name, str | None):
            raise TypeError(
                f"argument 5 must be str or None, not {type(name).__name__}"
            )
        if _grad_fn is not None:  # PyTorch's own nodes are refused as well
            raise TypeError(
                "_grad_fn has to be a Function object or None, but got "
                f"{type_name(_grad_fn)}"
            )
        if volatile:
            warn(
                "volatile was removed and now has no effect. Use `with "
                "torch.no_grad():` instead."
            )
            if requires_grad:
                raise ValueError(
                    "Variable can't be volatile and require_grad at the same time!"
                )
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Variable data has to be a tensor, but got {type_name(data)}"
            )
        tensor: Any = data.detach()
        if operator.index(requires_grad):
            if not (tensor.is_floating_point() or tensor.is_complex()):
                raise RuntimeError(
                    "Only Tensors of floating point and complex dtype can require "
                    "gradients"
                )
            tensor.requires_grad_()
        return tensor
