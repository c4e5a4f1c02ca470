"""Adadelta."""

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

__all__ = ["Adadelta", "adadelta"]


class Adadelta(RuleOptimizer):
    """Steps of the size of the last steps, relative to the gradients.

    Follows ``torch.optim.Adadelta``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adadelta([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.item() < 1
    True
    """

    _rule = "adadelta_update"
    _by_step = False
    _on_xla = (False, False)
    _later_options = {  # noqa: RUF012
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_positive(eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return "square_avg", "acc_delta"

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        return (
            number(group["lr"]),
            float(group["rho"]),
            float(group["eps"]),
            decay(group["weight_decay"]),
            bool(group["maximize"]),
        )


def adadelta(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    acc_deltas: Tensors,
    state_steps: Tensors,
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of `Adadelta`, which changes parameters and states in place.

    Follows ``torch.optim.adadelta.adadelta``.
    """
    states = {"square_avg": square_avgs, "acc_delta": acc_deltas}
    step(
        Adadelta,
        params,
        grads,
        states,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )


__getattr__ = implementations(adadelta, "single_tensor", "multi_tensor")
