"""Gradients of what tensors were used for.

https://docs.pytorch.org/docs/2.13/autograd.html
"""

from torchshim._functions import autograd as _methods
from torchshim._functions.backward import backward
from torchshim._functions.backward import grad as _grad
from torchshim._overrides import overridable as _overridable
from torchshim.autograd import (
    anomaly_mode,
    forward_ad,
    function,
    functional,
    grad_mode,
    graph,
    variable,
)
from torchshim.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from torchshim.autograd.function import Function, NestedIOFunction
from torchshim.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from torchshim.autograd.gradcheck import gradcheck, gradgradcheck
from torchshim.autograd.variable import Variable

assert _methods

assert anomaly_mode and variable

grad = _overridable(_grad, "torch.autograd", python=True)

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
