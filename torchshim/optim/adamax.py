"""Adamax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim.optim._lists import Tensors, implementations, step
from torchshim.optim._rules import (
    RuleOptimizer,
    check_betas,
    check_lr,
    check_positive,
    decay,
    number,
)
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.optimizer import ParamsT

__all__ = ["Adamax", "adamax"]


class Adamax(RuleOptimizer):
    """Adam with the largest gradient in place of the averaged square.

    Follows ``torch.optim.Adamax``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adamax([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.item() < 1
    True
    """

    _rule = "adamax_update"
    _later_options = {  # noqa: RUF012
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive(eps=eps)
        check_betas(betas)
        check_positive(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return "exp_avg", "exp_inf"

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        beta1, beta2 = group["betas"]
        return (
            step,
            number(group["lr"]),
            number(beta1),
            number(beta2),
            float(group["eps"]),
            decay(group["weight_decay"]),
            bool(group["maximize"]),
        )


def adamax(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_infs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step of `Adamax`, which changes parameters and states in place.

    Follows ``torch.optim.adamax.adamax``.
    """
    states = {"exp_avg": exp_avgs, "exp_inf": exp_infs}
    step(
        Adamax,
        params,
        grads,
        states,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        eps=eps,
        betas=(beta1, beta2),
        lr=lr,
        weight_decay=weight_decay,
        maximize=maximize,
    )


__getattr__ = implementations(adamax, "single_tensor", "multi_tensor")
