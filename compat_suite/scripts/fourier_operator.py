# compat: rtol=1e-3 atol=1e-5 seconds=9 (many steps of float32 sums in another order)
"""A Fourier neural operator: complex weights, transforms, a relative loss."""

import operator
from functools import reduce

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class LpLoss:
    def __init__(self, d=2, p=2, size_average=True, reduction=True):
        assert d > 0 and p > 0
        self.d, self.p = d, p

    def rel(self, x, y):
        n = x.size()[0]
        diff = torch.norm(x.reshape(n, -1) - y.reshape(n, -1), self.p, 1)
        return torch.sum(diff / torch.norm(y.reshape(n, -1), self.p, 1))

    def __call__(self, x, y):
        return self.rel(x, y)


class SpectralConv1d(nn.Module):
    def __init__(self, i, o, modes1):
        super().__init__()
        self.out_channels, self.modes1 = o, modes1
        self.scale = 1 / (i * o)
        self.weights1 = nn.Parameter(
            self.scale * torch.rand(i, o, self.modes1, dtype=torch.cfloat)
        )

    def compl_mul1d(self, input, weights):
        return torch.einsum("bix,iox->box", input, weights)

    def forward(self, x):
        b = x.shape[0]
        x_ft = torch.fft.rfft(x)
        out_ft = torch.zeros(
            b,
            self.out_channels,
            x.size(-1) // 2 + 1,
            device=x.device,
            dtype=torch.cfloat,
        )
        out_ft[:, :, : self.modes1] = self.compl_mul1d(
            x_ft[:, :, : self.modes1], self.weights1
        )
        return torch.fft.irfft(out_ft, n=x.size(-1))


class FNO1d(nn.Module):
    def __init__(self, modes, width):
        super().__init__()
        self.padding = 2
        self.p = nn.Linear(2, width)
        self.convs = nn.ModuleList(
            [SpectralConv1d(width, width, modes) for _ in range(2)]
        )
        self.ws = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in range(2)])
        self.q1, self.q2 = nn.Linear(width, 16), nn.Linear(16, 1)

    def forward(self, x):
        x = torch.cat((x, self.get_grid(x.shape)), dim=-1)
        x = self.p(x).permute(0, 2, 1)
        for c, w in zip(self.convs, self.ws, strict=True):
            x = F.gelu(c(x) + w(x))
        x = x.permute(0, 2, 1)
        return self.q2(F.gelu(self.q1(x)))

    def get_grid(self, shape):
        return torch.linspace(0, 1, shape[1]).reshape(1, -1, 1).repeat([shape[0], 1, 1])


def count_params(model):
    c = 0
    for p in list(model.parameters()):
        c += reduce(operator.mul, (*p.size(), 2) if p.is_complex() else p.size())
    return c


grid = torch.linspace(0, 1, 32)
coef = torch.randn(40, 4) / torch.arange(1, 5)
a = sum(coef[:, k : k + 1] * torch.sin((k + 1) * torch.pi * grid) for k in range(4))
u = sum(
    coef[:, k : k + 1]
    * torch.exp(torch.tensor(-0.1 * (k + 1) ** 2))
    * torch.sin((k + 1) * torch.pi * grid)
    for k in range(4)
)
model = FNO1d(6, 12)
print(model)
print(count_params(model))
opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=5, gamma=0.5)
myloss = LpLoss()
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(a[:32, :, None], u[:32]), batch_size=8, shuffle=True
)
for ep in range(12):
    tot = mse_t = 0
    for x, y in loader:
        opt.zero_grad()
        out = model(x)
        mse = F.mse_loss(out.view(len(x), -1), y.view(len(x), -1), reduction="mean")
        l2 = myloss(out.view(len(x), -1), y.view(len(x), -1))
        l2.backward()
        opt.step()
        tot += l2.item()
        mse_t += mse.item()
    sched.step()
    if ep % 4 == 3:
        print(
            ep, round(mse_t / len(loader), 5), round(tot / 32, 5), sched.get_last_lr()
        )
with torch.no_grad():
    print(myloss(model(a[32:, :, None]).squeeze(-1), u[32:]).item() / 8)


class SpectralConv2d(nn.Module):
    def __init__(self, i, o, m1, m2):
        super().__init__()
        self.o, self.m1, self.m2 = o, m1, m2
        s = 1 / (i * o)
        self.weights1 = nn.Parameter(s * torch.rand(i, o, m1, m2, dtype=torch.cfloat))
        self.weights2 = nn.Parameter(s * torch.rand(i, o, m1, m2, dtype=torch.cfloat))

    def forward(self, x):
        x_ft = torch.fft.rfft2(x)
        out_ft = torch.zeros(
            x.shape[0], self.o, x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat
        )
        out_ft[:, :, : self.m1, : self.m2] = torch.einsum(
            "bixy,ioxy->boxy", x_ft[:, :, : self.m1, : self.m2], self.weights1
        )
        out_ft[:, :, -self.m1 :, : self.m2] = torch.einsum(
            "bixy,ioxy->boxy", x_ft[:, :, -self.m1 :, : self.m2], self.weights2
        )
        return torch.fft.irfft2(out_ft, s=(x.size(-2), x.size(-1)))


c2 = SpectralConv2d(2, 3, 3, 3)
x2 = torch.randn(2, 2, 12, 12, requires_grad=True)
y2 = c2(x2)
y2.square().mean().backward()
print(
    y2.shape,
    c2.weights1.grad.dtype,
    c2.weights1.grad.abs().sum(),
    x2.grad.norm(),
    c2.weights2.grad[0, 0, 0],
)
