# compat: rtol=1e-5 atol=1e-6 seconds=8 (many steps of sums in another order)
"""A normalizing flow: affine couplings, an inverse, and the log-determinant checked."""

import math

import torch
from torch import Tensor, nn

torch.manual_seed(8)
# In float32 the gradients that ActNorm's start makes zero are rounding noise, which
# Adamax turns into steps of full size.
torch.set_default_dtype(torch.float64)


class ActNorm(nn.Module):
    """Scales and shifts that start from the first batch."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.training and not self.ready:
            with torch.no_grad():
                self.loc.copy_(-x.mean(0))
                self.log_scale.copy_(-torch.log(x.std(0) + 1e-6))
                self.ready.fill_(True)
        y = (x + self.loc) * self.log_scale.exp()
        return y, self.log_scale.sum().expand(x.size(0))

    def inverse(self, y: Tensor) -> Tensor:
        return y * torch.exp(-self.log_scale) - self.loc


class Coupling(nn.Module):
    def __init__(self, dim: int, flip: bool) -> None:
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(
            nn.Linear(dim // 2, 16), nn.SiLU(), nn.Linear(16, 16), nn.SiLU()
        )
        self.out = nn.Linear(16, dim)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def parameters_of(self, a: Tensor) -> tuple[Tensor, Tensor]:
        s, t = self.out(self.net(a)).chunk(2, dim=-1)
        return torch.tanh(s), t

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x.chunk(2, dim=-1)
        if self.flip:
            a, b = b, a
        s, t = self.parameters_of(a)
        b = b * s.exp() + t
        y = torch.cat([b, a] if self.flip else [a, b], dim=-1)
        return y, s.sum(-1)

    def inverse(self, y: Tensor) -> Tensor:
        a, b = y.chunk(2, dim=-1)
        if self.flip:
            a, b = b, a
        s, t = self.parameters_of(a)
        b = (b - t) * torch.exp(-s)
        return torch.cat([b, a] if self.flip else [a, b], dim=-1)


class Flow(nn.Module):
    def __init__(self, dim: int = 2, depth: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for i in range(depth):
            layers += [ActNorm(dim), Coupling(dim, flip=i % 2 == 1)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        log_det = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, extra = layer(x)
            log_det = log_det + extra
        return x, log_det

    def log_prob(self, x: Tensor) -> Tensor:
        z, log_det = self(x)
        return (-0.5 * (z**2 + math.log(2 * math.pi))).sum(-1) + log_det

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        z = torch.randn(n, 2)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def moons(n: int) -> Tensor:
    angle = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, torch.cos(angle), 1 - torch.cos(angle))
    y = torch.where(upper, torch.sin(angle), 0.5 - torch.sin(angle))
    return torch.stack((x, y), dim=1) + 0.05 * torch.randn(n, 2)


flow = Flow()
optimizer = torch.optim.Adamax(flow.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.97)
for step in range(30):
    loss = -flow.log_prob(moons(64)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 6 == 5:
        print(f"{step}: nll {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.6f}")

flow.eval()
points = moons(5)
z, log_det = flow(points)
back = z
for layer in reversed(flow.layers):
    back = layer.inverse(back)
print("inverse:", torch.allclose(back, points, atol=1e-4))
jacobian = torch.autograd.functional.jacobian(
    lambda p: flow(p.unsqueeze(0))[0].squeeze(0), points[0]
)
determinant = jacobian[0, 0] * jacobian[1, 1] - jacobian[0, 1] * jacobian[1, 0]
print("log det:", torch.allclose(determinant.abs().log(), log_det[0], atol=1e-4))
print(flow.sample(4), flow.log_prob(points))
