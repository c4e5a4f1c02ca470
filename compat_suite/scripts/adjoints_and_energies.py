# compat: rtol=1e-3 atol=2e-3 seconds=6 (training, chains and their rounding)
"""ODEs by their adjoints, scores, energies, chains, flows, transport, soft sorting."""

import itertools
import math

import numpy as np
import torch
import torch.distributions as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import (
    Independent,
    Normal,
    TransformedDistribution,
    biject_to,
    constraints,
    kl_divergence,
)
from torch.distributions import (
    transforms as T,
)

torch.manual_seed(0)


class OdeintAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, flat, *params):
        ctx.func, ctx.params = func, params
        with torch.no_grad():
            ys = [y0]
            for t0, t1 in itertools.pairwise(t):
                ys.append(rk4(func, ys[-1], t0, t1 - t0))
            y = torch.stack(ys)
        ctx.save_for_backward(t, y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        t, y = ctx.saved_tensors
        func, params = ctx.func, ctx.params
        with torch.no_grad():
            adj = grad_y[-1]
            gp = [torch.zeros_like(p) for p in params]
            for i in range(len(t) - 1, 0, -1):
                dt = t[i - 1] - t[i]
                with torch.enable_grad():
                    yi = y[i].detach().requires_grad_(True)
                    f = func(t[i], yi)
                    vjp_y, *vjp_p = torch.autograd.grad(
                        f, (yi, *params), -adj, allow_unused=True
                    )
                adj = adj + dt * vjp_y + grad_y[i - 1]
                gp = [
                    g + dt * (v if v is not None else 0)
                    for g, v in zip(gp, vjp_p, strict=False)
                ]
        return (None, adj, None, None, *gp)


def rk4(func, y, t, dt):
    k1 = func(t, y)
    k2 = func(t + dt / 3, y + dt * k1 / 3)
    k3 = func(t + dt * 2 / 3, y + dt * (k2 - k1 / 3))
    k4 = func(t + dt, y + dt * (k1 - k2 + k3))
    return y + (k1 + 3 * (k2 + k3) + k4) * dt * 0.125


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
t = torch.linspace(0.0, 2.0, 21)
with torch.no_grad():
    ys = [torch.tensor([[2.0, 0.0]])]
    for a, b in itertools.pairwise(t):
        ys.append(rk4(lambda t, y: torch.mm(y**3, true_A), ys[-1], a, b - a))
    true_y = torch.stack(ys)
print(true_y[-1])
func = ODEFunc()
opt = torch.optim.RMSprop(func.parameters(), lr=1e-3)
np.random.seed(0)
for itr in range(1, 9):
    s = torch.from_numpy(
        np.random.choice(np.arange(15, dtype=np.int64), 4, replace=False)
    )
    by0, bt = true_y[s], t[:5]
    by = torch.stack([true_y[s + i] for i in range(5)], dim=0)
    opt.zero_grad()
    pred = OdeintAdjoint.apply(func, by0, bt, None, *func.parameters())
    loss = torch.mean(torch.abs(pred - by))
    loss.backward()
    opt.step()
    if itr % 4 == 0:
        print(f"Iter {itr:04d} | Total Loss {loss.item():.6f} | nfe {func.nfe}")


# EDM
class Denoiser(nn.Module):
    def __init__(self, sigma_data=0.5):
        super().__init__()
        self.sigma_data = sigma_data
        self.net = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x, sigma):
        sigma = torch.as_tensor(sigma, dtype=torch.float32).reshape(-1, 1)
        c_skip = self.sigma_data**2 / (sigma**2 + self.sigma_data**2)
        c_out = sigma * self.sigma_data / (sigma**2 + self.sigma_data**2).sqrt()
        c_in = 1 / (self.sigma_data**2 + sigma**2).sqrt()
        c_noise = sigma.log() / 4
        return c_skip * x + c_out * self.net(
            torch.cat([c_in * x, c_noise.expand(len(x), 1)], 1)
        )


@torch.no_grad()
def edm_sampler(
    net,
    latents,
    num_steps=8,
    sigma_min=0.002,
    sigma_max=10,
    rho=7,
    S_churn=2,
    S_min=0,
    S_max=float("inf"),
    S_noise=1,
):
    step_indices = torch.arange(num_steps, dtype=torch.float64)
    t_steps = (
        sigma_max ** (1 / rho)
        + step_indices
        / (num_steps - 1)
        * (sigma_min ** (1 / rho) - sigma_max ** (1 / rho))
    ) ** rho
    t_steps = torch.cat([torch.as_tensor(t_steps), torch.zeros_like(t_steps[:1])])
    x_next = latents.to(torch.float64) * t_steps[0]
    for i, (t_cur, t_next) in enumerate(itertools.pairwise(t_steps)):
        x_cur = x_next
        gamma = (
            min(S_churn / num_steps, np.sqrt(2) - 1) if S_min <= t_cur <= S_max else 0
        )
        t_hat = torch.as_tensor(t_cur + gamma * t_cur)
        x_hat = x_cur + (t_hat**2 - t_cur**2).sqrt() * S_noise * torch.randn_like(x_cur)
        denoised = net(x_hat.float(), t_hat).to(torch.float64)
        d_cur = (x_hat - denoised) / t_hat
        x_next = x_hat + (t_next - t_hat) * d_cur
        if i < num_steps - 1:
            denoised = net(x_next.float(), t_next).to(torch.float64)
            d_prime = (x_next - denoised) / t_next
            x_next = x_hat + (t_next - t_hat) * (0.5 * d_cur + 0.5 * d_prime)
    return x_next


net = Denoiser()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _i in range(15):
    th = torch.rand(64) * 2 * math.pi
    y = torch.stack([th.cos(), th.sin()], 1) * 0.7
    sigma = (torch.randn(64, 1) * 1.2 - 1.2).exp()
    w = (sigma**2 + 0.25) / (sigma * 0.5) ** 2
    loss = (w * (net(y + torch.randn_like(y) * sigma, sigma) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"edm {loss.item():.4f}")
s = edm_sampler(net, torch.randn(16, 2))
print(s.dtype, s.shape, round(s.norm(dim=1).mean().item(), 3))

# sliced score matching + Langevin
score = nn.Sequential(nn.Linear(2, 32), nn.Softplus(), nn.Linear(32, 2))
opt = torch.optim.Adam(score.parameters(), 1e-2)
for _i in range(10):
    x = torch.randn(64, 2) @ torch.tensor([[1.0, 0.5], [0.0, 0.5]])
    x.requires_grad_(True)
    v = torch.randn_like(x).sign()
    sc = score(x)
    sv = (sc * v).sum()
    g = torch.autograd.grad(sv, x, create_graph=True)[0]
    loss = ((v * g).sum(-1) + 0.5 * (sc**2).sum(-1)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"ssm {loss:.4f}")
x = torch.zeros(8, 2)
for _ in range(20):
    x = x + 0.05 * score(x).detach() + math.sqrt(0.1) * torch.randn_like(x)
print(round(x.std().item(), 3))


# energy-based with replay buffer
class EBM(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(
            nn.utils.parametrizations.spectral_norm(nn.Linear(2, 16)),
            nn.LeakyReLU(0.2),
            nn.Linear(16, 1),
        )

    def forward(self, x):
        return self.f(x).squeeze(-1)


ebm = EBM()
buf = torch.rand(50, 2) * 2 - 1
opt = torch.optim.Adam(ebm.parameters(), 1e-2, betas=(0.0, 0.999))
for _it in range(4):
    idx = torch.randint(0, 50, (16,))
    xs = buf[idx].clone()
    fresh = torch.rand(16) < 0.05
    xs[fresh] = torch.rand(int(fresh.sum()), 2) * 2 - 1
    for p in ebm.parameters():
        p.requires_grad = False
    ebm.eval()
    xs.requires_grad = True
    for _ in range(5):
        xs.data.add_(0.01 * torch.randn_like(xs)).clamp_(-1, 1)
        e = -ebm(xs)
        e.sum().backward()
        xs.grad.data.clamp_(-0.03, 0.03)
        xs.data.add_(-10 * xs.grad.data)
        xs.grad.detach_()
        xs.grad.zero_()
        xs.data.clamp_(-1, 1)
    for p in ebm.parameters():
        p.requires_grad = True
    ebm.train()
    buf[idx] = xs.detach()
    real = torch.randn(16, 2) * 0.1 + 0.5
    rf, ff = ebm(real), ebm(xs.detach())
    loss = 0.1 * (rf**2 + ff**2).mean() + ff.mean() - rf.mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(ebm.parameters(), 0.1)
    opt.step()
    print(f"ebm {loss.item():.4f}")


# HMC on banana + SVI with reparam + Bayes by backprop
def logp(q):
    return -0.5 * (q[0] ** 2 / 2 + (q[1] - q[0] ** 2) ** 2)


q, acc, samples = torch.zeros(2), 0, []
for _i in range(30):
    p = torch.randn(2)
    cq, cp = q.clone().requires_grad_(True), p.clone()
    h0 = -logp(q) + 0.5 * p.dot(p)
    for _ in range(5):
        (g,) = torch.autograd.grad(logp(cq), cq)
        cp = cp + 0.05 * g
        cq = (cq + 0.1 * cp).detach().requires_grad_(True)
        (g,) = torch.autograd.grad(logp(cq), cq)
        cp = cp + 0.05 * g
    h1 = -logp(cq) + 0.5 * cp @ cp
    if torch.rand(()) < torch.exp(h0 - h1):
        q, acc = cq.detach(), acc + 1
    samples.append(q)
print("hmc", acc, torch.stack(samples).mean(0))


class BayesLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.mu, self.rho = (
            nn.Parameter(torch.empty(o, i).uniform_(-0.2, 0.2)),
            nn.Parameter(torch.empty(o, i).uniform_(-5, -4)),
        )
        self.prior = Normal(0.0, 1.0)

    def forward(self, x):
        q = Normal(self.mu, F.softplus(self.rho))
        self.kl = kl_divergence(
            q, Normal(torch.zeros_like(self.mu), torch.ones_like(self.rho))
        ).sum()
        return F.linear(x, q.rsample())


bnn = nn.Sequential(BayesLinear(1, 16), nn.ReLU(), BayesLinear(16, 1))
opt = torch.optim.Adam(bnn.parameters(), 1e-2)
X = torch.linspace(-1, 1, 20)[:, None]
Y = X**3
for _i in range(10):
    out = torch.stack([bnn(X) for _ in range(3)])
    nll = -Normal(out, 0.1).log_prob(Y).mean(0).sum()
    kl = sum(m.kl for m in bnn if hasattr(m, "kl"))
    (nll + kl / 10).backward()
    opt.step()
    opt.zero_grad()
print(f"bnn {nll:.2f} {kl:.2f}")
base = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
flow = TransformedDistribution(
    base,
    [
        T.AffineTransform(
            torch.tensor([1.0, 2.0]), torch.tensor([2.0, 0.5]), event_dim=1
        ),
        T.SigmoidTransform(),
        T.StickBreakingTransform(),
    ][:2],
)
z = flow.rsample((3,))
print(z.shape, flow.log_prob(z), flow)
print(
    biject_to(constraints.positive)(torch.tensor([-1.0, 2.0])),
    constraints.simplex.check(torch.tensor([0.5, 0.5])),
)
mix = dist.MixtureSameFamily(
    dist.Categorical(logits=torch.zeros(3)),
    Independent(Normal(torch.randn(3, 2), 1.0), 1),
)
print(mix.sample((2,)).shape, mix.log_prob(torch.zeros(2)), mix.mean.shape)


def sinkhorn(C, eps=0.1, n=30):
    mu, nu = (
        torch.full((C.size(0),), 1.0 / C.size(0)),
        torch.full((C.size(1),), 1.0 / C.size(1)),
    )
    u, v = torch.zeros_like(mu), torch.zeros_like(nu)
    for i in range(n):  # noqa: B007
        u1 = u
        u = (
            eps
            * (
                torch.log(mu + 1e-8)
                - torch.logsumexp((-C + u.unsqueeze(1) + v.unsqueeze(0)) / eps, dim=-1)
            )
            + u
        )
        v = (
            eps
            * (
                torch.log(nu + 1e-8)
                - torch.logsumexp(
                    ((-C + u.unsqueeze(1) + v.unsqueeze(0)) / eps).transpose(-2, -1),
                    dim=-1,
                )
            )
            + v
        )
        if (u - u1).abs().sum(-1).mean().item() < 1e-3:
            break
    pi = torch.exp((-C + u.unsqueeze(1) + v.unsqueeze(0)) / eps)
    return (pi * C).sum(), pi, i


a = torch.rand(6, 2, requires_grad=True)
b = torch.rand(5, 2) + 1
c, pi, n = sinkhorn(torch.cdist(a, b) ** 2)
c.backward()
print(f"sinkhorn {c:.4f}", pi.sum().item() > 0.99, n, a.grad.norm())


def soft_sort(s, tau=0.1):
    ss = s.sort(descending=True, dim=1)[0]
    pd = (
        s.transpose(1, 2).abs().neg()
        if s.dim() == 3
        else (s[:, None, :] - ss[:, :, None]).abs().neg()
    ) / tau
    return pd.softmax(-1)


s = torch.tensor([[0.3, 2.0, 1.1, -1.0]], requires_grad=True)
P = soft_sort(s)
print(P.argmax(-1), (P @ s[..., None]).squeeze())
