# compat: rtol=1e-3 atol=1e-5 seconds=4 (steps of training)
"""Sharpness-aware minimization, averaged weights, and an optimizer from a paper."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.optimizer import Optimizer
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

torch.manual_seed(0)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, adaptive=False, **kwargs):
        assert rho >= 0.0, f"Invalid rho, should be non-negative: {rho}"
        defaults = dict(rho=rho, adaptive=adaptive, **kwargs)
        super().__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                e_w = (
                    (torch.pow(p, 2) if group["adaptive"] else 1.0)
                    * p.grad
                    * scale.to(p)
                )
                p.add_(e_w)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        assert closure is not None
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()

    def _grad_norm(self):
        shared_device = self.param_groups[0]["params"][0].device
        norm = torch.norm(
            torch.stack(
                [
                    ((torch.abs(p) if group["adaptive"] else 1.0) * p.grad)
                    .norm(p=2)
                    .to(shared_device)
                    for group in self.param_groups
                    for p in group["params"]
                    if p.grad is not None
                ]
            ),
            p=2,
        )
        return norm

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        self.base_optimizer.param_groups = self.param_groups


X, Y = torch.randn(32, 6), torch.randint(3, (32,))


def mk():
    return nn.Sequential(
        nn.Linear(6, 16),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(16, 3),
    )


model = mk()
opt = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9, adaptive=True)
for i in range(3):
    loss = F.cross_entropy(model(X), Y, label_smoothing=0.1)
    loss.backward()
    opt.first_step(zero_grad=True)
    F.cross_entropy(model(X), Y).backward()
    opt.second_step(zero_grad=True)
    print(i, f"{loss.item():.4f}")
opt = torch.optim.SGD(model.parameters(), lr=0.1)
swa = AveragedModel(model)
sch = SWALR(opt, swa_lr=0.05, anneal_epochs=3)
lrs = []
for _ in range(4):
    swa.update_parameters(model)
    opt.step()
    sch.step()
    lrs.append(round(opt.param_groups[0]["lr"], 5))
update_bn([X[:16], X[16:]], swa)
print(lrs, swa.module[1].running_mean[:3])


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(
            params, {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        )

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
                grad = p.grad
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                beta1, beta2 = group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss


net = nn.Linear(6, 3)
o = Lion(net.parameters(), lr=1e-2, weight_decay=0.1)
for _ in range(3):

    def c():
        o.zero_grad()
        loss = F.cross_entropy(net(X), Y)
        loss.backward()
        return loss

    print(f"{o.step(c).item():.5f}")
print({k: list(v.keys()) for k, v in o.state_dict()["state"].items()})
