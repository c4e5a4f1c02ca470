"""Optimizers as functions of lists: `torch.optim.adam.adam` and its like.

Each makes its class's step, on the parameters, gradients and states that it is given.
"""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchshim._core.record import local
from torchshim._core.write import WRITTEN_LEAF
from torchshim._counter import no_counter
from torchshim._tensor import Tensor
from torchshim.optim._rules import RuleOptimizer

Tensors = list[Tensor]


def refuse_scaled(grad_scale: Any, found_inf: Any) -> None:
    """What fused kernels take from a `GradScaler`."""
    if grad_scale is not None or found_inf is not None:
        raise NotImplementedError(
            "grad_scale and found_inf are of PyTorch's fused kernels: unscale the "
            "gradients, and leave the step out where they are infinite"
        )


def step(
    cls: type[RuleOptimizer],
    params: Sequence[Any],
    grads: Sequence[Any],
    states: Mapping[str, list[Any]],
    state_steps: Sequence[Any] | None = None,
    *,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    **options: Any,
) -> None:
    """Makes one step of `cls` on `params`; `states` are its lists, by their names.

    RuntimeError where `state_steps` are no tensors, and where a leaf requires grad
    while gradients are recorded. A state that is None is made, and put into its list.
    """
    if state_steps is not None and not all(isinstance(t, Tensor) for t in state_steps):
        raise no_counter()
    if local.rec.grad and any(p._tmeta.requires_grad for p in params):
        if any(p._tmeta.requires_grad and p._tmeta.leaf for p in params):
            raise RuntimeError(WRITTEN_LEAF)
        differentiable = True
    group = {
        **{"foreach": foreach, "capturable": capturable, "fused": fused},
        **{"differentiable": differentiable, "params": list(params), **options},
    }
    optimizer = object.__new__(cls)
    optimizer.param_groups = [group]
    optimizer.state = defaultdict(dict)
    for i, param in enumerate(params):
        state = {name: values[i] for name, values in states.items() if values}
        if cls._some:
            state = {name: value for name, value in state.items() if value is not None}
        if state_steps is not None and len(state_steps):
            state["step"] = state_steps[i]
        optimizer.state[param] = state
    before = [param._grad for param in params]
    try:
        for param, grad in zip(params, grads, strict=True):
            param._grad = grad
        optimizer._step_group(group)
    finally:
        for param, grad in zip(params, before, strict=True):
            param._grad = grad
    for name, values in states.items():
        for i, param in enumerate(params):
            if values and values[i] is None:
                values[i] = optimizer.state[param].get(name)


_SCALED = ("grad_scale", "found_inf")
_CHOICES = ("foreach", "fused")
_RENAMED = {"d_p_list": "grads"}


def implementations(function: Callable[..., Any], *kinds: str) -> Callable[..., Any]:
    """The `__getattr__` of a module: `_single_tensor_adam` and its like.

    Few programs ask for them, and to make one takes longer than the rest of the module.
    """
    names = {f"_{kind}_{function.__name__}" for kind in kinds}

    @functools.cache
    def find(name: str) -> Any:
        if name not in names:
            module = function.__module__
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return _implementation(name, function)

    return find


def _implementation(called: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """What PyTorch's function chooses from.

    It takes the lists by position, the rest by name, and all of it must be given. All
    kinds do the same here.
    """
    known = inspect.signature(function).parameters
    lists: dict[str, str] = {}
    options: list[str] = []
    for name, parameter in known.items():
        is_list = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if is_list and parameter.default is parameter.empty:
            lists[name] = _RENAMED.get(name, name)
        elif name not in (*_SCALED, *_CHOICES):
            options.append(name)
    scaled = [name for name in _SCALED if name in known]
    new = inspect.Parameter
    signature = inspect.Signature(
        [new(n, new.POSITIONAL_OR_KEYWORD) for n in (*lists.values(), *scaled)]
        + [new(n, new.KEYWORD_ONLY) for n in options]
    )

    def implemented(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs).arguments
        function(*[given.pop(name) for name in lists.values()], **given)

    implemented.__name__ = implemented.__qualname__ = called
    implemented.__module__ = function.__module__
    implemented.__signature__ = signature
    return implemented
