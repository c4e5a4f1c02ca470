"""What optimizers are made with in tests, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim as torch

_DECAY = {"weight_decay": 0.1}
_MAXIMIZE = {"maximize": True}
_BOTH = _DECAY | _MAXIMIZE
_AMSGRAD = {"amsgrad": True}
_SMALL = {"lr": 0.01}
_DECOUPLED = {"decoupled_weight_decay": True}
_SLOW = {"momentum_decay": 6e-3}
_CENTERED = _DECAY | {"centered": True}
_MOMENTUM = {"momentum": 0.9}
_ADAM: list[dict[str, Any]] = [{}, _SMALL, _DECAY, _BOTH, _DECAY | _AMSGRAD]

CONFIGURATIONS: dict[str, list[dict[str, Any]]] = {
    "Adadelta": [
        *({}, _SMALL, _DECAY, _MAXIMIZE, _BOTH),
        {"rho": 0.95, "weight_decay": 0.9},
    ],
    "Adafactor": [
        *({}, _DECAY | _SMALL, _BOTH),
        *({"beta2_decay": -1.0}, {"d": 1.5}),
    ],
    "Adagrad": [
        *({}, _DECAY, _BOTH, {"lr": 0.1}),
        {"initial_accumulator_value": 0.1} | _DECAY,
        {"lr": 0.1, "lr_decay": 0.5} | _DECAY,
        {"lr": torch.tensor(0.001)},
    ],
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "Adamax": [{}, {"lr": 0.1}, _DECAY, _MAXIMIZE, _BOTH],
    "ASGD": [{}, {"lambd": 0.1}, {"lr": 0.02}, {"t0": 100}, _MAXIMIZE, _DECAY, _BOTH],
    "LBFGS": [
        *({}, _SMALL, {"tolerance_grad": 1e-6}),
        {"line_search_fn": "strong_wolfe"},
    ],
    "Muon": [
        *({}, _SMALL, {"weight_decay": 0.2}, {"momentum": 0.8}, {"ns_steps": 6}),
        {"ns_coefficients": (3.4, -4.7, 2.0)},
    ],
    "NAdam": [
        *({}, {"lr": 1e-3}, _SLOW, _DECAY, _DECAY | _SLOW),
        *(_DECAY | _SLOW | _DECOUPLED, _BOTH),
    ],
    "RAdam": [{}, {"lr": 2e-3}, {"eps": 1e-6}, _DECAY, _DECAY | _DECOUPLED, _BOTH],
    "RMSprop": [
        *({}, {"lr": 1e-3}, _MAXIMIZE, _DECAY, _CENTERED, _BOTH),
        *(_CENTERED | {"momentum": 0.1}, _CENTERED | {"momentum": 0.1} | _MAXIMIZE),
    ],
    "Rprop": [
        *({}, {"lr": 2e-4}, {"etas": (0.5, 1.5)}, {"step_sizes": (2e-6, 100)}),
        _MAXIMIZE,
    ],
    "SGD": [
        *({}, {"lr": 1e-2}, {"lr": torch.tensor(0.001)}, _DECAY, _MOMENTUM, _BOTH),
        *(_MOMENTUM | {"dampening": 0.5}, _MOMENTUM | _DECAY),
        _MOMENTUM | {"nesterov": True} | _DECAY,
    ],
    "SparseAdam": [{}, _SMALL, _MAXIMIZE],
}

_ON_GPU: dict[str, Any] = {"capturable": True}
_TENSOR: dict[str, Any] = {"lr": torch.tensor(0.001)}
CAPTURABLE: dict[str, list[dict[str, Any]]] = {
    name: [_ON_GPU, _DECAY | _ON_GPU, _TENSOR | _ON_GPU]
    for name in (
        *("Adadelta", "Adam", "AdamW", "Adamax", "ASGD"),
        *("NAdam", "RAdam", "RMSprop", "Rprop"),
    )
}

Refused = list[tuple[Any, dict[str, Any], type[BaseException], str]]


def _value(regex: str, **kwargs: Any) -> Callable[..., Refused]:
    return lambda device, dtype: [(None, kwargs, ValueError, regex)]


def _fused(device: Any, dtype: Any) -> Refused:
    empty = [torch.empty((), device=device, dtype=dtype)]
    return [
        (
            *(empty, {"foreach": True, "fused": True}, RuntimeError),
            "`fused` and `foreach` cannot be `True` together",
        ),
        (
            *(empty, {"fused": True, "differentiable": True}, RuntimeError),
            "`fused` does not support `differentiable`",
        ),
    ]


def _complex(device: Any) -> list[Any]:
    made = torch.nn.Parameter(torch.rand(2, 3, device=device, dtype=torch.complex64))
    made.grad = torch.rand_like(made)
    return [made]


_BETA = "Invalid beta parameter at index 0: 1.0"


def _adam(device: Any, dtype: Any) -> Refused:
    nine = torch.tensor(0.9)
    mixed = "betas must be either both floats or both Tensors"
    table = [
        ({"betas": (1.0, 0.0)}, _BETA),
        ({"weight_decay": -1}, "Invalid weight_decay value: -1"),
        (
            {"lr": torch.tensor(0.001), "foreach": True},
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        ({"betas": (0.9, nine)}, mixed),
        ({"betas": (nine, 0.99)}, mixed),
        (
            {"betas": (nine, nine), "foreach": True},
            r"betas\[0\] as a Tensor is not supported for capturable=False and "
            "foreach=True",
        ),
    ]
    found: Refused = [
        (None, {"lr": 1e-2} | kwargs, ValueError, text) for kwargs, text in table
    ]
    return found + _fused(device, dtype)


def _adafactor(device: Any, dtype: Any) -> Refused:
    return [
        (None, {"eps": (-1e-30, 1e-3)}, ValueError, "epsilon1 should be >= 0"),
        (None, {"d": 0.0}, ValueError, "Clipping threshold d should be >= 1"),
        (None, {"beta2_decay": 0.8}, ValueError, "beta2_decay should be <= 0"),
        (
            *(_complex(device), {}, RuntimeError),
            "Adafactor does not support complex parameters",
        ),
    ]


def _adagrad(device: Any, dtype: Any) -> Refused:
    text = "Invalid lr_decay value: -0.5"
    refused: Refused = [(None, {"lr": 1e-2, "lr_decay": -0.5}, ValueError, text)]
    return refused + _fused(device, dtype)


def _muon(device: Any, dtype: Any) -> Refused:
    flat, square = (
        torch.rand(shape, device=device, dtype=dtype) for shape in ((2,), (2, 3))
    )
    wrong = "Adjust learning rate function arbitrary is not supported"
    return [
        ([flat], {}, ValueError, "Muon only supports 2D parameters"),
        ([square], {"adjust_lr_fn": "arbitrary"}, ValueError, wrong),
        (_complex(device), {}, RuntimeError, "Muon does not support complex"),
    ]


def _two(first: Callable[..., Refused], second: Callable[..., Refused]) -> Any:
    return lambda device, dtype: first(device, dtype) + second(device, dtype)


def _sparse_adam(device: Any, dtype: Any) -> Refused:
    sparse = torch.zeros(3, device=device, dtype=dtype).to_sparse()
    text = "SparseAdam requires dense parameter tensors"
    number = torch.rand(2, 3, device=device, dtype=torch.complex64)
    return [
        (None, {"lr": 1e-2, "betas": (1.0, 0.0)}, ValueError, _BETA),
        ([sparse], {}, ValueError, text),
        ([{"params": [sparse]}], {}, ValueError, text),
        ([number], {}, ValueError, "SparseAdam does not support complex parameters"),
    ]


REFUSED: dict[str, Callable[..., Refused]] = {
    "Adadelta": _value("Invalid rho value: 1.1", lr=1e-2, rho=1.1),
    "Adafactor": _adafactor,
    "Adagrad": _adagrad,
    "Adam": _adam,
    "AdamW": _adam,
    "Adamax": _value(
        "Invalid beta parameter at index 1: 1.0", lr=1e-2, betas=(0.0, 1.0)
    ),
    "ASGD": _value("Invalid weight_decay value: -0.5", lr=1e-2, weight_decay=-0.5),
    "Muon": _muon,
    "NAdam": _two(
        _value(_BETA, lr=1e-2, betas=(1.0, 0.0)),
        _value("Invalid momentum_decay value: -0.2", lr=1e-2, momentum_decay=-0.2),
    ),
    "RAdam": _two(
        _value(_BETA, lr=1e-2, betas=(1.0, 0.0)),
        _value("Invalid weight_decay value: -1", lr=1e-2, weight_decay=-1),
    ),
    "RMSprop": _value("Invalid momentum value: -1.0", lr=1e-2, momentum=-1.0),
    "Rprop": _value("Invalid eta values: 1.0, 0.5", lr=1e-2, etas=(1.0, 0.5)),
    "SGD": _value("Invalid momentum value: -0.5", lr=1e-2, momentum=-0.5),
    "SparseAdam": _sparse_adam,
}
