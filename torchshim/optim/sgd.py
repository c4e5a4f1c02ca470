"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._tensor import Tensor
from torchshim.optim._lists import Tensors, implementations, refuse_scaled, step
from torchshim.optim._rules import (
    RuleOptimizer,
    check_fused,
    check_lr,
    check_positive,
    decay,
    number,
    zeros_like,
)
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.optimizer import ParamsT

__all__ = ["SGD", "sgd"]


class SGD(RuleOptimizer):
    """Stochastic gradient descent, with momentum where asked for.

    Follows ``torch.optim.SGD``; `foreach` and `fused` change nothing in the result.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.SGD([p], lr=0.5)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.tolist()
    [0.0]
    """

    _rule = "sgd_update"
    _foreach_tracks = True
    _counts = False
    _later_options = {  # noqa: RUF012
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr, allow_nan=True)
        check_positive(momentum=momentum, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(fused, differentiable, foreach)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        self._check_fused(group)
        return ("momentum_buffer",) if group["momentum"] != 0 else (None,)

    def _check_sparse(self, group: dict[str, Any]) -> None:
        if group["fused"]:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        if group["weight_decay"] != 0:
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        momentum = group["momentum"]
        return (
            number(group["lr"]),
            float(momentum) if momentum != 0 else None,
            float(group["dampening"]),
            decay(group["weight_decay"]),
            bool(group["nesterov"]),
            bool(group["maximize"]),
            # Without dampening the formula gives the same from a buffer of zeros, and
            # the first step needs no program of its own. A first buffer is detached.
            bool(step and (group["dampening"] != 0 or group["differentiable"])),
        )

    def _rule_of_rows(self, numbers: Sequence[Any]) -> tuple[str, Sequence[Any]] | None:
        lr, momentum, *_, maximize, _ = numbers
        # With momentum each step moves every row that any step before has moved.
        return ("sgd_rows_update", (lr, maximize)) if momentum is None else None

    def _init_state(self, group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
        pass

    def _variants(self, params: list[Any], states: list[dict[str, Any]]) -> list[Any]:
        # The first buffer is the first gradient; zeros only keep its place.
        firsts = [state.get("momentum_buffer") is None for state in states]
        for p, state, first in zip(params, states, firsts, strict=True):
            if first:
                state["momentum_buffer"] = zeros_like(p, p._grad)
        return firsts


def sgd(
    params: Tensors,
    d_p_list: Tensors,
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Any = None,
    found_inf: Any = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of `SGD`, which changes parameters and states in place.

    Follows ``torch.optim.sgd.sgd``.
    """
    refuse_scaled(grad_scale, found_inf)
    states = {"momentum_buffer": momentum_buffer_list}
    step(
        SGD,
        params,
        d_p_list,
        states,
        foreach=foreach,
        fused=fused,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
    )


__getattr__ = implementations(sgd, "single_tensor", "multi_tensor", "fused")
