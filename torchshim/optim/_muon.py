"""Muon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._tensor import Tensor
from torchshim.optim._lists import Tensors, implementations, step
from torchshim.optim._rules import RuleOptimizer, number
from torchshim.optim.optimizer import ParamsT

__all__ = ["Muon"]


class Muon(RuleOptimizer):
    """Momentum whose matrices are made nearly orthogonal before each step.

    For two-dimensional parameters alone: ValueError for others. `adjust_lr_fn`:
    "original" or "match_rms_adamw". Follows ``torch.optim.Muon``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.eye(2))
    >>> optimizer = torch.optim.Muon([p], lr=0.1)
    >>> torch.optim.Muon([torch.nn.Parameter(torch.ones(2))])
    Traceback (most recent call last):
    ValueError: Muon only supports 2D parameters whereas we found a parameter with \
size: torch.Size([2])
    """

    _rule = "muon_update"
    _counts = _by_step = False

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported"
            )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a "
                        f"parameter with size: {p.size()}"
                    )

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        return ("momentum_buffer",)

    def _variants(self, params: list[Any], states: list[dict[str, Any]]) -> list[Any]:
        if any(p.is_complex() for p in params):
            raise RuntimeError("Muon does not support complex parameters")
        return super()._variants(params, states)

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        if group["ns_steps"] >= 100:
            raise ValueError(
                "Number of steps must be less than 100 for computational efficiency"
            )
        coefficients = tuple(float(c) for c in group["ns_coefficients"])
        if len(coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        return (
            number(group["lr"]),
            float(group["weight_decay"]),
            float(group["momentum"]),
            bool(group["nesterov"]),
            *coefficients,
            float(group["eps"]),
            int(group["ns_steps"]),
            group["adjust_lr_fn"],
        )


def muon(
    params: Tensors,
    grads: Tensors,
    muon_momentum_bufs: Tensors,
    *,
    foreach: bool | None = None,
    lr: float,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """One step of `Muon`, which changes parameters and states in place.

    Follows ``torch.optim._muon.muon``.
    """
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    if any(grad.ndim != 2 for grad in grads):
        raise ValueError("Param gradient must be a 2D matrix")
    step(
        Muon,
        params,
        grads,
        {"momentum_buffer": muon_momentum_bufs},
        lr=lr,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        ns_coefficients=ns_coefficients,
        ns_steps=ns_steps,
        eps=eps,
        adjust_lr_fn=adjust_lr_fn,
    )


__getattr__ = implementations(muon, "single_tensor")
