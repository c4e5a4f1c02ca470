# compat: rtol=1e-3 atol=1e-5 seconds=6 (many steps of float32 sums in another order)
"""Optimizers written by users: Lion, LARS-like SGD and Lookahead around another."""

from collections import defaultdict

import torch
from torch import nn
from torch.optim.optimizer import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                grad, state = p.grad, self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                beta1, beta2 = group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss


class LARS(Optimizer):
    def __init__(self, params, lr, momentum=0.9, trust=0.02):
        super().__init__(params, {"lr": lr, "momentum": momentum, "trust": trust})

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad.data
                w_norm, g_norm = torch.norm(p.data), torch.norm(d_p)
                one = torch.ones_like(w_norm)
                ratio = torch.where(
                    w_norm > 0, torch.where(g_norm > 0, w_norm / g_norm, one), one
                )
                param_state = self.state[p]
                if "momentum_buffer" not in param_state:
                    buf = param_state["momentum_buffer"] = torch.clone(d_p).detach()
                else:
                    buf = param_state["momentum_buffer"]
                    buf.mul_(group["momentum"]).add_(d_p * ratio * group["trust"])
                p.data.add_(buf, alpha=-group["lr"])


class Lookahead(Optimizer):
    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha = optimizer, k, alpha
        self.param_groups = optimizer.param_groups
        self.state = defaultdict(dict)
        self.counter = 0

    def update_slow(self, group):
        for fast in group["params"]:
            param_state = self.state[fast]
            if "slow_param" not in param_state:
                param_state["slow_param"] = torch.empty_like(fast.data)
                param_state["slow_param"].copy_(fast.data)
            slow = param_state["slow_param"]
            slow += (fast.data - slow) * self.alpha
            fast.data.copy_(slow)

    def step(self, closure=None):
        loss = self.optimizer.step(closure)
        self.counter += 1
        if self.counter % self.k == 0:
            for group in self.param_groups:
                self.update_slow(group)
        return loss

    def zero_grad(self):
        self.optimizer.zero_grad()


torch.manual_seed(21)
X = torch.randn(48, 5)
y = (X @ torch.randn(5, 1)).tanh() + 0.1 * X[:, :1] ** 2
makers = {
    "lion": lambda p: Lion(p, lr=1e-2, weight_decay=1e-2),
    "lars": lambda p: LARS(p, lr=0.05),
    "lookahead": lambda p: Lookahead(torch.optim.Adam(p, lr=2e-2)),
}
for name, make in makers.items():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))
    optimizer = make(model.parameters())
    for step in range(30):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(X), y)
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"{name} {step} {loss.item():.5f}")
    state = next(iter(optimizer.state.values()))
    print({k: tuple(v.shape) for k, v in state.items()})

model = nn.Linear(5, 1)
optimizer = Lion(model.parameters(), lr=1e-2)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.l1_loss(model(X), y)
    loss.backward()
    return loss


print(f"closure {optimizer.step(closure).item():.5f} {optimizer.step(closure):.5f}")
print(optimizer)
try:
    Lion(model.parameters(), lr=-1.0)
except ValueError as error:
    print(error)
