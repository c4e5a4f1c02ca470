"""NAdam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._counter import assign, count_of
from torchshim.optim._lists import Tensors, implementations, step
from torchshim.optim._rules import (
    RuleOptimizer,
    check_betas,
    check_lr,
    check_positive,
    decay,
    number,
    number_tensor,
    zeros_like,
)
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.optimizer import ParamsT

__all__ = ["NAdam", "nadam"]


class NAdam(RuleOptimizer):
    """Adam with Nesterov's momentum. Follows ``torch.optim.NAdam``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.NAdam([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.item() < 1
    True
    """

    _rule = "nadam_update"
    _captured = (
        "params, mu_products and state_steps",
        "params, mu_products, and state_steps",
    )
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
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_positive(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return "exp_avg", "exp_avg_sq"

    def _init_state(self, group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
        state["step"] = number_tensor(group, p, 0.0)
        state["mu_product"] = number_tensor(group, p, 1.0)
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)

    def _step_group(self, group: dict[str, Any]) -> None:
        self._group = group
        super()._step_group(group)

    def _variants(self, params: list[Any], states: list[dict[str, Any]]) -> list[Any]:
        """The number of the step, the product of the momenta, and two of those.

        Before them, a number for each product that gradients flow through: those are
        different ones even if they are equal.
        """
        found: list[Any] = []
        tracked = self._group["differentiable"]
        counted = super()._variants(params, states)
        for i, (n, state) in enumerate(zip(counted, states, strict=True)):
            mu, mu_next = self._momentum(n), self._momentum(n + 1)
            product = state["mu_product"]
            if tracked and product.requires_grad:
                product.mul_(mu)
                found.append((i, n, product.clone(), mu, mu_next))
                continue
            assign(product, count_of(product) * mu)
            found.append((None, n, count_of(product), mu, mu_next))
        return found

    def _momentum(self, step: float) -> float:
        power = step * self._group["momentum_decay"]
        return self._group["betas"][0] * (1.0 - 0.5 * 0.96**power)

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        beta1, beta2 = group["betas"]
        return (
            *step[1:],
            number(group["lr"]),
            number(beta1),
            number(beta2),
            float(group["eps"]),
            decay(group["weight_decay"]),
            bool(group["decoupled_weight_decay"]),
            bool(group["maximize"]),
        )


def nadam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    mu_products: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of `NAdam`, which changes parameters and states in place.

    Follows ``torch.optim.nadam.nadam``.
    """
    states = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products}
    step(
        NAdam,
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
        momentum_decay=momentum_decay,
        eps=eps,
        maximize=maximize,
        decoupled_weight_decay=decoupled_weight_decay,
    )


__getattr__ = implementations(nadam, "single_tensor", "multi_tensor")
