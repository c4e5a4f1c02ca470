# compat: rtol=1e-3 atol=1e-4 seconds=7 (third derivatives, sums in another order)
"""A physics-informed network: u'' + u = 0 and a heat equation, by autograd."""

import math

import torch
import torch.nn as nn

torch.manual_seed(123)


class FCN(nn.Module):
    def __init__(self, n_input, n_output, n_hidden, n_layers):
        super().__init__()
        activation = nn.Tanh
        self.fcs = nn.Sequential(nn.Linear(n_input, n_hidden), activation())
        self.fch = nn.Sequential(
            *[
                nn.Sequential(nn.Linear(n_hidden, n_hidden), activation())
                for _ in range(n_layers - 1)
            ]
        )
        self.fce = nn.Linear(n_hidden, n_output)

    def forward(self, x):
        return self.fce(self.fch(self.fcs(x)))


pinn = FCN(1, 1, 16, 2)
t_boundary = torch.tensor(0.0).view(-1, 1).requires_grad_(True)
t_physics = torch.linspace(0, 2, 20).view(-1, 1).requires_grad_(True)
mu = nn.Parameter(torch.zeros(1))  # a learnt damping, as inverse problems have
optimiser = torch.optim.Adam([*pinn.parameters(), mu], lr=1e-2)
for i in range(40):
    optimiser.zero_grad()
    u = pinn(t_boundary)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2
    u = pinn(t_physics)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(
        dudt, t_physics, torch.ones_like(dudt), create_graph=True
    )[0]
    loss3 = torch.mean((d2udt2 + mu * dudt + u) ** 2)
    loss = loss1 + 1e-1 * loss2 + 1e-1 * loss3
    loss.backward()
    optimiser.step()
    if i % 8 == 7:
        print(f"{i}: {loss.item():.5f} mu {mu.item():.5f}")

# Heat equation u_t = a u_xx on random points, u(x, 0) = sin(pi x).
net = FCN(2, 1, 16, 2)
optimizer = torch.optim.NAdam(net.parameters(), lr=5e-3)
loss_fn = nn.MSELoss()
x0 = torch.rand(16, 1)
for step in range(25):
    points = torch.rand(24, 2, requires_grad=True)
    u = net(points)
    (grad,) = torch.autograd.grad(u.sum(), points, create_graph=True)
    u_x, u_t = grad[:, 0:1], grad[:, 1:2]
    u_xx = torch.autograd.grad(u_x.sum(), points, create_graph=True)[0][:, :1]
    interior = loss_fn(u_t, 0.1 * u_xx)
    start = loss_fn(
        net(torch.cat([x0, torch.zeros_like(x0)], 1)), torch.sin(math.pi * x0)
    )
    loss = interior + start
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 0:
        print(f"{step}: interior {interior.item():.5f} start {start.item():.5f}")


def laplacian(f, x):
    hessian = torch.autograd.functional.hessian(lambda p: f(p.unsqueeze(0)).sum(), x)
    return hessian.diagonal().sum()


print(laplacian(net, torch.tensor([0.3, 0.2])))
