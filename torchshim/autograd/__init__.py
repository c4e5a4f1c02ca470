"""Gradients of what tensors were used for.

https://docs.pytorch.org/docs/2.13/autograd.html
"""

from torchshim._functions import autograd as _methods
from torchshim._functions.backward import backward, grad
from torchshim.autograd import grad_mode, graph
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
    "Variable",
    "backward",
    "enable_grad",
    "grad",
    "grad_mode",
    "graph",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
