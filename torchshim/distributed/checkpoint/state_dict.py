"""Parameters and optimizers' states by the names that they have in the model.

What wraps a model (`DistributedDataParallel`, `torch.compile`) does not show in the
names. Each process has whole tensors.

https://docs.pytorch.org/docs/2.13/distributed.checkpoint.html

>>> import torchshim as torch
>>> from torchshim.distributed.checkpoint.state_dict import get_optimizer_state_dict
>>> net = torch.nn.Linear(1, 1, bias=False)
>>> sgd = torch.optim.SGD(net.parameters(), lr=0.1)
>>> get_optimizer_state_dict(net, sgd)["param_groups"][0]["params"]
['weight']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torchshim
from torchshim import nn
from torchshim._dynamo.eval_frame import OptimizedModule
from torchshim._errors import warn
from torchshim._tensor import Tensor
from torchshim.distributed.checkpoint._optimizer_state import (
    flattened,
    initialized,
    part_for,
    unflattened,
)
from torchshim.distributed.utils import _apply_to_tensors
from torchshim.nn.modules._state_dict import _IncompatibleKeys
from torchshim.nn.parallel import DistributedDataParallel
from torchshim.optim import Optimizer

__all__ = [
    "FQNS_T",
    "DictValueType",
    "ListDictValueType",
    "OptimizerStateType",
    "PrimitiveType",
    "StateDictOptions",
    "ValueType",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

FQNS_T = set[str]
PrimitiveType = Tensor | int | float | str
ValueType = Any
DictValueType = dict[str, ValueType]
ListDictValueType = list[DictValueType]
OptimizerStateType = dict[str, Any]
Optimizers = Optimizer | Iterable[Optimizer]

_CHECKPOINT_PREFIX = "_checkpoint_wrapped_module."
_EXTRA_STATE = "_extra_state"


@dataclass
class StateDictOptions:
    """What state dicts have and how they are loaded."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


@dataclass
class _Info:
    """A call's options, and what the model's parameters are called."""

    options: StateDictOptions
    handle_model: bool
    handle_optim: bool
    # Of a parameter: its names; shared ones have several.
    names: dict[Tensor, list[str]] = field(default_factory=dict)
    prefixes: set[str] = field(default_factory=set)

    @property
    def may_be_empty(self) -> bool:
        options = self.options
        return (
            options.cpu_offload and options.full_state_dict
        ) or options.broadcast_from_rank0


def _name(model: nn.Module, key: str, wrapped: bool = False) -> str:
    """A key of the model's state dict without what wrappers add to it.

    `wrapped`: with what `DistributedDataParallel` and `torch.compile` add.
    """
    kept: list[str] = []
    current: Any = model
    for part in key.replace(_CHECKPOINT_PREFIX, "").split("."):
        around = isinstance(current, DistributedDataParallel) and part == "module"
        around |= isinstance(current, OptimizedModule) and part == "_orig_mod"
        if wrapped or not around:
            kept.append(part)
        current = getattr(current, part, None)
    return ".".join(kept)


def _state_of(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """The keys of the state dict with the model's own parameters and buffers."""
    seen: set[nn.Module] = set()

    def walk(module: nn.Module, prefix: str) -> Iterator[tuple[str, Any]]:
        seen.add(module)
        for name, child in module.named_children():
            if child not in seen:
                yield from walk(child, f"{prefix}{name}.")
        own = chain(
            module.named_buffers(recurse=False), module.named_parameters(recurse=False)
        )
        for name, value in own:
            if name not in module._non_persistent_buffers_set:
                yield prefix + name, value
        if type(module).get_extra_state is not nn.Module.get_extra_state:
            yield prefix + _EXTRA_STATE, None

    return walk(model, "")


def _verified(
    model: nn.Module,
    optimizers: tuple[Optimizer, ...],
    optim_only: bool,
    options: StateDictOptions | None,
    submodules: set[nn.Module] | None = None,
) -> _Info:
    if submodules:
        warn(
            "Getting submodules only model/optim state_dict is deprecated and will be "
            "removed in 2.5. This feature can be achieved by manually filtering out "
            "the state_dict returned from get_state_dict.",
            FutureWarning,
        )
    if optim_only and not optimizers:
        raise RuntimeError(
            "Optimizers are not passed in but optim_only is set to True."
        )
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError(
            "full_state_dict must be True when broadcast_from_rank0 is True."
        )
    info = _Info(options, not optim_only, bool(optimizers))
    for key, value in _state_of(model):
        if value is not None:
            info.names.setdefault(value, []).append(_name(model, key))
    for key, module in model.named_modules():
        if module in (submodules or ()):
            info.prefixes.add(f"{_name(model, key)}.")
    return info


def _check(model_state: Any, optim_state: Any, info: _Info) -> None:
    options = info.options
    if (
        info.handle_model
        and not (model_state or info.prefixes or options.ignore_frozen_params)
        and options.strict
        and not info.may_be_empty
    ):
        raise RuntimeError(
            "The option indicates that model state_dict is required to save or load, "
            "but model state_dict is empty."
            f"rank = dist.get_rank()={torchshim.distributed.get_rank()}."
        )
    if info.handle_optim and not optim_state and not info.may_be_empty:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, or load "
            f"but optim state_dict is empty. {optim_state}"
        )


def _given(state: Any, info: _Info) -> Any:
    """What is given out, on the host if that is asked for."""
    if not info.options.cpu_offload:
        return state
    return _apply_to_tensors(lambda x: x.to("cpu"), state)


@torchshim.no_grad()
def _model_state(model: nn.Module, info: _Info) -> dict[str, Any]:
    if not info.handle_model:
        return {}
    state = model.state_dict()
    for key in list(state):
        name = _name(model, key)
        if name != key:
            state[name] = state.pop(key)
    if info.prefixes:
        keep = info.options.keep_submodule_prefixes
        state = {
            key if keep else key.removeprefix(prefix): value
            for key, value in state.items()
            for prefix in info.prefixes
            if key.startswith(prefix)
        }
    if info.options.ignore_frozen_params:
        for key, param in model.named_parameters():
            if not param.requires_grad:
                state.pop(_name(model, key))
    return _given(state, info)


@torchshim.no_grad()
def _load_model_state(
    model: nn.Module, state: dict[str, Any], info: _Info
) -> _IncompatibleKeys:
    if not info.handle_model or not state:
        return _IncompatibleKeys({}, {})  # type: ignore[arg-type]
    on_meta = False
    for key, value in _state_of(model):
        name, wrapped = _name(model, key), _name(model, key, wrapped=True)
        if name != wrapped:
            if name in state:
                state[wrapped] = state.pop(name)
            elif info.options.strict:
                raise RuntimeError(f"Missing key: {name}.")
        on_meta |= value is not None and value.dim() > 0 and value.is_meta
    assign = on_meta and info.options.full_state_dict
    return model.load_state_dict(state, strict=info.options.strict, assign=assign)


@torchshim.no_grad()
def _optim_state(
    model: nn.Module, optimizers: tuple[Optimizer, ...], info: _Info
) -> OptimizerStateType:
    if not info.handle_optim:
        return {}
    found: OptimizerStateType = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        initialized(optimizer)
        state = optimizer.state_dict()
        params = chain.from_iterable(g["params"] for g in optimizer.param_groups)
        numbers = {param: i for i, param in enumerate(params)}
        names = {
            numbers[param]: _name(model, key)
            for key, param in model.named_parameters()
            if param in numbers
        }
        for number, own in state["state"].items():
            found["state"][names[number]] = own
        for group in state["param_groups"]:
            group["params"] = [names[number] for number in group["params"]]
            found["param_groups"].append(group)
    if info.options.flatten_optimizer_state_dict:
        found = flattened(found)
    return _given(found, info)


@torchshim.no_grad()
def _load_optim_state(
    optimizers: tuple[Optimizer, ...], state: OptimizerStateType, info: _Info
) -> None:
    for optimizer in optimizers if info.handle_optim else ():
        initialized(optimizer)
        own: OptimizerStateType = {}
        if "state" in state:
            own = part_for(optimizer, state, info.names, info.options.strict)
        elif state:
            own = unflattened(optimizer, state, info.names)
        optimizer.load_state_dict(own)


def _several(optimizers: Optimizers) -> tuple[Optimizer, ...]:
    single = isinstance(optimizers, Optimizer)
    return (optimizers,) if single else tuple(optimizers)


def get_model_state_dict(
    model: nn.Module,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, ValueType]:
    """The model's state dict, with names as without wrappers."""
    info = _verified(model, (), False, options, submodules)
    state = _model_state(model, info)
    _check(state, {}, info)
    return state


def get_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> OptimizerStateType:
    """The states of optimizers by the names of parameters."""
    several = _several(optimizers)
    info = _verified(model, several, True, options, submodules)
    state = _optim_state(model, several, info)
    _check({}, state, info)
    return state


def get_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, ValueType], OptimizerStateType]:
    """The state dicts of a model and of its optimizers."""
    several = _several(optimizers)
    info = _verified(model, several, False, options, submodules)
    state, optim_state = _model_state(model, info), _optim_state(model, several, info)
    _check(state, optim_state, info)
    return state, optim_state


def _whole(model: nn.Module, state: Any) -> dict[str, ValueType]:
    """A model's state dict, also if it was given as those of submodules."""
    if not state or not isinstance(next(iter(state)), nn.Module):
        return state or {}
    warn(
        "Passing model_state_dict as a ``Dict[nn.Module, Dict[str, Any]]``is "
        "deprecated and will be removed in 2.5. If you need this feature, please "
        "preprocess the model_state_dict to achieve the same functionality.",
        FutureWarning,
    )
    return {
        f"{_name(model, key)}.{name}": value
        for submodule, own in state.items()
        for key, module in model.named_modules()
        if module is submodule
        for name, value in own.items()
    }


def set_model_state_dict(
    model: nn.Module,
    model_state_dict: dict[str, ValueType],
    *,
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Loads what `get_model_state_dict` gave; what is missing and what was too much."""
    state = _whole(model, model_state_dict)
    info = _verified(model, (), False, options)
    _check(state, {}, info)
    return _load_model_state(model, state, info)


def set_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    optim_state_dict: OptimizerStateType,
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads what `get_optimizer_state_dict` gave."""
    several = _several(optimizers)
    info = _verified(model, several, True, options)
    _check({}, optim_state_dict, info)
    _load_optim_state(several, optim_state_dict, info)


def set_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    model_state_dict: dict[str, ValueType],
    optim_state_dict: OptimizerStateType,
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Loads what `get_state_dict` gave."""
    state = _whole(model, model_state_dict)
    several = _several(optimizers)
    info = _verified(model, several, not state, options)
    _check(state, optim_state_dict, info)
    _load_optim_state(several, optim_state_dict, info)
    return _load_model_state(model, state, info)
