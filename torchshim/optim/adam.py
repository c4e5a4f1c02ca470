"""Adam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._tensor import Tensor
from torchshim.optim._lists import Tensors, implementations, refuse_scaled, step
from torchshim.optim._rules import (
    RuleOptimizer,
    check_betas,
    check_fused,
    check_lr,
    check_positive,
    decay,
    number,
    number_tensor,
)
from torchshim.optim.optimizer import Optimizer as Optimizer
from torchshim.optim.optimizer import ParamsT

__all__ = ["Adam", "adam"]


class Adam(RuleOptimizer):
    """Steps of a size that the averages of the gradients and their squares decide.

    Follows ``torch.optim.Adam``; `foreach` and `fused` change nothing in the result.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adam([p], lr=0.25)
    >>> (p**2).sum().backward()
    >>> optimizer.step()
    >>> p.tolist()
    [0.75]
    """

    _rule = "adam_update"
    _later_options = {  # noqa: RUF012
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check_lr(lr)
        check_positive(eps=eps)
        check_betas(betas)
        check_positive(weight_decay=weight_decay)
        if not any(
            isinstance(betas[0], kind) and isinstance(betas[1], kind)
            for kind in (float, Tensor)
        ):
            raise ValueError("betas must be either both floats or both Tensors")
        for i in (0, 1):
            if isinstance(betas[i], Tensor):
                if not capturable and foreach:
                    raise ValueError(
                        f"betas[{i}] as a Tensor is not supported for capturable=False "
                        "and foreach=True"
                    )
                if betas[i].numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        defaults = {
            "lr": lr,
            "betas": tuple(
                b.squeeze() if isinstance(b, Tensor) and b.ndim else b for b in betas
            ),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, differentiable, foreach)

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return "exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else None

    def _check_sparse(self, group: dict[str, Any]) -> None:
        raise RuntimeError(
            "Adam does not support sparse gradients, please consider SparseAdam instead"
        )

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        beta1, beta2 = group["betas"]
        if group["differentiable"]:
            # PyTorch has the bias corrections in float32 here.
            step = number_tensor(group, group["params"][0], step)
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


def adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Any = None,
    found_inf: Any = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adam`, which changes parameters and states in place.

    Follows ``torch.optim.adam.adam``.
    """
    refuse_scaled(grad_scale, found_inf)
    states = {
        "exp_avg": exp_avgs,
        "exp_avg_sq": exp_avg_sqs,
        "max_exp_avg_sq": max_exp_avg_sqs,
    }
    step(
        Adam,
        params,
        grads,
        states,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        fused=fused,
        amsgrad=amsgrad,
        betas=(beta1, beta2),
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        decoupled_weight_decay=decoupled_weight_decay,
    )


__getattr__ = implementations(adam, "single_tensor", "multi_tensor", "fused")
