# compat: rtol=1e-3 atol=1e-5 seconds=14 (sums in another order)
"""Bodies, cloth, fields, fitted equations, ray marching, a soft rasterizer, poses."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

torch.manual_seed(0)


# N-body w/ leapfrog, learn masses
def acc(p, m):
    d = p[None] - p[:, None]
    r2 = (d**2).sum(-1) + 0.05
    inv = r2.pow(-1.5)
    return (d * inv[..., None] * m[None, :, None]).sum(1)


p0, v0 = torch.randn(5, 2), torch.randn(5, 2) * 0.1
mt = torch.rand(5) + 0.5


def sim(m, n=15, dt=0.02):
    p, v = p0.clone(), v0.clone()
    tr = []
    for _ in range(n):
        v = v + 0.5 * dt * acc(p, m)
        p = p + dt * v
        v = v + 0.5 * dt * acc(p, m)
        tr.append(p)
    return torch.stack(tr)


T = sim(mt)
lm = torch.zeros(5, requires_grad=True)
opt = torch.optim.Adam([lm], 0.1)
for i in range(5):
    loss = ((sim(lm.exp()) - T) ** 2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, loss.item())
print(lm.exp(), mt)
# cloth / mass spring
N = 5
idx = torch.arange(N * N).view(N, N)
E = torch.cat(
    [
        torch.stack([idx[:, :-1].reshape(-1), idx[:, 1:].reshape(-1)], 1),
        torch.stack([idx[:-1].reshape(-1), idx[1:].reshape(-1)], 1),
    ]
)
x = torch.stack(
    [
        *torch.meshgrid(
            torch.linspace(0, 1, N), torch.linspace(0, 1, N), indexing="ij"
        ),
        torch.zeros(N, N),
    ],
    -1,
).view(-1, 3)
rest = (x[E[:, 0]] - x[E[:, 1]]).norm(dim=1)
v = torch.zeros_like(x)
k = torch.tensor(50.0, requires_grad=True)
for _ in range(20):
    d = x[E[:, 1]] - x[E[:, 0]]
    ln = d.norm(dim=1, keepdim=True)
    f = k * (ln - rest[:, None]) * d / ln
    F = torch.zeros_like(x).index_add(0, E[:, 0], f).index_add(0, E[:, 1], -f)
    F = F + torch.tensor([0, 0, -1.0])
    v = 0.99 * (v + 0.01 * F)
    v = v * torch.ones_like(v).index_fill(0, torch.tensor([0, N - 1]), 0.0)
    x = x + 0.01 * v
x[:, 2].mean().backward()
print(x[12], k.grad)
# heat eq / wave by conv, game of life, reaction diffusion
lap = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])[None, None]
u = torch.zeros(1, 1, 16, 16)
u[..., 8, 8] = 1
for _ in range(20):
    u = u + 0.2 * torch.nn.functional.conv2d(
        torch.nn.functional.pad(u, (1, 1, 1, 1), mode="circular"), lap
    )
print(u.sum(), u[0, 0, 8, 6:11])
A, B = torch.ones(12, 12), torch.zeros(12, 12)
B[5:8, 5:8] = 1


def L(z):
    return sum(torch.roll(z, s, d) for s in (-1, 1) for d in (0, 1)) - 4 * z


for _ in range(30):
    r = A * B * B
    A, B = A + (0.16 * L(A) - r + 0.06 * (1 - A)), B + (0.08 * L(B) + r - 0.122 * B)
print(A.mean(), B.max())
life = (torch.rand(10, 10) > 0.6).int()
for _ in range(5):
    n = sum(
        torch.roll(life, (i, j), (0, 1))
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    )
    life = ((n == 3) | ((life == 1) & (n == 2))).int()
    print(life.sum().item(), end=" ")
print()
# Lotka-Volterra fit, RK4, forward sensitivity
th = torch.tensor([1.1, 0.4, 0.1, 0.4], requires_grad=True)
truth = torch.tensor([1.0, 0.5, 0.12, 0.35])


def lv(y, t):
    return torch.stack(
        [t[0] * y[0] - t[1] * y[0] * y[1], t[2] * y[0] * y[1] - t[3] * y[1]]
    )


def rk4(t, n=25, h=0.2):
    y = torch.tensor([2.0, 1.0])
    out = [y]
    for _ in range(n):
        k1 = lv(y, t)
        k2 = lv(y + h / 2 * k1, t)
        k3 = lv(y + h / 2 * k2, t)
        k4 = lv(y + h * k3, t)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(y)
    return torch.stack(out)


obs = rk4(truth)
opt = torch.optim.LBFGS([th], lr=0.5, max_iter=5)


def cl():
    opt.zero_grad()
    loss = (rk4(th) - obs).pow(2).mean()
    loss.backward()
    return loss


for i in range(3):
    print(i, opt.step(cl).item())
print(th)


# ray marching SDF w/ normals by autograd
def sdf(p, c, r):
    return torch.minimum((p - c).norm(dim=-1) - r, p[..., 1] + 1.0)


H = W = 10
yy, xx = torch.meshgrid(
    torch.linspace(1, -1, H), torch.linspace(-1, 1, W), indexing="ij"
)
d = torch.nn.functional.normalize(
    torch.stack([xx, yy, -torch.ones_like(xx)], -1), dim=-1
)
o = torch.tensor([0.0, 0.0, 3.0])
t = torch.zeros(H, W)
c, r = torch.zeros(3, requires_grad=True), torch.tensor(1.0, requires_grad=True)
with torch.no_grad():
    for _ in range(20):
        t = t + sdf(o + t[..., None] * d, c, r).clamp(max=0.5)
pt = (o + t[..., None] * d).detach().requires_grad_()
(n,) = torch.autograd.grad(sdf(pt, c, r).sum(), pt, create_graph=True)
sh = (n * torch.nn.functional.normalize(torch.tensor([1.0, 1, 1]), dim=0)).sum(
    -1
).clamp(0) * (t < 8)
print(sh[4], sh.mean())
sh.sum().backward()
print(c.grad, r.grad)
print("".join(" .:-=+*#%@"[min(9, int(v * 10))] for v in sh[4].tolist()))
# soft rasterizer
V = torch.tensor([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.6]], requires_grad=True)
g = torch.stack(
    torch.meshgrid(torch.linspace(-1, 1, 12), torch.linspace(-1, 1, 12), indexing="xy"),
    -1,
)


def edge(a, b, p):
    return (p[..., 0] - a[0]) * (b[1] - a[1]) - (p[..., 1] - a[1]) * (b[0] - a[0])


tgt = ((g + 0.2).norm(dim=-1) < 0.6).float()
opt = torch.optim.SGD([V], 0.5)
for i in range(4):
    m = torch.sigmoid(
        -20 * torch.stack([edge(V[i], V[(i + 1) % 3], g) for i in range(3)]).amax(0)
    )
    loss = (m - tgt).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, loss.item())
print(V)


# quaternion / se3 / ICP / Kabsch / bundle-like Gauss-Newton
class Pose(NamedTuple):
    R: Tensor
    t: Tensor


def hat(w):
    z = torch.zeros(())
    return torch.stack(
        [
            torch.stack([z, -w[2], w[1]]),
            torch.stack([w[2], z, -w[0]]),
            torch.stack([-w[1], w[0], z]),
        ]
    )


Rt = torch.linalg.matrix_exp(hat(torch.tensor([0.1, 0.2, 0.3])))
P = torch.randn(20, 3)
Q = P @ Rt.T + torch.tensor([1.0, 2, 3])
pc, qc = P.mean(0), Q.mean(0)
U, S, Vh = torch.linalg.svd((P - pc).T @ (Q - qc))
D = torch.diag(torch.tensor([1.0, 1.0, torch.sign(torch.linalg.det(Vh.T @ U.T))]))
R = Vh.T @ D @ U.T
pose = Pose(R, qc - R @ pc)
print(pose, torch.dist(R, Rt) < 1e-5)
xi = torch.zeros(6)
for _ in range(4):

    def res(z):
        return ((P @ torch.linalg.matrix_exp(hat(z[:3])).T + z[3:]) - Q).flatten()

    J = torch.func.jacfwd(res)(xi)
    rr = res(xi)
    dx = torch.linalg.solve(J.T @ J + 1e-6 * torch.eye(6), -J.T @ rr)
    xi = xi + dx
    print(rr.norm().item())
print(xi)


def slerp(a, b, t):
    om = torch.acos((a * b).sum().clamp(-1, 1))
    return (torch.sin((1 - t) * om) * a + torch.sin(t * om) * b) / torch.sin(om)


print(
    slerp(torch.tensor([1.0, 0, 0, 0]), torch.tensor([0.0, 1, 0, 0]), torch.tensor(0.3))
)
# mandelbrot complex, FFT poisson
y, x_ = torch.meshgrid(
    torch.linspace(-1.2, 1.2, 9), torch.linspace(-2, 0.6, 12), indexing="ij"
)
cc = torch.complex(x_, y)
z = torch.zeros_like(cc)
ns = torch.zeros(9, 12, dtype=torch.int)
for _ in range(20):
    z = z * z + cc
    ns += (z.abs() < 2).int()
    z[z.abs() > 4] = 4
print(ns)
f = torch.randn(16, 16)
f -= f.mean()
kx = torch.fft.fftfreq(16, 1 / 16)
K2 = -(kx[:, None] ** 2 + kx[None] ** 2) * 4 * math.pi**2
K2[0, 0] = 1
ph = torch.fft.ifft2(torch.fft.fft2(f) / K2).real
print(ph.std(), torch.fft.fftshift(kx))
# Ising Metropolis
s = torch.randint(0, 2, (8, 8)) * 2 - 1
cb = (torch.arange(8)[:, None] + torch.arange(8)) % 2
for _sw in range(10):
    for c_ in (0, 1):
        nb = sum(torch.roll(s, k, dd) for k in (-1, 1) for dd in (0, 1))
        dE = 2 * s * nb
        flip = (torch.rand(8, 8) < torch.exp(-dE / 2.0)) & (cb == c_)
        s = torch.where(flip, -s, s)
print(s.float().mean(), s)
