"""Optimizers as functions of lists: `torch.optim.adam.adam` and its like."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from tests.oracle import attempt, case

NAMES = (
    *("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam"),
    *("rmsprop", "rprop", "sgd"),
)
BETAS = {"beta1": 0.9, "beta2": 0.99}
DECAY = {"lr": 0.1, "weight_decay": 0.01}
# The states of each function in their order (by the number that they begin as; "lr" and
# None as such), and its keywords.
SPECIFIED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "adadelta": ([0.0, 0.0], {**DECAY, "rho": 0.9, "eps": 1e-6, "maximize": False}),
    "adagrad": ([0.0], {**DECAY, "lr_decay": 0.1, "eps": 1e-6, "maximize": True}),
    "adam": ([0.0] * 3, {**DECAY, **BETAS, "amsgrad": True, "maximize": False}),
    "adamax": ([0.0, 0.0], {**DECAY, **BETAS, "eps": 1e-8}),
    "adamw": ([0.0] * 3, {**DECAY, **BETAS, "amsgrad": False, "maximize": False}),
    "asgd": ([0.0, 1.0, 0.1], {**DECAY, "lambd": 0.1, "t0": 1.0, "alpha": 0.75}),
    "nadam": ([0.0, 0.0, 1.0], {**DECAY, **BETAS, "eps": 1e-8, "momentum_decay": 4e-3}),
    "radam": ([0.0, 0.0], {**DECAY, **BETAS, "eps": 1e-8}),
    "rmsprop": ([0.0] * 3, {**DECAY, "alpha": 0.9, "eps": 1e-8, "momentum": 0.9}),
    "rprop": ([0.0, 0.1], {"etaminus": 0.5, "etaplus": 1.2}),
    "sgd": ([None], {**DECAY, "momentum": 0.9, "dampening": 0.1, "nesterov": False}),
}
MORE = {
    "adam": {"eps": 1e-8},
    "adamw": {"eps": 1e-8},
    "rmsprop": {"centered": True},
    "rprop": {"step_size_min": 1e-6, "step_size_max": 50.0},
    "sgd": {"maximize": False},
}


def function(torch: Any, name: str) -> Any:
    return getattr(importlib.import_module(f"{torch.__name__}.optim.{name}"), name)


@case.over(*NAMES)
def signature(torch, name):
    parameters = inspect.signature(function(torch, name)).parameters.values()
    module = importlib.import_module(f"{torch.__name__}.optim.{name}")
    return [(p.name, p.default, str(p.kind)) for p in parameters], module.__all__


def given(torch: Any, name: str) -> tuple[list[Any], dict[str, Any]]:
    """Parameters, gradients and states as the function takes them."""
    begin, keywords = SPECIFIED[name]
    params = [torch.tensor([1.0, -2.0, 3.0]), torch.tensor([[0.5]])]
    grads = [torch.tensor([0.1, 0.2, -0.3]), torch.tensor([[4.0]])]
    small = {"asgd": (1, 2), "nadam": (2,)}.get(name, ())
    lists = [
        [
            None
            if value is None
            else torch.tensor(value)
            if i in small
            else torch.full_like(p, value)
            for p in params
        ]
        for i, value in enumerate(begin)
    ]
    if name != "sgd":
        lists.append([torch.tensor(0.0) for _ in params])
    return [params, grads, *lists], {**keywords, **MORE.get(name, {})}


@case.over(*NAMES)
def steps(torch, name):
    lists, keywords = given(torch, name)
    for number in range(3):
        function(torch, name)(*lists, **keywords)
        yield lists
        for grad in lists[1]:
            grad.mul_(-0.5 if number else 2.0)


@case
def gradients_are_not_touched(torch):
    lists, keywords = given(torch, "adam")
    params = [torch.nn.Parameter(p) for p in lists[0]]
    params[0].grad = torch.ones(3)
    with torch.no_grad():
        function(torch, "adam")(params, *lists[1:], **keywords)
    yield params, params[0].grad, params[1].grad, lists[1]
    plain = {**keywords, "amsgrad": False}
    yield attempt(function(torch, "adam"), params, *lists[1:], **plain)
    lists[-1] = [1, 1]
    yield attempt(function(torch, "adam"), *lists, **keywords)
    yield attempt(function(torch, "adam"), *lists)


@case
def sums_without_momentum(torch):
    lists, keywords = given(torch, "sgd")
    keywords.update(momentum=0.0, dampening=0.0, maximize=True)
    function(torch, "sgd")(*lists, **keywords)
    yield lists
    params = [p * 2 for p in map(torch.nn.Parameter, lists[0])]
    with torch.no_grad():
        function(torch, "sgd")(params, *lists[1:], **keywords)
    yield params
