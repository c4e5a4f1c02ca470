"""What optimizers that are written by hand take from `torch.optim.optimizer`.

PyTorch's own are made of these, and so are their published variants.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import torchshim
from torchshim._core.dtypes import dtype, float32, float64, get_default_dtype
from torchshim._tensor import Tensor
from torchshim.utils._foreach_utils import (
    _foreach_supported_types,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
)

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
StateDict = dict[str, Any]
DeviceDict = dict[Hashable, Tensor]
DeviceDtypeDict = dict[Hashable, Tensor]

_params_doc = """params (iterable): the parameters, pairs of a name and a parameter, or
            dicts that each define a group."""
_foreach_doc = """foreach (bool, optional): whether a step works on lists of tensors.
            Here it is one program in any case (default: None)"""
_fused_doc = """fused (bool, optional): whether a step is one kernel. Here it is one
            program in any case (default: None)"""
_capturable_doc = """capturable (bool, optional): whether a step can be captured in a
            graph, for which its count stays on the accelerator (default: False)"""
_differentiable_doc = """differentiable (bool, optional): whether gradients flow through
            a step (default: False)"""
_maximize_doc = """maximize (bool, optional): whether the objective is to grow
            (default: False)"""


def _get_value(x: Any) -> Any:
    """The number of a tensor; anything else as it is."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions; anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """The list itself: nothing is compiled by its source here."""
    return x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Puts views of real numbers in the places of complex parameters, in all lists."""
    for i, param in enumerate(params):
        if torchshim.is_complex(param):
            for each in (params, *state_and_grads):
                each[i] = torchshim.view_as_real(each[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> dtype:
    """The dtype of a count of steps."""
    double = get_default_dtype() is float64 and not is_fused
    return float64 if double else float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Types of devices on which `capturable` is allowed."""
    devices = ["cuda", "xpu", "hpu", "privateuseone"]
    return [*devices, "xla"] if supports_xla else devices


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator whose functions do the same: no bytecode is compiled here."""

    def wrapper(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def maybe_fallback(*args: Any, **kwargs: Any) -> Any:
            return func(*args, **kwargs)

        return maybe_fallback

    return wrapper


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether PyTorch would take its fused, and its foreach, implementation.

    https://docs.pytorch.org/docs/2.13/optim.html#algorithms
    """
    if differentiable:
        return False, False

    def all_on(devices: list[str], floating: bool) -> bool:
        return all(
            p is None
            or (
                type(p) in _foreach_supported_types
                and p.device.type in devices
                and (not floating or torchshim.is_floating_point(p))
            )
            for p in params
        )

    fused = use_fused and all_on(_get_fused_kernels_supported_devices(), True)
    return fused, not fused and all_on(_get_foreach_kernels_supported_devices(), False)


def _device_dtype_check_for_fused(p: Any, cuda_unsupported: bool = False) -> None:
    """RuntimeError for a parameter that PyTorch's fused kernels do not take."""
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if p.device.type not in devices or not torchshim.is_floating_point(p):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of "
            f"supported devices: {devices} but {p.dtype} and {p.device.type}"
        )
