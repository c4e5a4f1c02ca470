"""Resilient backpropagation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim.optim._lists import Tensors, implementations, step
from torchshim.optim._rules import (
    RuleOptimizer,
    check_lr,
    full_like,
    number_tensor,
    zeros_like,
)
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.optimizer import ParamsT

__all__ = ["Rprop", "rprop"]


class Rprop(RuleOptimizer):
    """Steps that grow while the gradient keeps its sign, for full batches.

    Follows ``torch.optim.Rprop``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Rprop([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.item() < 1
    True
    """

    _rule = "rprop_update"
    _by_step = False
    _on_xla = (True, True)
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
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return "prev", "step_size"

    def _init_state(self, group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
        state["step"] = number_tensor(group, p, 0.0)
        state["prev"] = zeros_like(p)
        state["step_size"] = full_like(p, float(group["lr"]), p._grad)

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        return (
            *(float(eta) for eta in group["etas"]),
            *(float(size) for size in group["step_sizes"]),
            bool(group["maximize"]),
        )


def rprop(
    params: Tensors,
    grads: Tensors,
    prevs: Tensors,
    step_sizes: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of `Rprop`, which changes parameters and states in place.

    Follows ``torch.optim.rprop.rprop``.
    """
    states = {"prev": prevs, "step_size": step_sizes}
    step(
        Rprop,
        params,
        grads,
        states,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        etas=(etaminus, etaplus),
        step_sizes=(step_size_min, step_size_max),
        maximize=maximize,
    )


__getattr__ = implementations(rprop, "single_tensor", "multi_tensor")
