"""RMSprop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim.optim._lists import Tensors, implementations, step
from torchshim.optim._rules import (
    RuleOptimizer,
    check_lr,
    check_positive,
    decay,
    number,
)
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.optimizer import ParamsT

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(RuleOptimizer):
    """Steps divided by the root of the averaged squared gradient.

    Follows ``torch.optim.RMSprop``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.RMSprop([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.item() < 1
    True
    """

    _rule = "rmsprop_update"
    _by_step = False
    _on_xla = (True, True)
    _later_options = {  # noqa: RUF012
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive(
            eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return (
            "square_avg",
            "momentum_buffer" if group["momentum"] > 0 else None,
            "grad_avg" if group["centered"] else None,
        )

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        return (
            number(group["lr"]),
            float(group["alpha"]),
            float(group["eps"]),
            decay(group["weight_decay"]),
            float(group["momentum"]) if group["momentum"] > 0 else None,
            bool(group["maximize"]),
        )


def rmsprop(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    grad_avgs: Tensors,
    momentum_buffer_list: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of `RMSprop`, which changes parameters and states in place.

    Follows ``torch.optim.rmsprop.rmsprop``.
    """
    states = {
        "square_avg": square_avgs,
        "grad_avg": grad_avgs,
        "momentum_buffer": momentum_buffer_list,
    }
    step(
        RMSprop,
        params,
        grads,
        states,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
        maximize=maximize,
    )


__getattr__ = implementations(rmsprop, "single_tensor", "multi_tensor")
