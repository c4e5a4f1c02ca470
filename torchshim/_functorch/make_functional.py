"""Modules as functions of tuples of parameters: what `functorch` offered."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torchshim._derived import fns
from torchshim._tensor import Tensor
from torchshim.func import functional_call
from torchshim.nn import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_init",
    "functional_init_with_buffers",
    "make_functional",
    "make_functional_with_buffers",
]

Tensors = tuple[Tensor, ...]


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and buffers."""

    def __init__(
        self, stateless_model: Module, params: Sequence[str], buffers: Sequence[str]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(params)
        self.buffer_names = tuple(buffers)

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
        names, params, table = _taken(model, disable_autograd_tracking)
        buffers = dict(model.named_buffers())
        made = FunctionalModuleWithBuffers(table, names, list(buffers))
        return made, params, tuple(buffers.values())

    def forward(
        self,
        params: Iterable[Tensor],
        buffers: Iterable[Tensor],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """What the module gives with these."""
        state = dict(zip(self.param_names, params, strict=True))
        state |= dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(Module):
    """A module that is called with its parameters."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModule, Tensors]:
        names, params, table = _taken(model, disable_autograd_tracking)
        return FunctionalModule(table, names), params

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these."""
        state = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


def _taken(model: Module, untracked: bool) -> tuple[list[str], Tensors, Module]:
    """The names and values of a module's parameters, and a copy without values."""
    table = copy.deepcopy(model)
    named = dict(model.named_parameters())
    for each in table.parameters():
        each.requires_grad_(False)
    values: list[Tensor] = list(named.values())
    if untracked:
        values = [p.detach() for p in values]
    return list(named), tuple(values), table


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, Tensors]:
    """(function, parameters) of a module without buffers; RuntimeError with some."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """(function, parameters, buffers) of a module."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """(function, parameters, buffers) of models of one class, stacked."""
    if len(models) == 0:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected at least one model, got 0."
        )
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same "
            "training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to be of the same class."
        )
    made = [make_functional_with_buffers(model) for model in models]
    return made[0][0], _stacked(m[1] for m in made), _stacked(m[2] for m in made)


def _stacked(rows: Iterable[Tensors]) -> Tensors:
    return tuple(fns.stack(list(column)).detach() for column in zip(*rows, strict=True))


def functional_init(
    model_class: Callable[..., Module],
    ensemble_shape: tuple[int, ...] = (),
    device: Any = "cpu",
) -> Callable[..., Any]:
    """A function that makes models: (weights, function, names).

    The function takes the weights and a tuple of arguments; `ensemble_shape` of one
    number stacks the weights of so many models.
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        made = _several(model_class, ensemble_shape, device, args, kwargs)
        pairs = [make_functional(model) for model in made]
        function = pairs[0][0]
        weights = [params for _, params in pairs]
        chosen = _stacked(weights) if ensemble_shape else weights[0]
        return chosen, lambda w, data: function(w, *data), function.param_names

    return wrapped


def functional_init_with_buffers(
    model_class: Callable[..., Module],
    ensemble_shape: tuple[int, ...] = (),
    device: Any = "cpu",
) -> Callable[..., Any]:
    """`functional_init` for models with buffers.

    Gives (weights, buffers, function, names of weights, names of buffers); the function
    takes weights, buffers and a tuple of arguments.
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        made = _several(model_class, ensemble_shape, device, args, kwargs)
        parts = [make_functional_with_buffers(model) for model in made]
        function = parts[0][0]
        weights, buffers = [p[1] for p in parts], [p[2] for p in parts]
        return (
            _stacked(weights) if ensemble_shape else weights[0],
            _stacked(buffers) if ensemble_shape else buffers[0],
            lambda w, b, data: function(w, b, *data),
            function.param_names,
            function.buffer_names,
        )

    return wrapped


def _several(
    model_class: Callable[..., Module],
    shape: tuple[int, ...],
    device: Any,
    args: Any,
    kwargs: Any,
) -> list[Module]:
    if len(shape) >= 2:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    if shape and shape[0] <= 0:
        raise ValueError(f"num_models {shape[0]} should be > 0")
    count = shape[0] if shape else 1
    return [model_class(*args, **kwargs).to(device) for _ in range(count)]
