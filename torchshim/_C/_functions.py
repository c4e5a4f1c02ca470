"""Nodes for tests: errors on the way back, gradients that do not arrive."""

from __future__ import annotations

from typing import Any

from torchshim._core.node import AccumulateGrad as AccumulateGrad
from torchshim.autograd.function import Function, built_in
from torchshim.autograd.graph import Node

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]


@built_in("Error")
class _Error(Function):
    @staticmethod
    def forward(ctx: Any, text: str, *values: Any) -> Any:
        ctx.text = text
        passed = tuple(None if v is None else v.detach() for v in values)
        return passed[0] if len(passed) == 1 else passed

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.text)


@built_in("UndefinedGradBackward")
class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, *values: Any) -> Any:
        ctx.count = len(values)
        passed = tuple(v.detach().clone() for v in values)
        return passed[0] if len(passed) == 1 else passed

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * ctx.count


@Node.register
class DelayedError:
    """Passes tensors on; their backward raises RuntimeError with this text."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        self._text = msg

    def __call__(self, *args: Any) -> Any:
        return _Error.apply(self._text, *args)


@Node.register
class UndefinedGrad:
    """Passes tensors on; their backward gives no gradients."""

    def __call__(self, *args: Any) -> Any:
        return _Undefined.apply(*args)
