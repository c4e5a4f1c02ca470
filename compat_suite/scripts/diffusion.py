# compat: rtol=1e-3 atol=1e-4 seconds=8 (many steps of float32 sums in another order)
"""A toy diffusion model: cosine schedule, time embedding, EMA weights, sampling."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
T = 12


def cosine_beta_schedule(timesteps, s=0.008):
    x = torch.linspace(0, timesteps, timesteps + 1)
    alphas_cumprod = torch.cos(((x / timesteps) + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    betas = 1 - (alphas_cumprod[1:] / alphas_cumprod[:-1])
    return torch.clip(betas, 0.0001, 0.9999)


betas = cosine_beta_schedule(T)
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, dim=0)
alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)
print(betas, posterior_variance)


def extract(a, t, x_shape):
    out = a.gather(-1, t)
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, dim=2, hidden=32):
        super().__init__()
        self.time = nn.Sequential(
            SinusoidalPositionEmbeddings(8), nn.Linear(8, hidden), nn.SiLU()
        )
        self.inp = nn.Linear(dim, hidden)
        self.norm = nn.GroupNorm(4, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, dim)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        h = h + self.mid(F.silu(self.norm(h)))
        return self.out(F.silu(h))


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ours, theirs in zip(
            self.model.parameters(), model.parameters(), strict=True
        ):
            ours.lerp_(theirs, 1 - self.decay)


def q_sample(x_start, t, noise):
    a = extract(alphas_cumprod.sqrt(), t, x_start.shape)
    b = extract(torch.sqrt(1.0 - alphas_cumprod), t, x_start.shape)
    return a * x_start + b * noise


@torch.no_grad()
def p_sample(model, x, t, t_index):
    betas_t = extract(betas, t, x.shape)
    noise_share = extract((1.0 - alphas_cumprod).sqrt(), t, x.shape)
    recip = extract((1.0 / alphas).sqrt(), t, x.shape)
    mean = recip * (x - betas_t * model(x, t) / noise_share)
    if t_index == 0:
        return mean
    return mean + extract(posterior_variance, t, x.shape).sqrt() * torch.randn_like(x)


model = Denoiser()
ema = EMA(model, 0.9)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
for step in range(40):
    angle = torch.rand(48) * 2 * math.pi
    x = torch.stack((angle.cos(), angle.sin()), -1)
    t = torch.randint(0, T, (48,)).long()
    noise = torch.randn_like(x)
    loss = F.huber_loss(model(q_sample(x, t, noise), t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
    if step % 8 == 7:
        print(f"Loss at {step}: {loss.item():.5f}")

ema.model.eval()
img = torch.randn(16, 2)
for i in reversed(range(T)):
    img = p_sample(ema.model, img, torch.full((16,), i, dtype=torch.long), i)
print("radius", img.norm(dim=1).mean(), "sample", img[:2])
