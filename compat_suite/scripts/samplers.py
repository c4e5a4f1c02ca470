# compat: rtol=1e-3 atol=1e-5 seconds=14 (many steps of float32 sums in another order)
"""Metropolis, Hamiltonian and Langevin samplers; Bayes by backprop; dropout."""

import math

import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)
mix = D.MixtureSameFamily(
    D.Categorical(torch.tensor([0.3, 0.7])),
    D.MultivariateNormal(
        torch.tensor([[-2.0, 0.0], [2.0, 1.0]]),
        torch.stack([torch.eye(2), torch.tensor([[1.0, 0.5], [0.5, 2.0]])]),
    ),
)
print(mix)


def metropolis(logp, x0, n, scale):
    x, lp, acc, out = x0, logp(x0), 0, []
    for _ in range(n):
        y = x + scale * torch.randn_like(x)
        lq = logp(y)
        if torch.rand(()) < torch.exp(lq - lp):
            x, lp, acc = y, lq, acc + 1
        out.append(x)
    return torch.stack(out), acc / n


s, a = metropolis(mix.log_prob, torch.zeros(2), 200, 1.5)
print(s.mean(0), s.std(0), a)


def hmc(logp, x, n, eps, L):
    xs, accepted = [], 0
    for _ in range(n):
        p = torch.randn_like(x)
        q = x.clone().requires_grad_()
        h0 = -logp(q) + 0.5 * p.dot(p)
        g = torch.autograd.grad(-logp(q), q)[0]
        pp = p - 0.5 * eps * g
        for leap in range(L):
            q = (q + eps * pp).detach().requires_grad_()
            g = torch.autograd.grad(-logp(q), q)[0]
            pp = pp - (eps if leap < L - 1 else 0.5 * eps) * g
        h1 = -logp(q) + 0.5 * pp.dot(pp)
        if torch.rand(1).log() < (h0 - h1):
            x = q.detach()
            accepted += 1
        xs.append(x)
    return torch.stack(xs), accepted / n


xs, rate = hmc(mix.log_prob, torch.ones(2), 60, 0.2, 8)
print(xs.mean(0), rate, xs[-1])
# SGLD
torch.set_default_dtype(torch.float32)
w_true = torch.tensor([1.5, -2.0, 0.5])
X = torch.randn(200, 3)
y = torch.bernoulli(torch.sigmoid(X @ w_true))


class SGLD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, addnoise=True):
        super().__init__(params, {"lr": lr, "addnoise": addnoise})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.add_(p.grad, alpha=-0.5 * group["lr"])
                if group["addnoise"]:
                    p.add_(torch.randn_like(p) * math.sqrt(group["lr"]))


w = nn.Parameter(torch.zeros(3))
opt = SGLD([w], lr=1e-2)
print(opt)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda t: (1 + t) ** -0.55)
trace = []
for _ in range(200):
    i = torch.randperm(200)[:50]
    nlp = (
        200 / 50 * F.binary_cross_entropy_with_logits(X[i] @ w, y[i], reduction="sum")
        + 0.5 * w.pow(2).sum()
    )
    opt.zero_grad()
    nlp.backward()
    opt.step()
    sched.step()
    trace.append(w.detach().clone())
trace = torch.stack(trace)
print(trace[100:].mean(0), trace[100:].var(0), f"{opt.param_groups[0]['lr']:.3e}")


# Bayes by backprop
class BayesLinear(nn.Module):
    def __init__(self, i, o, prior):
        super().__init__()
        self.mu = nn.Parameter(torch.empty(o, i).normal_(0, 0.1))
        self.rho = nn.Parameter(torch.full((o, i), -3.0))
        self.bmu = nn.Parameter(torch.zeros(o))
        self.brho = nn.Parameter(torch.full((o,), -3.0))
        self.prior = prior

    def forward(self, x):
        qw = D.Normal(self.mu, F.softplus(self.rho))
        qb = D.Normal(self.bmu, F.softplus(self.brho))
        w, b = qw.rsample(), qb.rsample()
        self.kl = (
            D.kl_divergence(qw, self.prior).sum()
            + D.kl_divergence(qb, self.prior).sum()
        )
        return F.linear(x, w, b)


prior = D.Normal(0.0, 1.0)
net = nn.Sequential(BayesLinear(1, 16, prior), nn.Tanh(), BayesLinear(16, 1, prior))
print(net)
x = torch.linspace(-2, 2, 40)[:, None]
t = torch.sin(2 * x) + 0.1 * torch.randn_like(x)
opt = torch.optim.Adam(net.parameters(), 1e-2)
for it in range(100):
    nll = -D.Normal(net(x), 0.1).log_prob(t).sum()
    kl = sum(m.kl for m in net if hasattr(m, "kl"))
    loss = nll + kl
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 25 == 24:
        print(f"{it}: nll {nll.item():.2f} kl {kl.item():.2f}")
with torch.no_grad():
    preds = torch.stack([net(torch.tensor([[0.0], [3.0]])) for _ in range(20)])
print(preds.mean(0).squeeze(), preds.std(0).squeeze())
# MC dropout
mc = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
opt = torch.optim.Adam(mc.parameters(), 1e-2)
for _ in range(60):
    loss = F.mse_loss(mc(x), t)
    opt.zero_grad()
    loss.backward()
    opt.step()
mc.eval()
for m in mc.modules():
    if isinstance(m, nn.Dropout):
        m.train()
with torch.no_grad():
    p = torch.stack([mc(x[::10]) for _ in range(30)])
print(loss.item(), p.mean(0).squeeze(), p.std(0).squeeze())
