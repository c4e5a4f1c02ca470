"""Adafactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.optim._lists import Tensors, implementations, refuse_scaled, step
from torchshim.optim._rules import (
    RuleOptimizer,
    number,
    number_tensor,
    zeros_like,
)
from torchshim.optim.optimizer import ParamsT

__all__ = ["Adafactor"]


class Adafactor(RuleOptimizer):
    """Adam's memory of squares, for matrices only their means by row and by column.

    `eps`: the smallest variance and the smallest size of a parameter that steps are
    relative to; `d`: where updates are clipped. RuntimeError for complex parameters.
    Follows ``torch.optim.Adafactor``; `foreach` changes nothing in the result.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.ones(2, 3))
    >>> p.grad = torch.ones(2, 3)
    >>> optimizer = torch.optim.Adafactor([p])
    >>> optimizer.step()
    >>> [tuple(optimizer.state[p][name].shape) for name in ("row_var", "col_var")]
    [(2, 1), (1, 3)]
    """

    _some = True
    _rule = "adafactor_update"
    _later_options = {"foreach": None}  # noqa: RUF012

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        # A parameter has either the first two or the last.
        return "row_var", "col_var", "variance"

    def _init_state(self, group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state["step"] = number_tensor(group, p, 0.0)
        grad = p.grad
        if grad.dim() > 1:
            shape = tuple(grad.shape)
            rows, columns = (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])
            with torchshim.no_grad():
                state["row_var"] = grad.new_zeros(rows)
                state["col_var"] = grad.new_zeros(columns)
        else:
            state["variance"] = zeros_like(grad)

    def _variants(self, params: list[Any], states: list[dict[str, Any]]) -> list[Any]:
        steps = super()._variants(params, states)
        return [(n, "row_var" in state) for n, state in zip(steps, states, strict=True)]

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        eps1, eps2 = group["eps"]
        weight_decay = group["weight_decay"]
        return (
            step[0],
            number(group["lr"]),
            float(group["beta2_decay"]),
            None if eps1 is None else float(eps1),
            float(eps2),
            float(group["d"]),
            float(weight_decay) if weight_decay != 0 else None,
            bool(group["maximize"]),
        )


def adafactor(
    params: Tensors,
    grads: Tensors,
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: Tensors,
    foreach: bool | None = None,
    grad_scale: Any = None,
    found_inf: Any = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: Any,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of `Adafactor`, which changes parameters and states in place.

    Follows ``torch.optim._adafactor.adafactor``.
    """
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError(
            "`state_steps` argument must contain a list of singleton tensors"
        )
    refuse_scaled(grad_scale, found_inf)
    step(
        Adafactor,
        params,
        grads,
        {"row_var": row_vars, "col_var": col_vars, "variance": variances},
        state_steps,
        foreach=foreach,
        d=d,
        lr=lr,
        beta2_decay=beta2_decay,
        weight_decay=weight_decay,
        eps=(eps1, eps2),
        maximize=maximize,
    )


__getattr__ = implementations(adafactor, "single_tensor", "multi_tensor")
