"""An optimizer that works on other parameters and another state for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchshim._tensor import Tensor
from torchshim.optim.optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


def _checked_state(state: Any) -> dict[Any, Any]:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed "
            f"parameter ids to per-param state dicts, got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style state keyed by packed "
            "parameter ids."
        )
    if any(isinstance(k, int) and not isinstance(v, dict) for k, v in state.items()):
        raise RuntimeError(
            f"{_NAME} requires per-parameter optimizer state entries to be "
            "dictionaries."
        )
    return state


def _checked_groups(optimizer: Optimizer, groups: Any) -> list[dict[str, Any]]:
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of "
            f"param-group dicts, got {type(groups).__name__}."
        )
    if len(optimizer.param_groups) != len(groups):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the "
            "live optimizer."
        )
    for i, (group, new) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        if not isinstance(new, dict):
            raise RuntimeError(
                f"{_NAME} requires each optimizer param group to be a dictionary."
            )
        ids = new.get("params")
        if not isinstance(ids, list) or not all(isinstance(n, int) for n in ids):
            raise RuntimeError(
                f"{_NAME} requires optimizer.state_dict()-style "
                "param_groups[*]['params'] entries keyed by packed parameter ids."
            )
        if len(group["params"]) != len(ids):
            raise RuntimeError(
                f"swapin_optim_state param group {i} has a different number of params "
                "than the live optimizer param group."
            )
        theirs = [key for key in new if key not in group]
        ours = [key for key in group if key not in new]
        if theirs or ours:
            raise RuntimeError(
                f"{_NAME} requires optimizer.state_dict()-style param group keys to "
                f"exactly match the live optimizer group keys for group {i}. Keys only "
                f"in swap-in: {theirs}. Keys only in live: {ours}."
            )
    return groups


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Has `optimizer` work on these parameters, with a state that `state_dict` gave.

    Inside, steps change the tensors given; afterwards all is as it was. RuntimeError
    where the state does not fit. Follows
    ``torch.optim.swap_in_optimizer_params_and_state``.
    """
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(swapin_optim_state, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state = _checked_state(swapin_optim_state.get("state"))
    groups = _checked_groups(optimizer, swapin_optim_state.get("param_groups"))
    params = list(swapin_parameters.values())
    ids = [n for group in groups for n in group["params"]]
    if len(ids) > len(params):
        raise RuntimeError(
            f"{_NAME} requires the explicit parameter state to match "
            "optimizer.param_groups ordering."
        )
    extra = [key for key in state if key not in ids]
    if extra:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed "
            "parameter ids from param_groups[*]['params']; got extra keys "
            f"{extra!r}."
        )
    old_state = optimizer.state
    old_groups = [dict(group) for group in optimizer.param_groups]
    try:
        new_state: defaultdict[Any, Any] = defaultdict(dict)
        for param, n in zip(params, ids, strict=False):
            new_state[param] = dict(state.get(n, {}))
        for group, new in zip(optimizer.param_groups, groups, strict=True):
            count = len(new["params"])
            group.update({**new, "params": params[:count]})
            params = params[count:]
        optimizer.state = new_state
        yield
    finally:
        for group, old in zip(optimizer.param_groups, old_groups, strict=True):
            group.clear()
            group.update(old)
        optimizer.state = old_state
