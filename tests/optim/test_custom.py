"""Optimizers as people write them: the results are PyTorch's, a step is one program."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.oracle import case


def hand_written_adam(torch: Any) -> Any:
    class Adam(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0):
            defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": decay}
            super().__init__(params, defaults)

        def step(self, closure=None):
            loss = None
            if closure is not None:
                loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    grad = p.grad.data
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = 0
                        state["exp_avg"] = torch.zeros_like(p.data)
                        state["exp_avg_sq"] = torch.zeros_like(p.data)
                    average, square = state["exp_avg"], state["exp_avg_sq"]
                    beta1, beta2 = group["betas"]
                    state["step"] += 1
                    if group["weight_decay"] != 0:
                        grad = grad.add(p.data, alpha=group["weight_decay"])
                    average.mul_(beta1).add_(grad, alpha=1 - beta1)
                    square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                    root = square.sqrt().add_(group["eps"])
                    size = group["lr"] * math.sqrt(1 - beta2 ** state["step"])
                    size /= 1 - beta1 ** state["step"]
                    p.data.addcdiv_(average, root, value=-size)
            return loss

    return Adam


def lion(torch: Any) -> Any:
    class Lion(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1):
            defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
            super().__init__(params, defaults)

        @torch.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in filter(lambda p: p.grad is not None, group["params"]):
                    state = self.state[p]
                    if len(state) == 0:
                        state["exp_avg"] = torch.zeros_like(p)
                    average = state["exp_avg"]
                    beta1, beta2 = group["betas"]
                    p.data.mul_(1 - group["lr"] * group["weight_decay"])
                    update = average.clone().mul_(beta1).add(p.grad, alpha=1 - beta1)
                    p.add_(update.sign_(), alpha=-group["lr"])
                    average.mul_(beta2).add_(p.grad, alpha=1 - beta2)
            return loss

    return Lion


def lars(torch: Any) -> Any:
    class LARS(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1, momentum=0.9, decay=1e-2, trust=0.5):
            defaults = {
                "lr": lr,
                "momentum": momentum,
                "weight_decay": decay,
                "trust": trust,
            }
            super().__init__(params, defaults)

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    change = p.grad
                    if p.ndim > 1:
                        change = change.add(p, alpha=group["weight_decay"])
                        weight, update = torch.norm(p), torch.norm(change)
                        one = torch.ones_like(weight)
                        ratio = torch.where(
                            weight > 0.0,
                            torch.where(
                                update > 0, group["trust"] * weight / update, one
                            ),
                            one,
                        )
                        change = change.mul(ratio)
                    state = self.state[p]
                    if "mu" not in state:
                        state["mu"] = torch.zeros_like(p)
                    state["mu"].mul_(group["momentum"]).add_(change)
                    p.add_(state["mu"], alpha=-group["lr"])

    return LARS


def sgld(torch: Any) -> Any:
    class SGLD(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-2, noise=0.1):
            super().__init__(params, {"lr": lr, "noise": noise})

        def step(self):
            with torch.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        noise = torch.randn_like(p) * group["noise"]
                        p.add_(p.grad, alpha=-0.5 * group["lr"])
                        p.add_(noise, alpha=group["lr"] ** 0.5)

    return SGLD


def lookahead(torch: Any) -> Any:
    """Wraps another optimizer, counts in a tensor, walks lists by `foreach`."""

    class Lookahead(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1, k=2, alpha=0.5):
            super().__init__(params, {"lr": lr})
            self.inner = torch.optim.SGD(self.param_groups, lr=lr, momentum=0.5)
            self.k, self.alpha, self.count = k, alpha, 0
            params = self.param_groups[0]["params"]
            self.slow = [p.detach().clone() for p in params]

        @torch.no_grad()
        def step(self):
            self.inner.step()
            self.count += 1
            if self.count % self.k == 0:
                params = self.param_groups[0]["params"]
                torch._foreach_lerp_(self.slow, params, self.alpha)
                torch._foreach_copy_(params, self.slow)

    return Lookahead


MAKERS = {
    "Adam": hand_written_adam,
    "Lion": lion,
    "LARS": lars,
    "SGLD": sgld,
    "Lookahead": lookahead,
}


def model(torch: Any) -> list[Any]:
    values = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]
    return [
        torch.nn.Parameter(torch.tensor(values)),
        torch.nn.Parameter(torch.tensor(values[0])),
    ]


def train(optimizer: Any, params: list[Any], n: int) -> None:
    for _ in range(n):
        optimizer.zero_grad()
        loss = ((params[0] * params[1]) ** 2).mean() + params[1].exp().sum()
        loss.backward()
        optimizer.step()
        loss.item()
        for group in optimizer.param_groups:
            group["lr"] *= 0.9


@case.over(*MAKERS)
def results(torch, name):
    params = model(torch)
    optimizer = MAKERS[name](torch)(params)
    train(optimizer, params, 5)
    yield [p.detach() for p in params], optimizer.state_dict()["state"]


@pytest.mark.parametrize("name", MAKERS)
def test_a_steady_step_is_one_program(name: str) -> None:
    import torchshim
    from torchshim._core.program import LOG

    torchshim.manual_seed(0)
    params = model(torchshim)
    optimizer = MAKERS[name](torchshim)(params)
    train(optimizer, params, 4)
    before = len(LOG)
    train(optimizer, params, 6)
    assert len(LOG) == before
