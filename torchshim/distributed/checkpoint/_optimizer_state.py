"""Optimizers' states by the names of parameters: nested or flat, of one or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.optim import Optimizer

State = dict[str, Any]
Names = Mapping[Tensor, Sequence[str]]


def initialized(optimizer: Optimizer) -> None:
    """Makes the states that the first step makes, by one that changes nothing."""
    groups = optimizer.param_groups
    params = [param for group in groups for param in group["params"]]
    if optimizer.state or any(param.grad is not None for param in params):
        return
    for param in params:
        if param.requires_grad:
            param.grad = torchshim.zeros_like(param)
    rates = [group.get("lr") for group in groups]
    for group, rate in zip(groups, rates, strict=True):
        if rate is not None:
            of_tensor = isinstance(rate, Tensor)
            group["lr"] = torchshim.tensor(0.0) if of_tensor else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def flattened(state: State) -> State:
    """The state with one key for each value: "state.weight.step"."""
    flat: State = {}

    def put(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                put(f"{prefix}.{key}", inner)
        elif isinstance(value, (Tensor, int, float)):
            flat[prefix] = value
        else:
            raise NotImplementedError(
                "Flattening optimizer state_dict only supports tensor, int, float, "
                f"dict states now. Type is {type(value)}."
            )

    for name, own in state["state"].items():
        put(f"state.{name}", own)
    for group in state["param_groups"]:
        for name in group.pop("params"):
            for key, value in group.items():
                flat[f"param_groups.{name}.{key}"] = value
    return flat


def _nested(flat: State, prefix: str) -> State:
    """What stands under a key, dicts within dicts."""
    found: State = {}
    for key, value in flat.items():
        if key.startswith(f"{prefix}."):
            *outer, last = key.removeprefix(f"{prefix}.").split(".")
            inner = found
            for part in outer:
                inner = inner.setdefault(part, {})
            inner[last] = value
    return found


def unflattened(optimizer: Optimizer, flat: State, names: Names) -> State:
    """The state of one optimizer, from what `flattened` gave."""
    state: State = {}
    groups: list[State] = []
    for group in optimizer.param_groups:
        keys = [key for key in group if key != "params"]
        own: State = {"params": []}
        for param in group["params"]:
            for name in _present(
                names[param],
                lambda n, k=keys[:1]: any(f"param_groups.{n}.{e}" in flat for e in k),
            ):
                own["params"].append(name)
                if param.requires_grad:
                    state[name] = {
                        key: flat[f"state.{name}.{key}"]
                        if f"state.{name}.{key}" in flat
                        else _nested(flat, f"state.{name}.{key}")
                        for key in optimizer.state[param]
                    }
        for key in keys:
            own[key] = flat[f"param_groups.{own['params'][0]}.{key}"]
        groups.append(own)
    return {"state": state, "param_groups": groups}


def _present(names: Sequence[str], saved: Any) -> list[str]:
    """The names of a parameter; of one that is shared, those that were saved."""
    return list(names) if len(names) == 1 else [name for name in names if saved(name)]


def part_for(optimizer: Optimizer, state: State, names: Names, strict: bool) -> State:
    """What of a state, which may be of several optimizers, is one optimizer's."""
    if all(isinstance(key, int) for key in state["state"]):
        return state
    saved = state["param_groups"]
    own: State = {}
    groups: list[State] = []
    for group in optimizer.param_groups:
        made: State = {"params": []}
        found: State | None = None
        for param in group["params"]:
            for name in _present(
                names[param], lambda n: any(n in g["params"] for g in saved)
            ):
                made["params"].append(name)
                if param.requires_grad and name in state["state"]:
                    own[name] = state["state"][name]
                elif param.requires_grad and strict:
                    raise RuntimeError(
                        f"Missing optimizer state for parameter '{name}' in "
                        "checkpoint. The parameter requires gradients but has no saved "
                        "optimizer state. To load anyway, use "
                        "StateDictOptions(strict=False)."
                    )
                found = next((g for g in saved if name in g["params"]), found)
        if not group["params"]:
            found = _without_params(optimizer, saved)
        made.update({k: v for k, v in (found or {}).items() if k != "params"})
        groups.append(made)
    return {"state": own, "param_groups": groups}


def _without_params(optimizer: Optimizer, saved: list[State]) -> State:
    empty = [group for group in saved if not group["params"]]
    if len(empty) != 1:
        raise ValueError(
            "There are param groups that have zero parameters. In such a case, DSD "
            "only support exactly one param group with zero parameters.But the loaded "
            "state_dict has zero or more than one param groups that have zero "
            "parameters."
        )
    if len(saved) != len(optimizer.param_groups):
        raise ValueError(
            "When there is a parameter group that has zero parameters, multiple "
            "optimizers are not supported."
        )
    return empty[0]
