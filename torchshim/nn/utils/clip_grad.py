"""Gradients kept small."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar
from typing import cast as cast

import torchshim
from torchshim import _warnings as warnings
from torchshim._core.op import REGISTRY
from torchshim._core.record import local
from torchshim._core.storage import check_apart
from torchshim._derived import fns
from torchshim._errors import check_tensors
from torchshim._tensor import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


_tensor_or_tensors = Tensor | Iterable[Tensor]
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _no_grad(func: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that records no history."""

    @functools.wraps(func)
    def _no_grad_wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with torchshim.no_grad():
            return func(*args, **kwargs)

    return _no_grad_wrapper


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients so that their norm together is at most `max_norm`.

    Gives the norm as it was. RuntimeError for one that is not finite, where asked for.
    Follows ``torch.nn.utils.clip_grad_norm_``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> clip_grad_norm_(p, max_norm=2.5)
    tensor(5.)
    >>> p.grad
    tensor([1.5000, 2.0000])
    """
    if not isinstance(parameters, Tensor):
        generator = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if generator and not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.",
                stacklevel=2,
            )
    grads = _grads(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    _scale(grads, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together. Follows ``torch.nn.utils.get_total_norm``.

    >>> import torchshim as torch
    >>> get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torchshim.tensor(0.0)
    with torchshim.no_grad():
        total = fns.total_norm(_on_one_device(tensors), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped. To disable this error and scale the "
            "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales gradients whose norm together is known to be `total_norm`.

    Follows ``torch.nn.utils.clip_grads_with_norm_``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> clip_grads_with_norm_(p, 2.5, torch.tensor(5.0))
    >>> p.grad
    tensor([1.5000, 2.0000])
    """
    _scale(_grads(parameters), max_norm, total_norm)


_get_total_norm = get_total_norm
_clip_grads_with_norm_ = clip_grads_with_norm_


def clip_grad_value_(
    parameters: Any, clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps each element of the gradients to ±`clip_value`.

    Follows ``torch.nn.utils.clip_grad_value_``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, -4.0])
    >>> clip_grad_value_(p, 3.5)
    >>> p.grad
    tensor([ 3.0000, -3.5000])
    """
    bound = float(clip_value)
    grads = _grads(parameters)
    check_tensors("nested_tensorlist[0]", grads)
    with torchshim.no_grad():
        for grad in grads:
            grad.clamp_(min=-bound, max=bound)


def _grads(parameters: Any) -> list[Any]:
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def _on_one_device(tensors: Iterable[Any]) -> tuple[Any, ...]:
    tensors = tuple(tensors)
    device = tensors[0].device
    return tuple(t if t.device == device else t.to(device) for t in tensors)


def _scale(grads: list[Any], max_norm: float, total: Any) -> None:
    """Scales gradients by one number, in one event a device."""
    rec = local.rec
    max_norm = float(max_norm)
    by_device: dict[Any, list[Any]] = {}
    for grad in grads:
        by_device.setdefault(grad.device, []).append(grad)
    with torchshim.no_grad():
        for device, group in by_device.items():
            norm = total if total.device == device else total.to(device)
            while group:
                # What is there twice, or shows the same memory, is scaled twice.
                distinct = {id(grad._storage or grad): grad for grad in reversed(group)}
                targets = [*reversed(distinct.values())]
                for each in targets:
                    if each._storage is not None:
                        check_apart(each, ())
                args = [tuple(targets), norm, max_norm]
                rec.mutate(REGISTRY["clip_by_norm"], args, targets)
                if len(targets) == len(group):
                    break
                for grad in targets:
                    del group[[id(g) for g in group].index(id(grad))]
