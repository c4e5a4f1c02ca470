"""Adagrad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim.optim._lists import Tensors, implementations, refuse_scaled, step
from torchshim.optim._rules import (
    RuleOptimizer,
    check_fused,
    check_lr,
    check_positive,
    decay,
    full_like,
    number,
    number_tensor,
)
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.optimizer import ParamsT

__all__ = ["Adagrad", "adagrad"]


class Adagrad(RuleOptimizer):
    """Steps divided by the root of the sum of all squared gradients.

    Follows ``torch.optim.Adagrad``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adagrad([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.item() < 1
    True
    """

    _rule = "adagrad_update"
    _later_options = {  # noqa: RUF012
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_positive(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, differentiable, foreach)
        for group in self.param_groups:
            for p in group["params"]:
                self._init_state(group, p, self.state[p])

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        self._check_fused(group)
        return ("sum",)

    def _init_state(self, group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
        value = self.defaults["initial_accumulator_value"]
        state["step"] = number_tensor(group, p, 0.0)
        state["sum"] = full_like(p, value)

    def share_memory(self) -> None:
        """Puts the sums where other processes see them."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _check_sparse(self, group: dict[str, Any]) -> None:
        if group["fused"]:
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if group["weight_decay"] != 0:
            raise RuntimeError(
                "weight_decay option is not compatible with sparse gradients"
            )

    def _rule_of_rows(self, numbers: Sequence[Any]) -> tuple[str, Sequence[Any]] | None:
        *used, _, maximize = numbers
        return "adagrad_rows_update", (*used, maximize)

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        return (
            step,
            number(group["lr"]),
            float(group["lr_decay"]),
            float(group["eps"]),
            decay(group["weight_decay"]),
            bool(group["maximize"]),
        )


def adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    fused: bool | None = None,
    grad_scale: Any = None,
    found_inf: Any = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adagrad`, which changes parameters and states in place.

    Follows ``torch.optim.adagrad.adagrad``.
    """
    refuse_scaled(grad_scale, found_inf)
    states = {"sum": state_sums}
    step(
        Adagrad,
        params,
        grads,
        states,
        state_steps,
        foreach=foreach,
        differentiable=differentiable,
        fused=fused,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        maximize=maximize,
    )


__getattr__ = implementations(adagrad, "single_tensor", "multi_tensor", "fused")
