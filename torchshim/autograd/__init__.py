"""Gradients of what tensors were used for.

https://docs.pytorch.org/docs/2.13/autograd.html
"""

from torchshim._functions import autograd as _methods
from torchshim._functions.backward import backward, grad
from torchshim.autograd import function, grad_mode, graph
from torchshim.autograd.function import Function
from torchshim.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from torchshim.autograd.variable import Variable

assert _methods

__all__ = [
    "Function",
    "Variable",
    "backward",
    "enable_grad",
    "function",
    "grad",
    "grad_mode",
    "graph",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
