"""A training step is one program, whatever changes from step to step."""

from __future__ import annotations

from typing import Any

import pytest

import torchshim as torch
from torchshim._core.program import LOG

KINDS = {
    "SGD": {"momentum": 0.9},
    "Adam": {},
    "AdamW": {"amsgrad": True},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Adagrad": {},
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "ASGD": {},
    "Rprop": {},
}


def train(optimizer: Any, weight: Any, n: int) -> int:
    """How many programs `n` steps compile."""
    before = len(LOG)
    for _ in range(n):
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        optimizer.step()
        loss.item()
        for group in optimizer.param_groups:
            group["lr"] = 0.9 * group["lr"]
    return len(LOG) - before


@pytest.mark.parametrize("name", KINDS)
def test_a_steady_step_is_one_program(name: str) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = getattr(torch.optim, name)([weight], lr=0.1, **KINDS[name])
    train(optimizer, weight, 2)
    assert train(optimizer, weight, 6) == 0


def test_what_a_step_replaces_is_donated() -> None:
    weight = torch.nn.Parameter(torch.ones(50, 50))
    optimizer = torch.optim.Adam([weight])
    train(optimizer, weight, 2)
    names = ("exp_avg", "exp_avg_sq")

    def places(*more: Any) -> set[int]:
        tensors = [weight, *(optimizer.state[weight][name] for name in names), *more]
        return {t._array.unsafe_buffer_pointer() for t in tensors}

    before = places()
    train(optimizer, weight, 1)
    # The results, of which the gradient is one, lie where the old values did.
    assert before <= places(weight.grad)


def test_a_custom_optimizer_is_one_program() -> None:
    class Descent(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])

    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = Descent([weight], {"lr": 0.1})
    train(optimizer, weight, 2)
    assert train(optimizer, weight, 4) == 0


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_a_step_of_matrices_is_one_program(name: str) -> None:
    weight = torch.nn.Parameter(torch.rand(3, 2))
    optimizer = getattr(torch.optim, name)([weight], lr=0.1)
    train(optimizer, weight, 2)
    assert train(optimizer, weight, 4) == 0
