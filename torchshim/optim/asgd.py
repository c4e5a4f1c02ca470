"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._counter import assign, count_of, counts_of
from torchshim.optim._lists import Tensors, implementations, step
from torchshim.optim._rules import (
    RuleOptimizer,
    check_lr,
    check_positive,
    decay,
    number_tensor,
    zeros_like,
)
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.optimizer import ParamsT

__all__ = ["ASGD", "asgd"]


class ASGD(RuleOptimizer):
    """Gradient descent that also keeps the mean of the last parameters.

    Follows ``torch.optim.ASGD``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.ASGD([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.item() < 1
    True
    """

    _rule = "asgd_update"
    _captured = ("params, mus, etas, and state_steps",) * 2
    _later_options = {  # noqa: RUF012
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return ("ax",)

    def _init_state(self, group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
        state["step"] = number_tensor(group, p, 0.0)
        state["eta"] = number_tensor(group, p, float(group["lr"]))
        state["mu"] = number_tensor(group, p, 1.0)
        state["ax"] = zeros_like(p)

    def _step_group(self, group: dict[str, Any]) -> None:
        super()._step_group(group)
        # The rates of the next step.
        rate, lambd = float(group["lr"]), group["lambd"]
        for p in group["params"]:
            if p._grad is not None:
                state = self.state[p]
                step = count_of(state["step"])
                eta = rate / (1 + lambd * rate * step) ** group["alpha"]
                assign(state["eta"], eta)
                assign(state["mu"], 1 / max(1, step - group["t0"]))

    def _variants(self, params: list[Any], states: list[dict[str, Any]]) -> list[Any]:
        rates = counts_of([state["eta"] for state in states])
        return [*zip(rates, counts_of([s["mu"] for s in states]), strict=True)]

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        return (
            *step,
            float(group["lambd"]),
            decay(group["weight_decay"]),
            bool(group["maximize"]),
        )


def asgd(
    params: Tensors,
    grads: Tensors,
    axs: Tensors,
    mus: Tensors,
    etas: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of `ASGD`, which changes parameters and states in place.

    Follows ``torch.optim.asgd.asgd``.
    """
    states = {"ax": axs, "mu": mus, "eta": etas}
    step(
        ASGD,
        params,
        grads,
        states,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
        maximize=maximize,
    )


__getattr__ = implementations(asgd, "single_tensor", "multi_tensor")
