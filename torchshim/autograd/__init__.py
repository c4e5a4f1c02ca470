"""Gradients of what tensors were used for.

https://docs.pytorch.org/docs/2.13/autograd.html
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from torchshim._functions import autograd as _methods
from torchshim._functions.backward import _given as _tensor_or_tensors_to_tuple
from torchshim._functions.backward import backward, grad, make_grads
from torchshim._functions.backward import edge_meta as _edge_meta
from torchshim._functions.saved_values import SavedTensor as SavedTensor
from torchshim.autograd import _without_data as _without_data
from torchshim.autograd import (
    anomaly_mode,
    forward_ad,
    function,
    functional,
    grad_mode,
    graph,
)
from torchshim.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from torchshim.autograd.function import Function, NestedIOFunction
from torchshim.autograd.grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from torchshim.autograd.gradcheck import gradcheck, gradgradcheck
from torchshim.autograd.variable import Variable

assert _methods and _tensor_or_tensors_to_tuple
_make_grads = make_grads

assert anomaly_mode
assert is_multithreading_enabled and is_view_replay_enabled
assert _force_original_view_tracking and _unsafe_preserve_version_counter

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
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

# Submodules that are imported when they are first used.
_LAZY = ("profiler", "profiler_util")
_OF_THE_PROFILER = ("_disable_profiler", "_profiler_enabled")


def variable(*args: _Any, **kwargs: _Any) -> _Any:
    """Once what `torch.tensor` is; RuntimeError."""
    raise RuntimeError(
        "torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead"
    )


def kineto_available() -> bool:
    """Whether the profiler is there: yes."""
    return True


def _calculate_shape(
    output: _Any, grad: _Any, is_grads_batched: bool
) -> tuple[_Any, _Any]:
    """The shapes of an output and of its gradient, for one of a batch of gradients."""
    if isinstance(output, graph.GradientEdge):
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        return _edge_meta(output).shape, grad.shape
    if output.is_nested and output.layout.name == "strided":
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with Nested Tensor.")
        return output._nested_tensor_size(), grad._nested_tensor_size()
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    if name in _OF_THE_PROFILER:
        return getattr(_import_module(f"{__name__}.profiler"), name)
    if name == "DeviceType":
        return _import_module(f"{__name__}.profiler_util").DeviceType
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
