"""RAdam."""

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

__all__ = ["RAdam", "radam"]


class RAdam(RuleOptimizer):
    """Adam that adapts only once the variance of its steps is known.

    Follows ``torch.optim.RAdam``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.RAdam([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.item() < 1
    True
    """

    _rule = "radam_update"
    _later_options = {  # noqa: RUF012
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return "exp_avg", "exp_avg_sq"

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        beta1, beta2 = group["betas"]
        return (
            step,
            number(group["lr"]),
            number(beta1),
            number(beta2),
            float(group["eps"]),
            decay(group["weight_decay"]),
            bool(group["decoupled_weight_decay"]),
            bool(group["maximize"]),
        )


def radam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of `RAdam`, which changes parameters and states in place.

    Follows ``torch.optim.radam.radam``.
    """
    states = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    step(
        RAdam,
        params,
        grads,
        states,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        betas=(beta1, beta2),
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        decoupled_weight_decay=decoupled_weight_decay,
    )


__getattr__ = implementations(radam, "single_tensor", "multi_tensor")
